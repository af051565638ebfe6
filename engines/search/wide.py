"""Searching a space that is too large to list: candidates are sampled and reached step by step, not enumerated.

What the searchers of listed spaces do with rows is done here with designs: candidates are the neighbours of the present
front and designs drawn at random, and from the best of them a local search walks on. Everything is a pure function of
the history, the seed and the settings, so a resumed search suggests what the uninterrupted one would have.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from engines.history import History
from engines.objectives import Bound, Floats
from engines.search.base import Suggestion
from engines.search.candidates import excess, to_codes
from engines.search.reference import Extents
from search_space.errors import SpaceError
from search_space.space import Choice, Codes, Unlisted

D = TypeVar("D")
D_contra = TypeVar("D_contra", contravariant=True)

_SOBOL_DRAWS = 1024
_DRAWS = 64
"""Random designs looked at for one that keeps the bounds and is new."""
_MOST_DRAWS = 64
"""How often they are drawn before the nearest to the bounds is taken."""


class KnownCosts(Protocol[D_contra]):
    """Objectives that are known for every design beforehand, computed where they are asked for."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def of(self, designs: Sequence[D_contra]) -> dict[str, Floats]:
        """Measured values of each objective, arrays of shape (len(designs),)."""
        ...

    def extents(self, bounds: Sequence[Bound]) -> Extents:
        """Least and largest value of each objective over the designs that keep the bounds."""
        ...


class NothingKnown:
    """Known costs of a search that measures everything."""

    @property
    def names(self) -> tuple[str, ...]:
        """None."""
        return ()

    def of(self, designs: Sequence[Any]) -> dict[str, Floats]:
        """Nothing."""
        return {}

    def extents(self, bounds: Sequence[Bound]) -> Extents:
        """Of nothing."""
        return {}


class Pool(Generic[D]):
    """Some designs of a large space, as a finite space whose rows are their places.

    Args:
        space: that holds them.
        designs: in order; doubles count once.
    """

    def __init__(self, space: Unlisted[D], designs: Iterable[D]) -> None:
        self._space = space
        self.designs = list(dict.fromkeys(designs))
        self._rows = {design: row for row, design in enumerate(self.designs)}

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Those of the large space."""
        return self._space.choices

    def __len__(self) -> int:
        return len(self.designs)

    def __contains__(self, design: object) -> bool:
        return design in self._rows

    def codes(self) -> Codes:
        """Codes of all its designs, (len(self), d)."""
        return self._space.encode(self.designs)

    def design(self, index: int) -> D:
        """The design at a place."""
        return self.designs[index]

    def index(self, design: D) -> int:
        """Place of a design.

        Raises:
            SpaceError: it is not among them.
        """
        if design not in self._rows:
            raise SpaceError(f"{design} is not among the {len(self)} designs at hand")
        return self._rows[design]

    def encode(self, designs: Sequence[D]) -> Codes:
        """Codes of some designs, (n, d)."""
        return self._space.encode(designs)

    def sample(self, count: int, rng: np.random.Generator) -> list[D]:
        """Distinct designs drawn uniformly; all of them when there are fewer."""
        rows = rng.choice(len(self), size=min(count, len(self)), replace=False)
        return [self.designs[int(row)] for row in rows]

    def neighbours(self, design: D) -> list[D]:
        """Those of the large space that are at hand."""
        return [other for other in self._space.neighbours(design) if other in self._rows]

    def starting_designs(self) -> list[D]:
        """Those of the large space that are at hand."""
        return [design for design in self._space.starting_designs() if design in self._rows]


class InitialDesigns(Generic[D]):
    """Designs in the order in which a search without a model tries them.

    First the space's starting designs and those that did well elsewhere, then a scrambled Sobol sequence over the
    choices, then designs drawn at random.

    Args:
        warm_start: designs that did well elsewhere, all in the space.
    """

    def __init__(self, space: Unlisted[D], seed: int, warm_start: Sequence[D] = ()) -> None:
        self._space, self._seed, self._warm_start = space, seed, tuple(warm_start)
        self._found: list[D] = []
        self._source = self._generate()

    def __iter__(self) -> Iterator[D]:
        for place in itertools.count():
            while place >= len(self._found):
                self._found.append(next(self._source))
            yield self._found[place]

    def _generate(self) -> Iterator[D]:
        from scipy.stats import qmc

        space = self._space
        yield from space.starting_designs()
        yield from self._warm_start
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, 0]))
        points = qmc.Sobol(len(space.choices), scramble=True, rng=rng).random(_SOBOL_DRAWS)
        for point in points:
            yield from space.decode(space.settle(to_codes(point[None], space.choices)))
        while True:
            yield from space.sample(_DRAWS, rng)


class Limits(Generic[D]):
    """Bounds on known objectives, checked design by design."""

    def __init__(self, known: KnownCosts[D], bounds: Sequence[Bound]) -> None:
        self._known = known
        self._bounds = tuple(bound for bound in bounds if bound.objective.name in known.names)

    def over(self, designs: Sequence[D]) -> Floats:
        """How far each design is above the bounds, as `candidates.excess`; (len(designs),)."""
        if not self._bounds or not designs:
            return np.zeros(len(designs))
        return excess(self._bounds, self._known.of(designs), len(designs))

    def keeping(self, designs: Sequence[D]) -> list[D]:
        """Those that keep them all."""
        return [design for design, over in zip(designs, self.over(designs), strict=True) if over == 0.0]


def random_design(
    space: Unlisted[D], limits: Limits[D], taken: set[D], rng: np.random.Generator
) -> tuple[D, bool] | None:
    """A new design drawn at random, and whether it keeps the bounds; None where the space has no new one.

    Where many draws hold none that keeps the bounds, the nearest of them is taken.
    """
    if len(taken) >= len(space):
        return None
    nearest: tuple[float, D] | None = None
    for _ in range(_MOST_DRAWS):
        drawn = [design for design in space.sample(_DRAWS, rng) if design not in taken]
        for design, over in zip(drawn, limits.over(drawn).tolist(), strict=True):
            if over == 0.0:
                return design, True
            if nearest is None or over < nearest[0]:
                nearest = over, design
    if nearest is not None:
        return nearest[1], False
    for index in range(len(space)):  # all that is drawn was tried: what is left is rare, and looked for in order
        design = space.design(index)
        if design not in taken:
            return design, limits.over([design])[0] == 0.0
    return None


class WideRandomSearcher(Generic[D]):
    """Proposes designs at random, as the space draws them.

    Args:
        space: what to draw from.
        seed: fixes the designs, with the number of trials before each.
        known, bounds: designs that break a bound on a known objective are not drawn, if others can be found.
    """

    def __init__(self, space: Unlisted[D], *, seed: int, known: KnownCosts[D], bounds: Sequence[Bound] = ()) -> None:
        self._space, self._seed, self._limits = space, seed, Limits(known, bounds)

    def ask(self, history: History[D], count: int = 1) -> list[Suggestion[D]]:
        """Propose designs; see `Searcher.ask`."""
        taken, first = history.attempted(), history.last_number + 1
        found: list[Suggestion[D]] = []
        for number in range(first, first + count):
            rng = np.random.default_rng(np.random.SeedSequence([self._seed, 1, number]))
            drawn = random_design(self._space, self._limits, taken, rng)
            if drawn is None:
                break
            taken.add(drawn[0])
            details: dict[str, Any] = {"method": "random"}
            if not drawn[1]:
                details["fallback"] = "no design drawn keeps the bounds; the nearest was taken"
            found.append(Suggestion(drawn[0], details))
        return found

    def statement(self) -> Mapping[str, Any]:
        """Name, seed and number of designs of the space."""
        return {"searcher": "random", "seed": self._seed, "num_designs": len(self._space), "candidates": "drawn"}
