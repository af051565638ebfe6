"""Heat kernel: X(k) = ((1-δ) I + δ Â) X(k-1), so K steps diffuse for the time t = K δ."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from search_space.errors import DesignError
from search_space.graph_operators.augmented import AugmentedAdjacency
from search_space.graph_operators.base import with_diagonal


@dataclass(frozen=True, slots=True)
class HeatKernel:
    """Diffusion of heat, exp(-t L) X with L = I - Â, by explicit Euler steps of length δ: (I - δ L)^K X.

    How far features travel (t) and in how many steps (K) are then two choices: with δ = 1, where the step is that of
    the augmented adjacency, they are one. The truncated series of GDC is another approximation of the same kernel.
    Source: Wang et al. 2021 (DGC), equation (8); Kondor and Lafferty 2002; Gasteiger et al. 2019 (GDC).

    Attributes:
        step: δ.
        low: the adjacency Â that heat flows along.
    Raises:
        DesignError: δ is not in (0, 1).
    """

    step: float
    low: AugmentedAdjacency = field(default_factory=AugmentedAdjacency)

    def __post_init__(self) -> None:
        if not 0.0 < self.step < 1.0:
            raise DesignError(f"a heat step needs 0 < step < 1, got step={self.step}")

    @property
    def name(self) -> str:
        """`heat` with δ, as in `heat0.5`."""
        return f"heat{self.step:g}{self.low.suffix}"

    @property
    def matrix_key(self) -> str:
        """The name: δ is a part of the matrix."""
        return self.name

    @property
    def restart(self) -> float:
        """0."""
        return 0.0

    def matrix(self, adjacency: sparse.csr_array) -> sparse.csr_array:
        """(1-δ) I + δ Â, shape (N, N)."""
        low = self.low.matrix(adjacency)
        low.data *= np.float32(self.step)
        return with_diagonal(low, 1.0 - self.step)
