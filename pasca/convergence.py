"""How the hypervolume of a run grew, trial by trial."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.history import INTERRUPTED, gains
from engines.objectives import Bound, Floats, Objective
from engines.search.pareto import keeps_bounds, non_dominated
from engines.trial import Status, Trial
from pasca.tally import hypervolume_of

_TOGETHER = 512  # trials that are compared with the front at once


@dataclass(frozen=True, slots=True)
class Step:
    """Where a run stood when one of its evaluations had ended.

    Attributes:
        evaluations: how many had ended, failed ones included.
        trial: number of the one that ended last.
        hypervolume: of the front so far, in measured units.
        front_size: designs on it.
    """

    evaluations: int
    trial: int
    hypervolume: float
    front_size: int


def convergence(
    trials: Iterable[Trial[Any]],
    objectives: Sequence[Objective],
    bounds: Sequence[Bound],
    reference: Mapping[str, float],
) -> list[Step]:
    """One step for each evaluation that counts towards a run's total, in the order given."""
    counted = [t for t in trials if t.finished and t.repeats_of is None and t.reason != INTERRUPTED]
    eligible = [t for t in counted if t.status is Status.COMPLETE and keeps_bounds(t, bounds)]
    Y, _ = gains(eligible, objectives)
    best: list[Trial[Any]] = []
    best_gains = np.empty((0, len(objectives)))
    changes: dict[int, tuple[float, int]] = {}
    for begin in range(0, len(eligible), _TOGETHER):
        # What is dominated stays dominated, so most trials are done with at a first look at many.
        hopeful = ~_dominated(Y[begin : begin + _TOGETHER], best_gains)
        for place in begin + np.flatnonzero(hopeful):
            if _dominated(Y[place : place + 1], best_gains)[0]:
                continue
            # The front of the front and one more trial is the front of all.
            best_gains = np.vstack((best_gains, Y[place]))
            kept = non_dominated(best_gains)
            best, best_gains = list(itertools.compress((*best, eligible[place]), kept)), best_gains[kept]
            changes[eligible[place].number] = hypervolume_of(best, objectives, dict(reference)) or 0.0, len(best)
    steps: list[Step] = []
    volume, size = 0.0, 0
    for trial in counted:
        volume, size = changes.get(trial.number, (volume, size))
        steps.append(Step(len(steps) + 1, trial.number, volume, size))
    return steps


def _dominated(Y: Floats, others: Floats) -> NDArray[np.bool_]:
    """Which rows of Y (k, m) some row of `others` (n, m) dominates, shape (k,); larger is better."""
    as_good = np.ones((len(Y), len(others)), dtype=bool)
    better = np.zeros((len(Y), len(others)), dtype=bool)
    for own, other in zip(Y.T, others.T, strict=True):
        as_good &= own[:, None] <= other
        better |= own[:, None] < other
    found: NDArray[np.bool_] = np.any(as_good & better, axis=1)
    return found
