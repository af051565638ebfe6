"""Dominance, hypervolume and fronts.

Y has shape (n, m), larger is better in every column. A row is dominated when another one is at least as good in every
column and better in one; equal rows do not dominate each other, so doubles stay on a front together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.history import gains
from engines.objectives import Bound, Floats, Objective
from engines.pooling import with_further_seeds
from engines.trial import Status, Trial
from search_space.errors import ObjectiveError, ShapeError

D = TypeVar("D")


def non_dominated(Y: Floats) -> NDArray[np.bool_]:
    """Mark the rows that no other row dominates.

    Args:
        Y: (n, m), larger is better, finite.
    Returns:
        (n,) booleans.
    Raises:
        ShapeError: Y is not a matrix.
        ObjectiveError: Y holds NaN or infinity.
    """
    Y = _checked(Y)
    kept = np.zeros(len(Y), dtype=bool)
    # In descending lexicographic order a row comes after all that dominate it, so the first row left is always kept.
    left = np.lexsort(-Y.T[::-1])
    while left.size:
        best = Y[left[0]]
        same = (Y[left] == best).all(axis=1)
        kept[left[same]] = True
        left = left[(Y[left] > best).any(axis=1)]
    return kept


def hypervolume(Y: Floats, reference: Floats) -> float:
    """Volume of what the rows dominate above the reference point, exactly.

    Args:
        Y: (n, m), larger is better, finite; n may be 0.
        reference: (m,). A row that is not above it in every column adds nothing.
    Raises:
        ShapeError: the shapes do not belong together.
        ObjectiveError: a value is NaN or infinite.
    """
    Y, reference = _checked(Y), np.asarray(reference, dtype=np.float64)
    if reference.shape != (Y.shape[1],):
        raise ShapeError(
            f"a reference point for {Y.shape[1]} objectives has shape ({Y.shape[1]},), got {reference.shape}"
        )
    if not np.isfinite(reference).all():
        raise ObjectiveError(f"a reference point is finite, got {reference.tolist()}")
    above = Y[(reference < Y).all(axis=1)]
    if not len(above):
        return 0.0
    front = np.unique(above[non_dominated(above)], axis=0)  # ascending in the first column
    if Y.shape[1] == 1:
        return float(front[-1, 0] - reference[0])
    if Y.shape[1] == 2:
        # On a front the second column falls as the first one rises: one strip per point, left to right.
        widths = np.diff(front[:, 0], prepend=reference[0])
        return float(widths @ (front[:, 1] - reference[1]))
    import torch
    from botorch.utils.multi_objective.hypervolume import Hypervolume

    return float(Hypervolume(torch.from_numpy(reference)).compute(torch.from_numpy(front)))


def front(trials: Iterable[Trial[D]], objectives: Sequence[Objective], bounds: Sequence[Bound] = ()) -> list[Trial[D]]:
    """The complete trials that keep every bound and that no other such trial dominates, in the order given.

    Records that only add seeds to an earlier design are averaged into its first trial, which stands for the design.

    Raises:
        ObjectiveError: a bound is on an objective that a trial has no value for.
    """
    feasible = [
        trial for trial in with_further_seeds(trials) if trial.status is Status.COMPLETE and keeps_bounds(trial, bounds)
    ]
    if not feasible:
        return []
    Y, _ = gains(feasible, objectives)
    return [trial for trial, kept in zip(feasible, non_dominated(Y), strict=True) if kept]


def keeps_bounds(trial: Trial[D], bounds: Sequence[Bound]) -> bool:
    """Whether a trial's measured values keep every bound.

    Raises:
        ObjectiveError: a bound is on an objective that the trial has no value for.
    """
    for bound in bounds:
        if bound.objective.name not in trial.values:
            raise ObjectiveError(
                f"a bound needs a value of its objective, but trial {trial.number} has none for "
                f"{bound.objective.name!r}; it has: {', '.join(trial.values) or 'none'}"
            )
    return all(bound.allows(trial.values[bound.objective.name]) for bound in bounds)


def _checked(Y: Floats) -> Floats:
    Y = np.asarray(Y, dtype=np.float64)
    if Y.ndim != 2 or Y.shape[1] == 0:
        raise ShapeError(f"objective values have shape (n, m) with m of at least 1, got {Y.shape}")
    if not np.isfinite(Y).all():
        row = int(np.flatnonzero(~np.isfinite(Y).all(axis=1))[0])
        raise ObjectiveError(f"objective values are finite, got {Y[row].tolist()} in row {row}")
    return Y
