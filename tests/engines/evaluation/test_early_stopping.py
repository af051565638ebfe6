"""Early stopping: dominated beyond hope, and never otherwise; what a stopped design leaves; repeats put together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engines.evaluation.early_stopping import EarlyStopping, Standings, together
from engines.objectives import OBJECTIVES
from engines.trial import Outcome, Status, Trial

PAIR = (OBJECTIVES["val_error"], OBJECTIVES["inference_seconds"])


def trial(number: int, error: float, seconds: float, variance: float = 0.01 / 3) -> Trial[int]:
    outcome = Outcome({"val_error": error, "inference_seconds": seconds}, {"val_error": variance})
    return Trial(number, number, (1, 2, 3)).complete(outcome, PAIR, 1.0)


def standings(*trials: Trial[int], before: int = 1) -> Standings[int]:
    """After some trials, all of them on the front."""
    made: Standings[int] = Standings(PAIR, [], before)
    for one in trials:
        made.update(one, trials)
    return made


class Repeats:
    """An evaluator whose repeats have known errors, by seed."""

    def __init__(self, errors: dict[int, float], seconds: float) -> None:
        self.errors, self.seconds = errors, seconds
        self.asked: list[tuple[int, ...]] = []

    def evaluate(self, design: int, seeds: Sequence[int]) -> Outcome:
        self.asked.append(tuple(seeds))
        errors = np.array([self.errors[seed] for seed in seeds])
        variances = {"val_error": float(errors.var(ddof=1) / errors.size)} if errors.size > 1 else {}
        return Outcome(
            {"val_error": float(errors.mean()), "inference_seconds": self.seconds},
            variances,
            {"val_errors": errors.tolist(), "seconds": {"train": 1.5}},
        )


# The standard deviation of a repeat is 0.1, so with three repeats the hope is 2 · 0.1 · sqrt(4/3) = 0.2309.
@pytest.mark.parametrize(
    ("error", "seconds", "stopped"),
    [
        (0.54, 2.0, True),  # 0.309 at best, against 0.3 at 1 s
        (0.52, 2.0, False),  # 0.289 at best
        (0.9, 0.5, False),  # cheaper than all
        (0.54, 1.0, True),  # as cheap as the first, worse
        (0.34, 6.0, True),  # 0.109 at best, against 0.1 at 5 s
        (0.34, 4.9, False),
    ],
)
def test_a_design_is_stopped_when_even_its_hope_is_dominated(error: float, seconds: float, stopped: bool) -> None:
    field = standings(trial(0, 0.3, 1.0), trial(1, 0.1, 5.0))
    inner = Repeats({1: error, 2: error, 3: error}, seconds)
    outcome = EarlyStopping(inner, field).evaluate(7, [1, 2, 3])
    assert outcome.stopped == stopped
    assert inner.asked == ([(1,)] if stopped else [(1,), (2, 3)])


def test_a_stopped_design_has_the_variance_of_one_repeat() -> None:
    field = standings(trial(0, 0.3, 1.0, 0.01 / 3), trial(1, 0.1, 5.0, 0.03 / 3))
    outcome = EarlyStopping(Repeats({1: 0.99}, 9.0), field).evaluate(7, [1, 2, 3])
    assert outcome.values == {"val_error": 0.99, "inference_seconds": 9.0}
    assert outcome.variances == {"val_error": pytest.approx(0.02)}
    finished = Trial(7, 7, (1, 2, 3)).complete(outcome, PAIR, 1.0)
    assert finished.status is Status.STOPPED


def test_a_design_that_goes_on_ends_as_if_all_repeats_had_been_asked_for_at_once() -> None:
    errors = {1: 0.2, 2: 0.25, 3: 0.27}
    inner = Repeats(errors, 0.1)
    found = EarlyStopping(inner, standings(trial(0, 0.3, 1.0))).evaluate(7, [1, 2, 3])
    expected = Repeats(errors, 0.1).evaluate(7, [1, 2, 3])
    assert found.values == pytest.approx(expected.values)
    assert found.variances == pytest.approx(expected.variances)
    assert found.details["val_errors"] == expected.details["val_errors"]
    assert found.details["seconds"] == {"train": 3.0}


def test_nobody_is_stopped_before_enough_is_known() -> None:
    hopeless = Repeats({1: 0.99, 2: 0.99, 3: 0.99}, 9.0)
    few = standings(trial(0, 0.1, 1.0), before=2)
    single = Outcome({"val_error": 0.1, "inference_seconds": 1.0})
    unknown = standings(Trial(0, 0, (1,)).complete(single, PAIR, 1.0))
    for field in (few, unknown, standings()):
        assert not EarlyStopping(hopeless, field).evaluate(7, [1, 2, 3]).stopped


def test_stopped_and_failed_trials_do_not_count_as_known() -> None:
    field: Standings[int] = Standings(PAIR, [Trial(0, 0).fail("no"), Trial(1, 1, status=Status.STOPPED)], 1)
    field.update(Trial(2, 2).fail("no"), [])
    assert field.dominated(Outcome({"val_error": 0.9, "inference_seconds": 9.0}), 3) is None


def test_a_resumed_search_knows_what_the_record_holds() -> None:
    field: Standings[int] = Standings(PAIR, [trial(0, 0.1, 1.0), trial(1, 0.2, 0.5)], 3)
    assert field.dominated(Outcome({"val_error": 0.9, "inference_seconds": 9.0}), 3) is None
    field.update(trial(2, 0.3, 0.1), [trial(0, 0.1, 1.0)])
    assert field.dominated(Outcome({"val_error": 0.9, "inference_seconds": 9.0}), 3) == pytest.approx(0.01)


def test_a_single_repeat_is_never_stopped() -> None:
    hopeless = Repeats({1: 0.99}, 9.0)
    assert not EarlyStopping(hopeless, standings(trial(0, 0.1, 1.0))).evaluate(7, [1]).stopped


def test_objectives_that_only_one_part_has_are_kept() -> None:
    parts = [Outcome({"val_error": e, "macs": 5.0}, {}, {"val_errors": [e], "batch_rows": 9}) for e in (0.1, 0.3)]
    whole = together(*parts)
    assert whole.values == {"val_error": pytest.approx(0.2), "macs": 5.0}
    assert whole.details == {"val_errors": [0.1, 0.3], "batch_rows": 9}
