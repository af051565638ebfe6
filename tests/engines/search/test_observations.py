import numpy as np
import pytest

from engines.history import INTERRUPTED, History
from engines.objectives import parse_objectives
from engines.search.observations import initial_trials, observe
from engines.trial import Outcome, Trial
from search_space.architecture import Architecture
from search_space.errors import SpaceError
from search_space.space import SearchSpace

SPACE = SearchSpace.paper(k_pre=[0, 1, 2], message=["mean"], k_trans=[1, 2], k_post=[0])
OBJECTIVES = parse_objectives("val_error,inference_seconds")


def done(number: int, row: int, error: float, **more: object) -> Trial[Architecture]:
    variances = {"val_error": more["variance"]} if "variance" in more else {}
    outcome = Outcome({"val_error": error, "inference_seconds": 1.0}, variances, stopped=bool(more.get("stopped")))  # type: ignore[arg-type]
    trial = Trial(
        number, SPACE.design(row), seeds=tuple(range(int(more.get("seeds", 3)))), repeats_of=more.get("repeats_of")
    )  # type: ignore[arg-type, call-overload]
    return trial.complete(outcome, OBJECTIVES, 1.0)


def test_rows_values_and_variances_belong_together() -> None:
    found = observe([done(0, 4, 0.3, variance=0.01), done(1, 2, 0.2)], SPACE, OBJECTIVES)
    assert found.rows.tolist() == [4, 2]
    assert found.Y.tolist() == [[-0.3, -1.0], [-0.2, -1.0]]
    assert found.variances[0].tolist() == [0.01, 0.0]
    assert np.isnan(found.variances[1, 0])
    assert found.num_seeds.tolist() == [3.0, 3.0]


def test_trials_without_values_are_left_out_and_stopped_ones_are_not_complete() -> None:
    others = [Trial(1, SPACE.design(1)).fail("no memory"), Trial(2, SPACE.design(2)), done(3, 3, 0.9, stopped=True)]
    found = observe([done(0, 0, 0.1), *others], SPACE, OBJECTIVES)
    assert found.rows.tolist() == [0, 3]
    assert found.complete.tolist() == [True, False]


def test_further_seeds_of_a_design_are_averaged_in_by_their_number() -> None:
    trials = [
        done(0, 5, 0.3, variance=0.03, seeds=3),
        done(1, 1, 0.5, variance=0.02, seeds=3),
        done(2, 5, 0.2, variance=0.01, seeds=9, repeats_of=0),
    ]
    found = observe(trials, SPACE, OBJECTIVES)
    assert found.rows.tolist() == [5, 1]
    assert found.Y[0, 0] == pytest.approx(-(3 * 0.3 + 9 * 0.2) / 12)
    assert found.variances[0, 0] == pytest.approx((0.25**2) * 0.03 + (0.75**2) * 0.01)
    assert found.num_seeds.tolist() == [12.0, 3.0]


def test_no_trials_give_empty_arrays() -> None:
    found = observe([], SPACE, OBJECTIVES)
    assert len(found) == 0
    assert found.Y.shape == (0, 2)


def test_a_design_outside_the_space_is_refused() -> None:
    outside = Trial(0, Architecture(9, "augmented", "mean", 1))
    finished = outside.complete(Outcome({"val_error": 0.1, "inference_seconds": 1.0}), OBJECTIVES, 1.0)
    with pytest.raises(SpaceError, match="k_pre 9"):
        observe([finished], SPACE, OBJECTIVES)


def test_the_initial_trials_are_the_first_ones_once_all_are_finished() -> None:
    trials = [done(i, i, 0.1 * (i + 1)) for i in range(5)]
    assert initial_trials(History(trials), 3) == trials[:3]
    assert initial_trials(History(trials[:2]), 3) is None


def test_a_running_initial_trial_is_waited_for() -> None:
    trials = [done(0, 0, 0.1), Trial(1, SPACE.design(1)), done(2, 2, 0.3), done(3, 3, 0.4)]
    assert initial_trials(History(trials), 3) is None
    later = History([*trials, done(4, 4, 0.5)]).with_trial(done(1, 1, 0.2))
    window = initial_trials(later, 3)
    assert window is not None
    assert [trial.number for trial in window] == [0, 1, 2]


def test_where_all_initial_trials_failed_the_next_one_with_values_ends_the_phase() -> None:
    failed = [Trial(i, SPACE.design(i)).fail("no memory") for i in range(4)]
    assert initial_trials(History(failed), 3) is None
    window = initial_trials(History([*failed, done(4, 4, 0.5), done(5, 5, 0.5)]), 3)
    assert window is not None
    assert [trial.number for trial in window] == [0, 1, 2, 3, 4]


def test_interrupted_trials_and_further_seeds_are_no_initial_trials() -> None:
    trials = [
        Trial(0, SPACE.design(0)).fail(INTERRUPTED),
        done(1, 1, 0.1),
        done(2, 1, 0.1, repeats_of=1),
        done(3, 3, 0.1),
    ]
    window = initial_trials(History(trials), 2)
    assert window is not None
    assert [trial.number for trial in window] == [1, 3]
