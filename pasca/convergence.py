"""How the hypervolume of a run grew, trial by trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engines.history import INTERRUPTED
from engines.objectives import Bound, Objective
from engines.search.pareto import front
from engines.trial import Trial
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
    steps: list[Step] = []
    best: list[Trial[Any]] = []
    volume = 0.0
    for trial in trials:
        if not trial.finished or trial.repeats_of is not None or trial.reason == INTERRUPTED:
            continue
        # What is dominated stays dominated, so the front of the front and one more trial is the front of all.
        grown = front([*best, trial], objectives, bounds)
        if grown != best:
            best, volume = grown, hypervolume_of(grown, objectives, dict(reference)) or 0.0
        steps.append(Step(len(steps) + 1, trial.number, volume, len(best)))
    return steps
