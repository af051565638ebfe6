"""Counts and front of a growing history, against those of the whole history."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engines.history import INTERRUPTED, History
from engines.objectives import OBJECTIVES, parse_bound
from engines.search.pareto import front
from engines.trial import Outcome, Trial
from pasca.tally import PACE_TRIALS, Tally

PAIR = (OBJECTIVES["val_error"], OBJECTIVES["inference_seconds"])


def complete(number: int, error: float, seconds: float) -> Trial[Any]:
    outcome = Outcome({"val_error": error, "inference_seconds": seconds})
    return Trial(number=number, design=number).complete(outcome, PAIR, 2.0)


@pytest.mark.parametrize("known_before", [0, 7])
def test_the_front_kept_up_to_date_is_that_of_all_trials(known_before: int) -> None:
    rng, bounds = np.random.default_rng(0), (parse_bound("inference_seconds=0.8"),)
    trials = [complete(i, *map(float, rng.random(2).round(1))) for i in range(40)]
    tally = Tally(History(trials[:known_before]), PAIR, bounds, 40, lambda: None)
    for i in range(known_before, 40):
        tally.update(Trial(number=i, design=i))
        tally.update(trials[i])
        assert sorted(t.number for t in tally.front) == [t.number for t in front(trials[: i + 1], PAIR, bounds)]


def test_it_counts_as_the_history_does() -> None:
    tally: Tally[Any] = Tally(History(), PAIR, (), 9, lambda: None)
    for trial in (
        complete(0, 0.1, 1.0),
        Trial(number=1, design=1).fail("bad", 4.0),
        Trial(number=2, design=2).fail(INTERRUPTED),
    ):
        tally.update(Trial(number=trial.number, design=trial.design))
        tally.update(trial)
    tally.update(Trial(number=3, design=3))
    standing = tally.standing()
    assert (standing.done, standing.failed, standing.running, standing.total) == (2, 1, 1, 9)
    assert tally.seconds_per_trial == 3.0


def test_the_hypervolume_needs_a_reference_point() -> None:
    trials = History([complete(0, 0.2, 3.0), complete(1, 0.1, 5.0)])
    assert Tally(trials, PAIR, (), 9, lambda: None).standing().hypervolume is None
    reference = {"val_error": 0.5, "inference_seconds": 10.0}
    found = Tally(trials, PAIR, (), 9, lambda: reference).standing().hypervolume
    assert found == pytest.approx(0.3 * 2 + 0.4 * 5)


def test_what_a_retraining_needs_is_what_its_designs_took() -> None:
    tally: Tally[Any] = Tally(History(), PAIR, (), 99, lambda: None)
    for number in range(2 * PACE_TRIALS):
        slow = number >= PACE_TRIALS
        outcome = Outcome({"val_error": 0.5 if slow else 0.4, "inference_seconds": 1.0 + number})
        trial = Trial(number=number, design=number, seeds=(1, 2))
        tally.update(trial)
        tally.update(trial.complete(outcome, PAIR, seconds=8.0 if slow else 1.0))
    assert [trial.number for trial in tally.front] == [0]
    assert tally.seconds_per_trial == 8.0, "the last ten"
    assert tally.seconds_needed(repeats=2) == 8.0
    # ten times: the next trial 4 s, the front's one design 1/2 s, design 15 4 s, and 99, which is unknown, 4 s as well
    assert tally.seconds_needed(2, [0, 15, 99], 10) == 8.0 + 10 * (4.0 + 0.5 + 4.0 + 4.0)
