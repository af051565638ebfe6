"""Personalised PageRank: X(k) = (1-α) Â X(k-1) + α X(0); the restart goes to X(0)."""

from __future__ import annotations

from dataclasses import dataclass, field

from scipy import sparse

from search_space.errors import DesignError
from search_space.graph_operators.augmented import AugmentedAdjacency


@dataclass(frozen=True, slots=True)
class PersonalizedPageRank:
    """Propagation that returns to the node's own features. Source: Gasteiger et al. 2019 (APPNP), equation (5).

    Multiplying by (1-α) Â + α I instead, as some code does, is a lazy walk without restart: another operator from the
    second step on.

    Attributes:
        alpha: restart probability α.
        low: Â.
    Raises:
        DesignError: α is not in (0, 1).
    """

    alpha: float
    low: AugmentedAdjacency = field(default_factory=AugmentedAdjacency)

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise DesignError(f"personalised PageRank needs 0 < alpha < 1, got alpha={self.alpha}")

    @property
    def name(self) -> str:
        """`ppr` with α, as in `ppr0.1`."""
        return f"ppr{self.alpha:g}{self.low.suffix}"

    @property
    def matrix_key(self) -> str:
        """That of Â, which is the matrix for every α."""
        return self.low.matrix_key

    @property
    def restart(self) -> float:
        """α."""
        return self.alpha

    def matrix(self, adjacency: sparse.csr_array) -> sparse.csr_array:
        """Â, shape (N, N)."""
        return self.low.matrix(adjacency)
