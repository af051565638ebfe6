"""Searchers by name, as the command line and the Python interface choose them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from engines.objectives import Bound, Floats, Objective
from engines.search.base import Searcher
from search_space.errors import ConfigError
from search_space.space import Space

D = TypeVar("D")

SEARCHERS = ("ehvi", "random", "nsga2")


def create_searcher(
    name: str,
    space: Space[D],
    objectives: Sequence[Objective],
    *,
    known: Mapping[str, Floats],
    seed: int,
    num_initial: int = 16,
    bounds: Sequence[Bound] = (),
    warm_start: Sequence[D] = (),
) -> Searcher[D]:
    """Make a searcher.

    Args:
        name: one of `SEARCHERS`.
        known: measured values, shape (len(space),), of every objective that is known for all designs beforehand.
        seed, bounds: see the searcher.
        num_initial: trials before a model is used; the size of a generation of `nsga2`; nothing to random search.
        warm_start: designs that did well elsewhere, tried early; nothing to random search, the plain baseline.
    Raises:
        ConfigError: there is no searcher of that name.
        SpaceError: a design to start with is not in the space.
        ShapeError, ObjectiveError: the other arguments do not fit together.
    """
    if name == "ehvi":
        from engines.search.ehvi import EHVISearcher

        return EHVISearcher(
            space,
            objectives,
            known=known,
            seed=seed,
            num_initial=num_initial,
            bounds=bounds,
            warm_start=warm_start,
        )
    if name == "random":
        from engines.search.random_search import RandomSearcher

        return RandomSearcher(space, seed=seed, known=known, bounds=bounds)
    if name == "nsga2":
        from engines.search.nsga2 import NSGA2Searcher

        return NSGA2Searcher(
            space,
            objectives,
            known=known,
            seed=seed,
            population_size=num_initial,
            bounds=bounds,
            warm_start=warm_start,
        )
    raise ConfigError(f"unknown searcher {name!r}; choose from: {', '.join(SEARCHERS)}")
