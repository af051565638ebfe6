"""Searchers by name, as the command line and the Python interface choose them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from engines.objectives import Bound, Floats, Objective
from engines.search.base import Searcher
from engines.search.wide import KnownCosts
from search_space.errors import ConfigError
from search_space.space import Space, Unlisted

D = TypeVar("D")

SEARCHERS = ("ehvi", "random", "nsga2")


def create_searcher(
    name: str,
    space: Space[D],
    objectives: Sequence[Objective],
    *,
    known: Mapping[str, Floats] | KnownCosts[D],
    seed: int,
    num_initial: int = 16,
    bounds: Sequence[Bound] = (),
    warm_start: Sequence[D] = (),
) -> Searcher[D]:
    """Make a searcher.

    Args:
        name: one of `SEARCHERS`.
        known: measured values, shape (len(space),), of every objective that is known for all designs beforehand; what
            computes them for a space that is too large to list.
        seed, bounds: see the searcher.
        num_initial: trials before a model is used; the size of a generation of `nsga2`; nothing to random search.
        warm_start: designs that did well elsewhere, tried early; nothing to random search, the plain baseline.
    Raises:
        ConfigError: there is no searcher of that name.
        SpaceError: a design to start with is not in the space.
        ShapeError, ObjectiveError: the other arguments do not fit together.
    """
    if name not in SEARCHERS:
        raise ConfigError(f"unknown searcher {name!r}; choose from: {', '.join(SEARCHERS)}")
    if isinstance(space, Unlisted):
        assert not isinstance(known, Mapping)
        return _wide_searcher(name, space, objectives, known, seed, num_initial, bounds, warm_start)
    assert isinstance(known, Mapping)
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


def _wide_searcher(
    name: str,
    space: Unlisted[D],
    objectives: Sequence[Objective],
    known: KnownCosts[D],
    seed: int,
    num_initial: int,
    bounds: Sequence[Bound],
    warm_start: Sequence[D],
) -> Searcher[D]:
    """The searcher of that name for a space that is too large to list."""
    if name == "random":
        from engines.search.wide import WideRandomSearcher

        return WideRandomSearcher(space, seed=seed, known=known, bounds=bounds)
    if name == "ehvi":
        from engines.search.wide_ehvi import WideEHVISearcher

        return WideEHVISearcher(
            space,
            objectives,
            known=known,
            seed=seed,
            num_initial=num_initial,
            bounds=bounds,
            warm_start=warm_start,
        )
    from engines.search.wide_nsga2 import WideNSGA2Searcher

    return WideNSGA2Searcher(
        space,
        objectives,
        known=known,
        seed=seed,
        population_size=num_initial,
        bounds=bounds,
        warm_start=warm_start,
    )
