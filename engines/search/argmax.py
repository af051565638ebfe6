"""The design with the largest EHVI among all that may be suggested, without a variance for each of them.

A cheap upper bound on EHVI (from posterior means and upper bounds on deviations) ranks the designs, and blocks of them
are looked at from the top down until no bound is left above the best exact value. EHVI grows with every deviation, so
within a block EHVI itself at the upper bounds on deviations is a sharper bound; only the designs that pass it as well
are given exact deviations, each of which costs a triangular solve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.objectives import Floats
from engines.search.acquisition import log_ehvi, log_ehvi_bound, log_feasible, open_boxes
from engines.search.warping import Warp

_FIRST_BLOCK = 128
_LARGEST_BLOCK = 4096
_DIGITS = 9  # of a log EHVI that count: below them rounding decides, and equal designs must stay equal


@dataclass(frozen=True)
class Predictions:
    """What is predicted for every design of the space.

    Attributes:
        means: (N', m) gains, exact where known.
        uncertain: (m,) which objectives have a posterior.
        largest: (N', m) upper bounds on the deviations, 0 where known.
        deviations: for each uncertain objective in order, the exact deviations of given rows.
        at_least: (m,) gains that a design must reach, -inf where unbounded; used for uncertain objectives only.
    """

    means: Floats
    uncertain: NDArray[np.bool_]
    largest: Floats
    deviations: Sequence[Callable[[NDArray[np.int64]], Floats]]
    at_least: Floats

    def exact(self, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Means and exact deviations of given rows, each (len(rows), m)."""
        deviations = np.zeros((len(rows), self.means.shape[1]))
        for j, of_rows in zip(np.flatnonzero(self.uncertain), self.deviations, strict=True):
            deviations[:, j] = of_rows(rows)
        return self.means[rows], deviations


@dataclass(frozen=True)
class Best:
    """The winning row, the logarithm of its EHVI times its probability of keeping the bounds, and its prediction."""

    row: int
    log_value: float
    mean: Floats
    deviation: Floats

    def unwarped(self, warps: Sequence[Warp]) -> Best:
        """The same in gains, from a warp for each objective; a deviation is carried over by the slope at the mean."""
        mean = np.array([float(warp.inverse(self.mean[j])) for j, warp in enumerate(warps)])
        slopes = np.array([float(warp.slope(mean[j])) for j, warp in enumerate(warps)])
        return Best(self.row, self.log_value, mean, self.deviation / slopes)


def best_design(predictions: Predictions, rows: NDArray[np.int64], front: Floats, reference: Floats) -> Best | None:
    """Find the best of `rows`; equal values go to the lower row.

    Args:
        rows: (r,) ascending rows that may be suggested.
        front: (k, m) gains of the present front; reference: (m,).
    Returns:
        None when no design can improve the hypervolume.
    """
    bound = log_ehvi_bound(predictions.means[rows], predictions.largest[rows], predictions.uncertain, front, reference)
    boxes = open_boxes(front, reference)
    best: Best | None = None
    left = np.flatnonzero(bound > -np.inf)
    size = _FIRST_BLOCK
    while left.size:
        if left.size > size:
            left = left[np.argpartition(-bound[left], size)]
        block, left = np.sort(rows[left[:size]]), left[size:]
        if best is not None:
            sharper = log_ehvi(predictions.means[block], predictions.largest[block], *boxes)
            block = block[sharper > best.log_value - 10.0**-_DIGITS]
        if block.size:
            best = _better(best, _best_of(predictions, block, boxes))
        if best is not None:
            left = left[bound[left] > best.log_value - 10.0**-_DIGITS]
        size = min(2 * size, _LARGEST_BLOCK)
    return best


def _best_of(predictions: Predictions, block: NDArray[np.int64], boxes: tuple[Floats, Floats]) -> Best | None:
    mean, deviation = predictions.exact(block)
    value = log_ehvi(mean, deviation, *boxes)
    for j in np.flatnonzero(predictions.uncertain & np.isfinite(predictions.at_least)):
        value += log_feasible(mean[:, j], deviation[:, j], float(predictions.at_least[j]))
    value = np.round(value, _DIGITS)
    top = int(np.argmax(value))
    if not np.isfinite(value[top]):
        return None
    return Best(int(block[top]), float(value[top]), mean[top], deviation[top])


def _better(one: Best | None, other: Best | None) -> Best | None:
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda best: (best.log_value, -best.row))
