"""Correct & Smooth: predictions corrected by the errors on training nodes, then smoothed with the training labels.

Both spread along S = Â for K steps, X(k) = (1-α) X(0) + α S X(k-1), the restart going to X(0). With Z the predicted
probabilities and Y the one-hot labels of the training nodes L:

    correct  E(0) = Y - Z on L, 0 elsewhere; E spreads, each value kept in -1..1; Z' = Z + s E(K), where node i has
             s_i = mean of |E(0)| over the numbers of L, divided by the sum of |E(K)_i| (1 where that is above 1000)
    smooth   G(0) = Y on L, Z' elsewhere; G spreads, each value kept in 0..1

Only labels of training nodes enter. Rows of the result are to be divided by their sums.
Source: Huang et al. 2021 (Correct and Smooth), autoscale variant. Theirs has no self-loops: `_loops0` is theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from search_space.errors import DesignError
from search_space.graph_operators.augmented import AugmentedAdjacency

Floats = NDArray[np.float32]
Step = Callable[[Floats, Floats], Floats]
"""From X(k-1) and X(0), each (N, w), to X(k)."""

LARGEST_SCALE = 1000.0


@dataclass(frozen=True, slots=True)
class CorrectAndSmooth:
    """Post-processing that knows the training labels.

    Attributes:
        alpha: α of both propagations, the share that comes from the neighbours.
        low: S.
    Raises:
        DesignError: α is not in (0, 1).
    """

    alpha: float
    low: AugmentedAdjacency = field(default_factory=AugmentedAdjacency)

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise DesignError(f"Correct & Smooth needs 0 < alpha < 1, got alpha={self.alpha}")

    @property
    def name(self) -> str:
        """`cs` with α, as in `cs0.8`."""
        return f"cs{self.alpha:g}{self.low.suffix}"

    @property
    def matrix_key(self) -> str:
        """That of S."""
        return self.low.matrix_key

    @property
    def restart(self) -> float:
        """1 - α."""
        return 1.0 - self.alpha

    def matrix(self, adjacency: sparse.csr_array) -> sparse.csr_array:
        """S, shape (N, N)."""
        return self.low.matrix(adjacency)


def correct_and_smooth(
    probabilities: Floats, nodes: NDArray[np.int64], classes: NDArray[np.int64], steps: int, step: Step
) -> Floats:
    """Correct and smooth the predictions of S repeats.

    Args:
        probabilities: (N, S, C); not modified.
        nodes: (n,) training nodes.
        classes: (n,) their labels, 0 to C - 1.
        steps: K of either propagation.
        step: one step of it for (N, S·C), the restart included.
    Returns:
        (N, S, C), not negative; rows do not sum to one.
    """
    truth = np.zeros((nodes.size, probabilities.shape[2]), np.float32)
    truth[np.arange(nodes.size), classes] = 1.0
    errors = np.zeros_like(probabilities)
    errors[nodes] = truth[:, None, :] - probabilities[nodes]
    mean = np.abs(errors[nodes]).mean(axis=(0, 2), dtype=np.float64)  # (S,)
    spread = _spread(errors, steps, step, -1.0)
    size = np.abs(spread).sum(axis=2, dtype=np.float64)  # (N, S)
    scale = np.divide(mean, size, out=np.full_like(size, np.inf), where=size > 0.0)
    scale[scale > LARGEST_SCALE] = 1.0
    corrected: Floats = probabilities + spread * scale[:, :, None].astype(np.float32)
    corrected[nodes] = truth[:, None, :]
    return _spread(corrected, steps, step, 0.0)


def _spread(start: Floats, steps: int, step: Step, least: float) -> Floats:
    """(N, S, C) after `steps` steps, each value kept in least..1 after each of them."""
    N, S, C = start.shape
    flat = np.ascontiguousarray(start).reshape(N, S * C)
    current = flat
    for _ in range(steps):
        current = step(current, flat)
        np.clip(current, np.float32(least), np.float32(1.0), out=current)
    return current.reshape(N, S, C)
