"""Rules that pick one design."""

from __future__ import annotations

from typing import Any

import pytest

from engines.history import History
from engines.objectives import OBJECTIVES, parse_bound
from engines.trial import Outcome, Trial
from pasca.picking import pick
from search_space.architecture import Architecture
from search_space.classics import CLASSICS
from search_space.errors import DesignError, RunError

PAIR = (OBJECTIVES["val_error"], OBJECTIVES["inference_seconds"])
DESIGNS = [CLASSICS["PaSca-V3"], CLASSICS["PaSca-V1"], CLASSICS["SGC"], CLASSICS["MLP"]]
# On a scaled front with log cost: (0, 1), (.2, .5), (1, 0); the last trial is dominated.
VALUES = [(0.10, 1.0), (0.12, 0.1), (0.20, 0.01), (0.50, 2.0)]


def trials() -> History[Any]:
    finished = [
        Trial(number=i, design=design).complete(Outcome({"val_error": e, "inference_seconds": s}), PAIR, 1.0)
        for i, (design, (e, s)) in enumerate(zip(DESIGNS, VALUES, strict=True))
    ]
    return History([*finished, Trial(number=4, design=CLASSICS["SIGN"]).fail("diverged")])


def number(rule: str, *bounds: str, history: History[Any] | None = None) -> int:
    found = trials() if history is None else history
    return pick(rule, found, PAIR, [parse_bound(bound) for bound in bounds], "a-run").number


@pytest.mark.parametrize(
    ("rule", "picked"),
    [
        ("knee", 1),
        ("best:val_error", 0),
        ("best:inference_seconds", 2),
        ("3", 3),
        ("SGC", 2),
        ("pasca-v1", 1),
        (str(CLASSICS["MLP"]), 3),
        ("augmented^2/none/mlp-1/-", 2),
        ("min inference_seconds where val_error<=best+3%", 1),
    ],
)
def test_a_rule_picks(rule: str, picked: int) -> None:
    assert number(rule) == picked


def test_a_bound_holds_for_every_rule() -> None:
    assert number("best:val_error", "inference_seconds=500ms") == 1
    with pytest.raises(RunError, match=r"trial 0 of run a-run breaks the bound inference_seconds=0\.5s"):
        number("0", "inference_seconds=500ms")


def test_a_bound_holds_before_the_conditions_of_a_rule() -> None:
    assert number("min val_error where inference_seconds<=best", "val_error=15%") == 1


def test_a_bound_that_no_design_keeps_names_the_nearest() -> None:
    with pytest.raises(RunError, match=r"no design meets the bound .* the nearest is 2 .* 10 ms"):
        number("knee", "inference_seconds=1ns")


@pytest.mark.parametrize("rule", ["4", "99", "SIGN", "augmented^3/mean/mlp-1/-"])
def test_what_was_not_evaluated_completely_cannot_be_picked(rule: str) -> None:
    with pytest.raises(RunError, match=r"has no finished .*on its front are: 0 "):
        number(rule)


@pytest.mark.parametrize("rule", ["best:test_accuracy", "best:test_score", "best:macs", "best:"])
def test_only_objectives_can_be_best_and_test_figures_are_none(rule: str) -> None:
    with pytest.raises(RunError, match="choose from: val_error, inference_seconds"):
        number(rule)


@pytest.mark.parametrize("rule", ["elbow", "", "-1", "a/b/c/d", "best"])
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(DesignError):
        number(rule)


def test_a_run_without_a_finished_trial_has_nothing_to_pick() -> None:
    with pytest.raises(RunError, match="has no finished trial"):
        number("knee", history=History([Trial(number=0, design=Architecture.parse("-/-/mlp-1/-"))]))
