"""Rules that choose by figures: worked by hand on four designs."""

from __future__ import annotations

from typing import Any

import pytest

from engines.objectives import OBJECTIVES
from engines.trial import Outcome, Trial
from pasca.rules import chosen_by_rule, is_rule
from search_space.classics import CLASSICS
from search_space.errors import DesignError, ObjectiveError, RunError

PAIR = (OBJECTIVES["val_error"], OBJECTIVES["inference_seconds"])
# (val_error, inference_seconds, parameters)
VALUES = [(0.10, 1.0, 500.0), (0.12, 0.1, 500.0), (0.20, 0.01, 100.0), (0.50, 2.0, 100.0)]


def trials() -> list[Trial[Any]]:
    names = ("val_error", "inference_seconds", "parameters")
    designs = [CLASSICS[name] for name in ("PaSca-V3", "PaSca-V1", "SGC", "MLP")]
    return [
        Trial(number=i, design=design).complete(Outcome(dict(zip(names, values, strict=True))), PAIR, 1.0)
        for i, (design, values) in enumerate(zip(designs, VALUES, strict=True))
    ]


def number(rule: str) -> int:
    return chosen_by_rule(rule, trials(), "a-run").number


@pytest.mark.parametrize(
    ("rule", "picked"),
    [
        ("min val_error", 0),
        ("min inference_seconds", 2),
        ("min inference_seconds where val_error<=15%", 1),
        ("min inference_seconds where val_error <= 0.15", 1),
        ("min inference_seconds where val_error<=best", 0),
        ("min inference_seconds where val_error<=best+2%", 1),
        ("min inference_seconds where val_error<=best+1%", 0),
        ("min inference_seconds where val_error<=best*1.2", 1),
        ("min val_error where inference_seconds<=50ms", 2),
        ("min val_error where inference_seconds<=best+90ms", 1),
        ("min val_error where parameters<=100 and inference_seconds<=5s", 2),
        ("min val_error where inference_seconds<=500ms and parameters<=500", 1),
        ("  min   val_error  ", 0),
    ],
)
def test_a_rule_chooses_the_smallest_of_what_keeps_its_conditions(rule: str, picked: int) -> None:
    assert number(rule) == picked


def test_equally_good_designs_are_told_apart_by_their_error() -> None:
    assert number("min parameters") == 2
    assert number("min parameters where val_error<=15%") == 0


def test_conditions_that_nothing_keeps_name_the_nearest() -> None:
    with pytest.raises(RunError, match=r"no design of run a-run keeps val_error<=5% .* 0 \(.*\) .* with 10\.0 %"):
        number("min inference_seconds where val_error<=5%")
    with pytest.raises(RunError, match=r"keeps parameters<=100 of .* 1 \(.*\) is the nearest with 500"):
        chosen_by_rule("min val_error where val_error<=15% and parameters<=100", trials()[1:], "a-run")


@pytest.mark.parametrize("name", ["test_accuracy", "test_score", "retrained_val_error", "accuracy", "macs"])
def test_only_recorded_objectives_choose_and_test_figures_never(name: str) -> None:
    for rule in (f"min {name}", f"min val_error where {name}<=1"):
        with pytest.raises(DesignError, match=f"'{name}' in .* they are: val_error, inference_seconds, parameters$"):
            number(rule)


@pytest.mark.parametrize(
    "rule", ["min", "min val_error where", "min val_error if x<=1", "min val_error where val_error<1", "max macs"]
)
def test_what_has_not_the_form_of_a_rule_is_refused(rule: str) -> None:
    with pytest.raises(DesignError, match="a rule is min NAME where NAME<=VALUE"):
        number(rule)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("5ms", "unknown unit 'ms'"),
        ("much", "a bound is|not a number|unknown unit"),
        ("best+1ms", "unknown unit 'ms'"),
        ("best*0.5", "a number of at least 1, got '0.5'"),
        ("best*nan", "a number of at least 1, got 'nan'"),
        ("best*x", "a number of at least 1, got 'x'"),
    ],
)
def test_a_value_has_to_be_one_of_its_objective(value: str, message: str) -> None:
    with pytest.raises(ObjectiveError, match=message):
        number(f"min inference_seconds where val_error<={value}")


def test_rules_are_told_from_other_picks() -> None:
    assert is_rule("min macs")
    assert is_rule("min")
    assert not any(map(is_rule, ("knee", "minimum", "", "best:val_error", "7")))
