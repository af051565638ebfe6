"""Working time of a run, by hand."""

from __future__ import annotations

from engines.history import INTERRUPTED, History
from engines.trial import Trial
from pasca.working_time import working_seconds


def history(*suggestion_seconds: float) -> History[str]:
    return History(
        Trial(number, f"d{number}", details={"suggestion": {"seconds": seconds}})
        for number, seconds in enumerate(suggestion_seconds)
    )


def test_suggestions_and_evaluations_add_up() -> None:
    found = working_seconds(history(1.0, 2.0), {0: (101.0, 105.0), 1: (107.0, 110.0)})
    assert found == {0: 5.0, 1: 10.0}


def test_a_pause_does_not_count() -> None:
    found = working_seconds(history(0.0, 1.0), {0: (100.0, 104.0), 1: (9001.0, 9003.0)})
    assert found == {0: 4.0, 1: 7.0}


def test_an_interrupted_trial_does_not_bridge_the_pause() -> None:
    trials = [Trial(0, "d").fail(INTERRUPTED), Trial(1, "e")]
    assert working_seconds(History(trials), {0: (100.0, 9000.0), 1: (9000.0, 9003.0)}) == {1: 3.0}


def test_trials_at_the_same_time_count_once() -> None:
    found = working_seconds(history(0.0, 0.0, 0.0), {0: (100.0, 110.0), 1: (101.0, 104.0), 2: (104.0, 112.0)})
    assert found == {0: 10.0, 1: 4.0, 2: 12.0}


def test_a_running_trial_and_one_without_times_have_none() -> None:
    assert working_seconds(history(0.0, 0.0), {0: (100.0, None)}) == {}


def test_a_clock_that_was_put_back_takes_no_time_away() -> None:
    trials = [Trial(0, "d", seconds=4.0), Trial(1, "e", seconds=2.0)]
    found = working_seconds(History(trials), {0: (5000.0, 1404.0), 1: (1404.0, 1406.0)})
    assert found == {0: 6.0, 1: 2.0}
