"""Random search: the baseline that every other searcher has to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from engines.history import History
from engines.objectives import Bound, Floats
from engines.search.base import Suggestion
from engines.search.candidates import checked_known, excess, permitted, random_order
from search_space.space import Space

D = TypeVar("D")


class RandomSearcher(Generic[D]):
    """Proposes designs uniformly at random without replacement: one order of the whole space, drawn from the seed.

    Args:
        space: what to draw from.
        seed: fixes the order.
        known, bounds: designs that break a bound on a known objective are not drawn; where every design breaks one,
            the bounds are ignored and the statement says so. Measured values of shape (len(space),).
    Raises:
        ShapeError, ObjectiveError: known values do not fit the space or are not finite.
    """

    def __init__(
        self, space: Space[D], *, seed: int, known: Mapping[str, Floats] | None = None, bounds: Sequence[Bound] = ()
    ) -> None:
        self._space = space
        self._seed = seed
        over = excess(bounds, checked_known(space, known or {}), len(space))
        self._bounds_ignored = bool(len(over) and over.min() > 0.0)
        allowed = np.zeros(len(space), dtype=bool)
        allowed[permitted(over)] = True
        order = random_order(len(space), seed)
        self._order = order[allowed[order]]
        # How many designs at the head of the order are known to be attempted, as long as the history's epoch lasts.
        self._epoch: object = None
        self._num_passed = 0

    def ask(self, history: History[D], count: int = 1) -> list[Suggestion[D]]:
        """The next `count` designs of the order that were not attempted; see `Searcher.ask`."""
        if history.epoch is not self._epoch:
            self._epoch, self._num_passed = history.epoch, 0
        found: list[Suggestion[D]] = []
        passing = True
        for row in self._order[self._num_passed :]:
            design = self._space.design(int(row))
            if not history.has_attempted(design):
                passing = False
                found.append(Suggestion(design, {"method": "random"}))
                if len(found) == count:
                    break
            self._num_passed += passing
        return found

    def statement(self) -> Mapping[str, Any]:
        """Name, seed and number of designs that may be drawn."""
        return {
            "searcher": "random",
            "seed": self._seed,
            "num_designs": int(self._order.size),
            "bounds_ignored": self._bounds_ignored,
        }
