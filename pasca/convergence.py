"""How the hypervolume of a run grew, trial by trial."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.history import INTERRUPTED, gains
from engines.objectives import Bound, Floats, Objective
from engines.search.pareto import keeps_bounds, non_dominated
from engines.trial import Status, Trial
from pasca.tally import hypervolume_of


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
    Y = dict(zip((t.number for t in eligible), gains(eligible, objectives)[0], strict=True))
    steps: list[Step] = []
    best: list[Trial[Any]] = []
    best_gains = np.empty((0, len(objectives)))
    volume = 0.0
    for trial in counted:
        y = Y.get(trial.number)
        # What is dominated stays dominated, so the front of the front and one more trial is the front of all.
        if y is not None and not _dominated(y, best_gains):
            best_gains = np.vstack((best_gains, y))
            best = [*best, trial]
            kept = non_dominated(best_gains)
            best, best_gains = list(itertools.compress(best, kept)), best_gains[kept]
            volume = hypervolume_of(best, objectives, dict(reference)) or 0.0
        steps.append(Step(len(steps) + 1, trial.number, volume, len(best)))
    return steps


def _dominated(y: Floats, Y: Floats) -> bool:
    """Whether a row of Y (n, m) is at least as good as y (m,) everywhere and better somewhere; larger is better."""
    return bool(((y <= Y).all(axis=1) & (y < Y).any(axis=1)).any())
