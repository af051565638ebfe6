"""Aims: what a search by EHVI is for, in measured values and in gains."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from engines.objectives import Bound, Floats, Objective
from engines.search.warping import Warp
from search_space.errors import ObjectiveError


class Aims:
    """Objectives of a search, those of them that are known beforehand, and its bounds.

    Args:
        objectives: the m objectives.
        known: names of the objectives that are known for every design.
        bounds: on objectives of the search or on known ones.
    Attributes:
        objectives, bounds: as given.
        uncertain: (m,) which objectives are not known.
        at_least: (m,) gains that a design must reach, -inf where unbounded.
    Raises:
        ObjectiveError: there is no objective, one is repeated, or a bound is on an objective that is neither searched
            nor known.
    """

    def __init__(self, objectives: Sequence[Objective], known: Collection[str], bounds: Sequence[Bound]) -> None:
        names = [objective.name for objective in objectives]
        if not names or len(set(names)) < len(names):
            raise ObjectiveError(f"a search needs objectives, each once; got {', '.join(names) or 'none'}")
        self.objectives, self.bounds = tuple(objectives), tuple(bounds)
        self.uncertain = np.array([name not in known for name in names])
        self.at_least = np.full(len(names), -np.inf)
        for bound in bounds:
            if bound.objective.name in names:
                # A bound is a largest measured value: a least gain where small is good. parse_bound makes no others.
                j = names.index(bound.objective.name)
                self.at_least[j] = max(self.at_least[j], float(bound.objective.gains(np.asarray(bound.at_most))))
            elif bound.objective.name not in known:
                raise ObjectiveError(
                    f"a bound needs an objective that is searched or known, got {bound.objective.name!r}; "
                    f"choose from: {', '.join(dict.fromkeys((*names, *known)))}"
                )

    def gains(self, values: Mapping[str, float]) -> Floats:
        """Gains (m,) of measured values."""
        return np.array([float(objective.gains(np.asarray(values[objective.name]))) for objective in self.objectives])

    def measured(self, gains: Floats) -> dict[str, float]:
        """Measured values of gains (m,)."""
        return {
            objective.name: float(objective.measured(gains[j : j + 1])[0])
            for j, objective in enumerate(self.objectives)
        }

    def believed(self, j: int, warp: Warp, means: Floats, deviations: Floats) -> list[tuple[float, float]]:
        """Mean and standard deviation of objective j in measured values, from those on its model's scale, each (n,).

        A deviation is carried over by the slope at the mean.
        """
        gains = warp.inverse(means)
        measured = self.objectives[j].measured(gains)
        return list(zip(measured.tolist(), (deviations / warp.slope(gains)).tolist(), strict=True))

    def statement(self) -> dict[str, Any]:
        """Objectives, which of them are known, and bounds: JSON types."""
        return {
            "objectives": [objective.name for objective in self.objectives],
            "known": [o.name for o, uncertain in zip(self.objectives, self.uncertain, strict=True) if not uncertain],
            "bounds": {bound.objective.name: bound.at_most for bound in self.bounds},
        }
