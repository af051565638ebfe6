"""The design with the largest EHVI among all that may be suggested, without a variance for each of them.

A cheap upper bound on EHVI (from posterior means and the prior deviation) ranks the designs; exact values are computed
from the top down, a block at a time, until no bound is left above the best exact value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.objectives import Floats
from engines.search.acquisition import log_ehvi, log_ehvi_bound, log_feasible, open_boxes

_FIRST_BLOCK = 2048
_LARGEST_BLOCK = 16384


@dataclass(frozen=True)
class Predictions:
    """What is predicted for every design of the space.

    Attributes:
        means: (N', m) gains, exact where known.
        uncertain: (m,) which objectives have a posterior.
        largest: (m,) upper bounds on the deviations, 0 where known.
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


def best_design(predictions: Predictions, rows: NDArray[np.int64], front: Floats, reference: Floats) -> Best | None:
    """Find the best of `rows`; equal values go to the lower row.

    Args:
        rows: (r,) ascending rows that may be suggested.
        front: (k, m) gains of the present front; reference: (m,).
    Returns:
        None when no design can improve the hypervolume.
    """
    means = predictions.means[rows]
    largest = np.broadcast_to(predictions.largest, means.shape)
    bound = log_ehvi_bound(means, largest, predictions.uncertain, front, reference)
    lower, upper = open_boxes(front, reference)
    order = np.argsort(-bound, kind="stable")
    best: Best | None = None
    start, size = 0, _FIRST_BLOCK
    while start < len(order) and bound[order[start]] > (-np.inf if best is None else best.log_value):
        block = np.sort(rows[order[start : start + size]])
        mean, deviation = predictions.exact(block)
        value = log_ehvi(mean, deviation, lower, upper)
        for j in np.flatnonzero(predictions.uncertain & np.isfinite(predictions.at_least)):
            value += log_feasible(mean[:, j], deviation[:, j], float(predictions.at_least[j]))
        top = int(np.argmax(value))
        found = Best(int(block[top]), float(value[top]), mean[top], deviation[top])
        if np.isfinite(found.log_value) and (
            best is None
            or found.log_value > best.log_value
            or (found.log_value == best.log_value and found.row < best.row)
        ):
            best = found
        start, size = start + size, min(2 * size, _LARGEST_BLOCK)
    return best
