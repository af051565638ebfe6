"""A kernel between all designs of a space and a few observed ones, without a row for each design.

A term of the kernel is a product of similarities, and each similarity looks at a few columns. The similarities are
divided into a left and a right set; a design is then a pair (left part, right part), and the term is the product of two
small tables. The paper's 153,510 designs are pairs of 301 pre-processing parts and 510 parts of depth and
post-processing, so a weighted sum over observations, for all designs at once, is one small matrix product.

Shapes: N' designs, D features of each, n observed designs; A left and B right parts of a term.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.objectives import Floats
from engines.search.kernel import Kernel, Term

Rows = NDArray[np.int64]
Table = tuple[Floats, Floats]
"""Similarities of left and of right parts to observed designs, shapes (A, n) and (B, n)."""


@dataclass(frozen=True)
class _Side:
    """Half of a term.

    Attributes:
        factors: positions of its similarities in the term.
        parts: the distinct parts as full rows of features, (A, D).
        of_design: each design's part, (N',).
        kinds: for each similarity the distinct rows among the parts' columns and the one that each part has, (A,).
    """

    factors: tuple[int, ...]
    parts: Floats
    of_design: Rows
    kinds: tuple[tuple[Floats, Rows], ...]


class WholeSpace:
    """All N' designs of a space, prepared for one kernel.

    Args:
        features: (N', D) codes, then descriptors, of every design.
        related: whether the designs are many combinations of few parts. Where they are some designs of a larger space
            that is not so, and each of them is a part of its own.
    """

    def __init__(self, kernel: Kernel, features: Floats, *, related: bool = True) -> None:
        self.kernel, self.features = kernel, features
        self._sides = [(_halves if related else _whole)(term, features) for term in kernel.terms]

    def __len__(self) -> int:
        return len(self.features)

    def tables(self, parameters: Floats, X: Floats) -> list[Table]:
        """For each term its tables against the designs with features X (n, D); the variance is in the left one."""
        tables = []
        for term, (one, other), (variance, of_factors) in zip(
            self.kernel.terms, self._sides, self.kernel.split(parameters), strict=True
        ):
            left, right = (_table(term, of_factors, side, X) for side in (one, other))
            tables.append((left * variance, right))
        return tables

    def weighted_sum(self, tables: Sequence[Table], weights: Floats) -> Floats:
        """Σ_i weights_i · k(x, x_i) for every design x, shape (N',)."""
        total = np.zeros(len(self))
        for (left, right), (one, other) in zip(tables, self._sides, strict=True):
            grid = (left * weights) @ right.T
            total += grid[one.of_design, other.of_design]
        return total

    def covariances(self, tables: Sequence[Table], rows: Rows) -> Floats:
        """k between the designs in `rows` and those that the tables were made for, shape (len(rows), n)."""
        products = []
        for (left, right), (one, other) in zip(tables, self._sides, strict=True):
            product: Floats = left[one.of_design[rows]]
            product *= right[other.of_design[rows]]
            products.append(product)
        return products[0] if len(products) == 1 else np.sum(products, axis=0)

    def toward(self, tables: Sequence[Table], weights: Floats) -> Floats:
        """Σ_x weights_x · k(x, x_i) over all designs x, weights (N',), for each observed x_i, shape (n,)."""
        total = np.zeros(tables[0][0].shape[1])
        for (left, right), (one, other) in zip(tables, self._sides, strict=True):
            grid = _grid(one, other, weights)
            if (factors := _factors(grid)) is not None:
                total += (factors[0] @ left) * (factors[1] @ right)
            else:
                total += np.einsum("bi,bi->i", grid.T @ left, right)
        return total

    def between_parts(self, parameters: Floats) -> list[Table]:
        """For each term the similarities of its left parts (A, A), with the variance, and of its right ones (B, B)."""
        tables = []
        for term, (one, other), (variance, of_factors) in zip(
            self.kernel.terms, self._sides, self.kernel.split(parameters), strict=True
        ):
            left, right = (_table(term, of_factors, side, side.parts) for side in (one, other))
            tables.append((left * variance, right))
        return tables

    def quadratic(self, tables: Sequence[Table], weights: Floats) -> float:
        """Σ_x Σ_x' weights_x · weights_x' · k(x, x') over all pairs of designs, given `between_parts`."""
        total = 0.0
        for (left, right), (one, other) in zip(tables, self._sides, strict=True):
            grid = _grid(one, other, weights)
            if (factors := _factors(grid)) is not None:
                total += float(factors[0] @ left @ factors[0]) * float(factors[1] @ right @ factors[1])
            else:
                total += float((grid * (left @ grid @ right)).sum())
        return total


def _grid(one: _Side, other: _Side, weights: Floats) -> Floats:
    """Weights of the designs (N',) added up by their two parts, (A, B); 0 where the space has no such pair."""
    shape = (len(one.parts), len(other.parts))
    place = one.of_design * shape[1] + other.of_design
    grid: Floats = np.bincount(place, weights, shape[0] * shape[1]).astype(np.float64).reshape(shape)
    return grid


def _factors(grid: Floats) -> tuple[Floats, Floats] | None:
    """u (A,) and v (B,) of a grid u v', such as that of all designs with one value of a choice; None if it is none."""
    largest = np.unravel_index(np.abs(grid).argmax(), grid.shape)
    peak = grid[largest]
    if peak == 0.0:
        return np.zeros(grid.shape[0]), np.zeros(grid.shape[1])
    u, v = grid[:, largest[1]] / peak, grid[largest[0]]
    return (u, v) if np.abs(grid - np.outer(u, v)).max() <= 1e-12 * abs(peak) else None


def _table(term: Term, parameters: Sequence[Floats], side: _Side, X: Floats) -> Floats:
    """Product of the side's similarities between its parts and X, shape (parts, n)."""
    product = np.ones((len(side.parts), len(X)))
    for f, (rows, row_of) in zip(side.factors, side.kinds, strict=True):
        factor = term.factors[f]
        seen = X[:, factor.columns]
        first, seen_of = _distinct(seen)
        product *= factor.between(parameters[f], rows, seen[first])[row_of[:, None], seen_of[None, :]]
    return product


def _whole(term: Term, features: Floats) -> tuple[_Side, _Side]:
    """All of a term's similarities on the left, with a part for each design."""
    rows = np.arange(len(features))
    every = tuple(range(len(term.factors)))
    return _side(term, every, features, rows), _side(term, (), features[:1], np.zeros_like(rows))


def _halves(term: Term, features: Floats) -> tuple[_Side, _Side]:
    """Cut a term's similarities, in their order, where the two tables together are smallest."""
    kinds = [_distinct(features[:, factor.columns])[1] for factor in term.factors]
    # Each design's part by the similarities before a cut, and by those after it, for every cut.
    before = _parts(kinds, len(features))
    after = _parts(kinds[::-1], len(features))[::-1]
    cut = min(range(len(before)), key=lambda c: int(before[c].max()) + int(after[c].max()))
    halves = ((range(cut), before[cut]), (range(cut, len(kinds)), after[cut]))
    one, other = (_side(term, tuple(half), features[_first(part)], part) for half, part in halves)
    return one, other


def _parts(kinds: Sequence[Rows], num_designs: int) -> list[Rows]:
    """Numbers that are equal where the first 0, 1, .. kinds of two designs are; each (N',), counted from 0."""
    found = [np.zeros(num_designs, dtype=np.int64)]
    for kind in kinds:
        numbers = found[-1] * (int(kind.max()) + 1) + kind
        if numbers.max() < 8 * num_designs:  # as for choices: counting is quicker than sorting
            found.append((np.cumsum(np.bincount(numbers) > 0) - 1)[numbers])
        else:
            found.append(np.unique(numbers, return_inverse=True)[1].reshape(-1))
    return found


def _first(part: Rows) -> Rows:
    """The first design of each part."""
    first = np.empty(int(part.max()) + 1, dtype=np.int64)
    first[part[::-1]] = np.arange(len(part))[::-1]  # of several assignments to one place, the last one stays
    return first


def _side(term: Term, factors: tuple[int, ...], parts: Floats, of_design: Rows) -> _Side:
    kinds = []
    for f in factors:
        columns = parts[:, term.factors[f].columns]
        first, row_of = _distinct(columns)
        kinds.append((columns[first], row_of))
    return _Side(factors, parts, of_design, tuple(kinds))


def _distinct(rows: Floats) -> tuple[Rows, Rows]:
    """First row of each distinct kind, and each row's kind; all rows are alike when they have no columns."""
    if not rows.shape[1]:
        return np.zeros(min(len(rows), 1), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    # Rows as strings of bytes, sorted at once; adding 0 turns -0 into 0, whose bytes differ.
    strings = np.ascontiguousarray(rows + 0.0).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    _, first, place = np.unique(strings, return_index=True, return_inverse=True)
    return first.astype(np.int64), place.reshape(-1).astype(np.int64)
