"""The knee of a front: the design where giving up a little of one objective stops paying in the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from engines.history import gains
from engines.objectives import Floats, Objective
from engines.trial import Trial
from search_space.errors import ObjectiveError

D = TypeVar("D")

_TIE = 1e-9
"""Distances on the unit scale that differ by less than this are equal: they come from the same values, rounded."""


def knee(front: Sequence[Trial[D]], objectives: Sequence[Objective]) -> Trial[D]:
    """Pick the trial farthest from the chord of the scaled front, on the side of the ideal point.

    Each objective is scaled to 0 (best on the front) .. 1 (worst), costs after taking logarithms: a cost is any
    objective that is not a fraction (unit `1`), and its logarithm is taken where all its values are positive. The
    scaled ends of a two-objective front are (0, 1) and (1, 0), so the distance to their chord falls with the sum of
    the coordinates; with m objectives the chord becomes the plane through the unit points. Ties, among them the two
    ends of any front, go to the cheaper design (objectives compared in order, costs first), then to the earlier.

    Args:
        front: mutually non-dominated trials with values for every objective.
    Raises:
        ObjectiveError: the front is empty.
    """
    if not front:
        raise ObjectiveError("a knee needs a front of at least one design, got none")
    Y, _ = gains(front, objectives)
    scaled = np.column_stack([_scaled(Y[:, j], objective) for j, objective in enumerate(objectives)])
    total = scaled.sum(axis=1)
    tied = np.flatnonzero(total <= total.min() + _TIE).tolist()
    costs_first = sorted(range(len(objectives)), key=lambda j: objectives[j].unit == "1")
    best = min(tied, key=lambda i: (*(-Y[i, j] for j in costs_first), front[i].number))
    return front[best]


def _scaled(column: Floats, objective: Objective) -> Floats:
    """One column of gains as 0 (best) .. 1 (worst); all 0 where the values are equal."""
    measured = objective.measured(column)
    if objective.unit != "1" and (measured > 0).all():
        measured = np.log(measured)
    losses = -objective.gains(measured)
    spread = float(np.ptp(losses))
    return (losses - losses.min()) / spread if spread > 0 else np.zeros_like(losses)
