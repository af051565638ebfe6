import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.history import INTERRUPTED, History, gains
from engines.objectives import Objective, parse_objectives
from engines.trial import Outcome, Status, Trial

OBJECTIVES = parse_objectives("val_error,inference_seconds")


def done(number: int, design: str, error: float, seconds: float, **more: float) -> Trial[str]:
    variances = {"val_error": more["variance"]} if "variance" in more else {}
    outcome = Outcome({"val_error": error, "inference_seconds": seconds}, variances)
    return Trial(number, design, seeds=(0, 1, 2)).complete(outcome, OBJECTIVES, 1.0)


RUNNING = Trial(2, "c")
FAILED = Trial(3, "d").fail("out of memory")
LOST = Trial(4, "e").fail(INTERRUPTED)
HISTORY = History([LOST, FAILED, RUNNING, done(1, "b", 0.2, 2.0), done(0, "a", 0.1, 1.0)])


def test_trials_come_in_the_order_of_their_numbers() -> None:
    assert [trial.number for trial in HISTORY] == [0, 1, 2, 3, 4]
    assert len(HISTORY) == 5
    assert HISTORY[3] is FAILED


def test_adding_a_trial_leaves_the_old_history_as_it_was() -> None:
    longer = HISTORY.with_trial(Trial(5, "f"))
    assert (len(HISTORY), len(longer)) == (5, 6)


def test_a_finished_trial_replaces_its_running_form() -> None:
    finished = HISTORY.with_trial(done(2, "c", 0.3, 3.0))
    assert len(finished) == 5
    assert not finished.running
    assert HISTORY.running == [RUNNING]


OUTCOMES = {
    "running": lambda trial: trial,
    "failed": lambda trial: trial.fail("out of memory"),
    "interrupted": lambda trial: trial.fail(INTERRUPTED),
    "complete": lambda trial: trial.complete(Outcome({"val_error": 0.1, "inference_seconds": 1.0}), OBJECTIVES, 1.0),
}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 30),  # which of the histories so far is continued
            st.integers(0, 6),
            st.sampled_from("abc"),
            st.sampled_from(sorted(OUTCOMES)),
            st.sampled_from([None, 0]),
        ),
        max_size=14,
    )
)
def test_every_history_of_a_family_is_what_its_own_trials_make_it(steps: list[tuple[int, int, str, str, None]]) -> None:
    """Each history is compared with the plain list of its trials, oldest first, when all of them have been made."""
    family: list[tuple[History[str], dict[int, Trial[str]]]] = [(History(), {})]
    for which, number, design, outcome, repeats_of in steps:
        history, trials = family[which % len(family)]
        trial = OUTCOMES[outcome](Trial(number, design, repeats_of=repeats_of))
        family.append((history.with_trial(trial), {**trials, number: trial}))
    for history, trials in [*family, *family[::-1]]:
        listed = [trials[number] for number in sorted(trials)]
        tried = [trial.design for trial in listed if trial.reason != INTERRUPTED]
        assert list(history) == listed
        assert (len(history), history.last_number) == (len(listed), max(trials, default=-1))
        assert history.running == [trial for trial in listed if not trial.finished]
        assert history.attempted() == set(tried) == {design for design in "abc" if history.has_attempted(design)}
        assert history.num_evaluations == sum(
            trial.finished and trial.repeats_of is None and trial.reason != INTERRUPTED for trial in listed
        )


def test_an_epoch_lasts_until_an_attempted_design_becomes_free() -> None:
    running = HISTORY.with_trial(Trial(5, "f"))
    epoch = running.epoch
    finished = running.with_trial(done(5, "f", 0.2, 1.0)).with_trial(Trial(6, "g"))
    assert finished.epoch is epoch
    assert finished.with_trial(Trial(6, "g").fail(INTERRUPTED)).epoch is not epoch
    assert running.epoch is not epoch, "an older history has attempted less"


def test_only_interrupted_designs_may_be_tried_again() -> None:
    assert HISTORY.attempted() == {"a", "b", "c", "d"}


def test_finished_trials_count_but_interrupted_running_and_repeated_ones_do_not() -> None:
    assert HISTORY.num_evaluations == 3
    repeat = Trial(5, "a", repeats_of=0).complete(
        Outcome({"val_error": 0.1, "inference_seconds": 1.0}), OBJECTIVES, 1.0
    )
    assert HISTORY.with_trial(repeat).num_evaluations == 3


def test_a_stopped_trial_is_observed_but_not_complete() -> None:
    outcome = Outcome({"val_error": 0.5, "inference_seconds": 1.0}, stopped=True)
    history = HISTORY.with_trial(Trial(5, "f").complete(outcome, OBJECTIVES, 1.0))
    assert history[5].status is Status.STOPPED
    assert [trial.number for trial in history.observed] == [0, 1, 5]
    assert [trial.number for trial in history.complete] == [0, 1]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_trial_with_a_value_that_is_not_finite_fails_and_names_the_objective(value: float) -> None:
    trial = Trial(0, "a").complete(Outcome({"val_error": value, "inference_seconds": 0.01}), OBJECTIVES, 1.0)
    assert trial.status is Status.FAILED
    assert trial.reason is not None
    assert "val_error" in trial.reason
    assert not trial.values
    assert not trial.variances


def test_a_trial_without_a_value_for_an_objective_fails_and_names_it() -> None:
    trial = Trial(0, "a").complete(Outcome({"val_error": 0.1}), OBJECTIVES, 1.0)
    assert trial.reason == "inference_seconds is missing from what the evaluator returned"


def test_gains_turn_signs_once_and_keep_rows_together() -> None:
    accuracy = Objective("accuracy", "1", direction="maximise")
    trial = Trial(0, "a").complete(Outcome({"val_error": 0.25, "accuracy": 0.75}, {"val_error": 1e-4}), [accuracy], 1.0)
    Y, variances = gains([trial], [OBJECTIVES[0], accuracy])
    assert Y.tolist() == [[-0.25, 0.75]]
    assert variances[0, 0] == 1e-4
    assert np.isnan(variances[0, 1])


def test_the_variance_of_a_known_objective_is_zero_and_an_unstated_one_unknown() -> None:
    Y, variances = gains([done(0, "a", 0.1, 1.0, variance=0.01), done(1, "b", 0.2, 2.0)], OBJECTIVES)
    assert Y.tolist() == [[-0.1, -1.0], [-0.2, -2.0]]
    assert variances[:, 1].tolist() == [0.0, 0.0]
    assert variances[0, 0] == 0.01
    assert np.isnan(variances[1, 0])


def test_gains_of_no_trials_are_empty_but_keep_their_width() -> None:
    Y, variances = gains([], OBJECTIVES)
    assert Y.shape == variances.shape == (0, 2)
