"""Which designs may be suggested, and in which order where no model ranks them.

Everything here is a pure function of the space, the seed and the settings, so a resumed search sees the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.objectives import Bound, Floats
from search_space.errors import ObjectiveError, ShapeError
from search_space.space import Choice, Codes, Space

Rows = NDArray[np.int64]

_SOBOL_DRAWS = 4096
"""Quasi-random points looked at before the order goes on at random; in a small space most of them are doubles."""


def checked_known(space: Space[Any], known: Mapping[str, Floats]) -> dict[str, Floats]:
    """Values of the known objectives, checked: one finite measured value for each design of the space.

    Raises:
        ShapeError: an array has another length than the space.
        ObjectiveError: a value is NaN or infinite.
    """
    checked: dict[str, Floats] = {}
    for name, values in known.items():
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (len(space),):
            raise ShapeError(f"known values of {name} have shape ({len(space)},), one a design; got {values.shape}")
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ObjectiveError(f"known values are finite, but {name} of {space.design(row)} is {values[row]}")
        checked[name] = values
    return checked


def excess(bounds: Sequence[Bound], known: Mapping[str, Floats], num_designs: int) -> Floats:
    """How far each design is above the bounds on known objectives, relative to the bound and summed; 0 keeps them all.

    Args:
        known: measured values of shape (num_designs,); bounds on other objectives are left to the caller.
    """
    total = np.zeros(num_designs)
    for bound in bounds:
        if bound.objective.name in known:
            scale = abs(bound.at_most) if bound.at_most else 1.0
            total += np.maximum(known[bound.objective.name] - bound.at_most, 0.0) / scale
    return total


def permitted(over: Floats) -> Rows:
    """Rows that may be suggested: those that keep the known bounds; where none does, all rows, nearest first.

    Args:
        over: (len(space),) as from `excess`.
    """
    keeping = np.flatnonzero(over == 0.0)
    return keeping if keeping.size else np.argsort(over, kind="stable")


def random_order(num_designs: int, seed: int) -> Rows:
    """All rows in an order drawn from the seed."""
    return np.random.default_rng(np.random.SeedSequence([seed, 1])).permutation(num_designs)


class InitialOrder:
    """Rows in the order in which a search without a model tries them.

    First the space's starting designs and those that did well elsewhere, then a scrambled Sobol sequence over the
    choices mapped to designs that are distinct and listed, then the rest at random.

    Args:
        warm_start: designs that did well elsewhere, all in the space.
    """

    def __init__(self, space: Space[Any], seed: int, warm_start: Sequence[Any] = ()) -> None:
        self._space, self._warm_start = space, tuple(warm_start)
        self._seed = seed
        self._found: list[int] = []
        self._source = self._generate()

    def __iter__(self) -> Iterator[int]:
        place = 0
        while True:
            if place == len(self._found):
                following = next(self._source, None)
                if following is None:
                    return
                self._found.append(following)
            yield self._found[place]
            place += 1

    def _generate(self) -> Iterator[int]:
        seen: set[int] = set()
        for source in (self._starting, self._sobol, self._random):
            for row in source():
                if row not in seen:
                    seen.add(row)
                    yield row

    def _starting(self) -> Iterator[int]:
        for design in (*self._space.starting_designs(), *self._warm_start):
            yield self._space.index(design)

    def _sobol(self) -> Iterator[int]:
        from scipy.stats import qmc

        choices = self._space.choices
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, 0]))
        points = qmc.Sobol(len(choices), scramble=True, rng=rng).random(_SOBOL_DRAWS)
        yield from (int(row) for row in find_rows(self._space.codes(), choices, to_codes(points, choices)) if row >= 0)

    def _random(self) -> Iterator[int]:
        yield from (int(row) for row in random_order(len(self._space), self._seed))


def to_codes(points: Floats, choices: Sequence[Choice]) -> Codes:
    """Map points of the unit cube to codes: each axis is cut into as many parts as its choice has values.

    Args:
        points: (n, d) in [0, 1).
    Returns:
        (n, d) codes, -1 where the parent of a choice is switched off.
    """
    sizes = np.array([len(choice.values) for choice in choices])
    codes: Codes = np.minimum(points * sizes, sizes - 1).astype(np.int16)
    switch_off(codes, choices)
    return codes


def switch_off(codes: Codes, choices: Sequence[Choice]) -> None:
    """Write -1, in place, where a choice has no value or its parent is switched off. Codes of shape (n, d)."""
    column = {choice.name: j for j, choice in enumerate(choices)}
    for j, choice in enumerate(choices):
        if not choice.values:
            codes[:, j] = -1
        elif choice.parent is not None:
            parent = column[choice.parent]
            off = np.array([value == 0 for value in choices[parent].values])
            codes[off[codes[:, parent]] | (codes[:, parent] < 0), j] = -1


def find_rows(codes: Codes, choices: Sequence[Choice], wanted: Codes) -> Rows:
    """Rows of `codes` that equal each row of `wanted`, -1 where there is none. Shapes (N', d), (n, d) -> (n,)."""
    sizes = np.array([len(choice.values) + 1 for choice in choices], dtype=np.int64)
    weights = np.concatenate((np.cumprod(sizes[::-1])[::-1][1:], [1]))
    keys = (codes.astype(np.int64) + 1) @ weights
    wanted_keys = (wanted.astype(np.int64) + 1) @ weights
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys, wanted_keys, sorter=order), len(keys) - 1)
    rows = order[place]
    found: Rows = np.where(keys[rows] == wanted_keys, rows, -1)
    return found
