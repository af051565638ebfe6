"""The growth of a hypervolume, by hand on a unit grid."""

from __future__ import annotations

import numpy as np

from engines.history import INTERRUPTED
from engines.objectives import parse_bound, parse_objectives
from engines.search.pareto import front
from engines.trial import Outcome, Trial
from pasca.convergence import Step, convergence
from pasca.tally import hypervolume_of

OBJECTIVES = parse_objectives("val_error,inference_seconds")
REFERENCE = {"val_error": 1.0, "inference_seconds": 10.0}


def trial(number: int, error: float, seconds: float) -> Trial[str]:
    return Trial(number, f"d{number}").complete(
        Outcome({"val_error": error, "inference_seconds": seconds}), OBJECTIVES, 1.0
    )


def test_each_evaluation_is_a_step_whether_it_helps_or_not() -> None:
    trials = [
        trial(0, 0.5, 5.0),  # 0.5 · 5
        trial(1, 0.6, 6.0),  # dominated
        Trial(2, "d2").fail("diverged"),
        trial(3, 0.2, 8.0),  # 0.8 · 2 + 0.5 · 3
    ]
    assert convergence(trials, OBJECTIVES, (), REFERENCE) == [
        Step(1, 0, 2.5, 1),
        Step(2, 1, 2.5, 1),
        Step(3, 2, 2.5, 1),
        Step(4, 3, 0.8 * 2.0 + 0.5 * 3.0, 2),
    ]


def test_interrupted_and_running_trials_are_no_steps() -> None:
    assert convergence([Trial(0, "d").fail(INTERRUPTED), Trial(1, "e")], OBJECTIVES, (), REFERENCE) == []


def test_a_design_that_breaks_a_bound_adds_nothing() -> None:
    bounds = [parse_bound("inference_seconds=4")]
    assert [step.hypervolume for step in convergence([trial(0, 0.5, 5.0)], OBJECTIVES, bounds, REFERENCE)] == [0.0]


def test_the_last_step_is_the_front_of_all() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(1, 9, (60, 2)) / 10.0  # a coarse grid, so that some are equal
    trials = [trial(i, float(error), float(10 * share)) for i, (error, share) in enumerate(values)]
    steps = convergence(trials, OBJECTIVES, (), REFERENCE)
    for count in (1, 7, 30, 60):
        best = front(trials[:count], OBJECTIVES)
        assert steps[count - 1].front_size == len(best)
        assert steps[count - 1].hypervolume == hypervolume_of(best, OBJECTIVES, dict(REFERENCE))
