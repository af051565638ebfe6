"""High-pass: X(k) = (I - Â) X(k-1), what sets a node apart from its neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from search_space.graph_operators.augmented import AugmentedAdjacency
from search_space.graph_operators.base import with_diagonal


@dataclass(frozen=True, slots=True)
class HighPass:
    """The Laplacian L = I - Â as a step, for graphs whose neighbours tend to differ.

    Its eigenvalues lie in 0..2 (r = 1/2), so values may grow with every step, at most twofold. A node without edges
    has no neighbours to differ from: its features vanish.
    Source: Luan et al. 2022 (ACM-GNN) and Bo et al. 2021 (FAGCN), high-pass filters.

    Attributes:
        low: the adjacency Â that is taken away.
    """

    low: AugmentedAdjacency = field(default_factory=AugmentedAdjacency)

    @property
    def name(self) -> str:
        """`highpass`."""
        return f"highpass{self.low.suffix}"

    @property
    def matrix_key(self) -> str:
        """The name."""
        return self.name

    @property
    def restart(self) -> float:
        """0."""
        return 0.0

    def matrix(self, adjacency: sparse.csr_array) -> sparse.csr_array:
        """I - Â, shape (N, N)."""
        low = self.low.matrix(adjacency)
        low.data *= np.float32(-1.0)
        return with_diagonal(low, 1.0)
