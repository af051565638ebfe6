"""The reference point of a run, which every hypervolume of it is measured against.

It is fixed once the initial design has been evaluated and never moves: for each objective the worst value, and a tenth
of the range beyond it. The range is that of the initial trials for what training measures, and that of all permitted
designs for what is known beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from engines.history import History, gains
from engines.objectives import Bound, Floats, Objective
from engines.search.candidates import excess, permitted
from engines.search.observations import initial_trials
from engines.trial import Trial

D = TypeVar("D")

Extents = Mapping[str, tuple[float, float]]
"""Least and largest measured value of each objective that is known beforehand, over all permitted designs."""


def extents(known: Mapping[str, Floats], bounds: Sequence[Bound]) -> Extents:
    """The extents of the known objectives over the designs that keep the bounds (the nearest ones where none does).

    Args:
        known: measured values, each of shape (number of designs,).
    """
    if not known:
        return {}
    rows = permitted(excess(bounds, known, len(next(iter(known.values())))))
    return {name: (float(values[rows].min()), float(values[rows].max())) for name, values in known.items()}


def reference_point(
    history: History[D], objectives: Sequence[Objective], known: Extents, num_initial: int
) -> dict[str, float] | None:
    """The reference point in measured values, by objective; None while no trial has values.

    While the initial design is not complete, it is that of the trials so far.
    """
    window: Sequence[Trial[D]] | None = initial_trials(history, num_initial)
    valued = [trial for trial in (history.observed if window is None else window) if trial.values]
    if not valued:
        return None
    Y, _ = gains(valued, objectives)
    found = {}
    for j, objective in enumerate(objectives):
        column = objective.gains(np.asarray(known[objective.name])) if objective.name in known else Y[:, j]
        spread = float(np.ptp(column))
        if spread == 0.0:  # a volume needs an extent
            spread = abs(float(column[0])) or 1.0
        found[objective.name] = float(objective.measured(np.asarray([column.min() - 0.1 * spread]))[0])
    return found
