"""The whole space as pairs of parts, so that a product kernel needs small tables instead of one row a design.

The choices are divided into a left and a right set. A design is a pair (left part, right part); the paper's 153,510
designs are pairs of 301 pre-processing parts and 510 parts of depth and post-processing. A product kernel splits in the
same way, so a posterior mean over the whole space is one small matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engines.objectives import Floats
from search_space.space import Codes

Tables = Sequence[Floats]
"""One similarity table a choice, shape (values + 1, values + 1); row 0 stands for code -1."""


class Factors:
    """All N' designs of a space as pairs of parts.

    Args:
        codes: (N', d) codes of every design.
    Attributes:
        left, right: column numbers of the two sets of choices.
        left_parts, right_parts: distinct codes of each set, shapes (A, dl) and (B, dr).
        left_of, right_of: (N',) the parts of each design.
    """

    def __init__(self, codes: Codes) -> None:
        d = codes.shape[1]
        # Cut where the two tables together are smallest: what has to be filled for each observation is A + B.
        cuts = [(_num_parts(codes[:, :c]) + _num_parts(codes[:, c:]), c) for c in range(1, d)] or [(0, d)]
        cut = min(cuts)[1]
        self.left, self.right = range(cut), range(cut, d)
        self.left_parts, self.left_of = _parts(codes[:, :cut])
        self.right_parts, self.right_of = _parts(codes[:, cut:])

    def __len__(self) -> int:
        return len(self.left_of)

    def sides(self, tables: Tables, codes: Codes) -> tuple[Floats, Floats]:
        """Similarities of the parts to the designs in `codes` (n, d): shapes (A, n) and (B, n)."""
        return (
            cross([tables[j] for j in self.left], self.left_parts, codes[:, self.left.start : self.left.stop]),
            cross([tables[j] for j in self.right], self.right_parts, codes[:, self.right.start : self.right.stop]),
        )

    def weighted_sum(self, sides: tuple[Floats, Floats], weights: Floats) -> Floats:
        """Σ_i weights_i · similarity(x, x_i) for every design x, shape (N',)."""
        left, right = sides
        grid: Floats = (left * weights) @ right.T
        return grid[self.left_of, self.right_of]

    def part_similarities(self, tables: Tables) -> tuple[Floats, Floats]:
        """Similarities of the parts to one another: shapes (A, A) and (B, B)."""
        left = [tables[j] for j in self.left]
        right = [tables[j] for j in self.right]
        return cross(left, self.left_parts, self.left_parts), cross(right, self.right_parts, self.right_parts)

    def grid(self, weights: Floats) -> Floats:
        """Weights of the designs, (N',), laid out by their parts, (A, B); 0 where the space has no such pair."""
        grid = np.zeros((len(self.left_parts), len(self.right_parts)))
        grid[self.left_of, self.right_of] = weights
        return grid

    def similarities(self, sides: tuple[Floats, Floats], rows: NDArray[np.int64]) -> Floats:
        """Similarities of the designs in `rows` to those that `sides` was made for, shape (len(rows), n)."""
        left, right = sides
        product: Floats = left[self.left_of[rows]]
        product *= right[self.right_of[rows]]
        return product


def cross(tables: Tables, one: Codes, other: Codes) -> Floats:
    """Product over choices of table entries, for every pair of rows: codes (a, d) and (b, d) -> (a, b)."""
    product = np.ones((len(one), len(other)))
    for j, table in enumerate(tables):
        product *= table[np.ix_(one[:, j] + 1, other[:, j] + 1)]
    return product


def _num_parts(codes: Codes) -> int:
    return len(_parts(codes)[0])


def _parts(codes: Codes) -> tuple[Codes, NDArray[np.int64]]:
    if codes.shape[1] == 0:
        return codes[:1], np.zeros(len(codes), dtype=np.int64)
    parts, place = np.unique(codes, axis=0, return_inverse=True)
    return parts, place.reshape(-1).astype(np.int64)
