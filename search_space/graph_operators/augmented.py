"""Augmented normalised adjacency: X(k) = Â X(k-1), Â = D̃^(r-1) (A + I) D̃^(-r) with r = 1/2."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import sparse

from search_space.graph_operators.base import normalised_with_self_loops


@dataclass(frozen=True, slots=True)
class AugmentedAdjacency:
    """The low-pass step of GCN and SGC. Source: Kipf and Welling 2017; Wu et al. 2019; PaSca, section 3.1."""

    @property
    def name(self) -> str:
        """`augmented`."""
        return "augmented"

    @property
    def matrix_key(self) -> str:
        """`augmented`, shared with personalised PageRank."""
        return "augmented"

    @property
    def restart(self) -> float:
        """0."""
        return 0.0

    def matrix(self, adjacency: sparse.csr_array) -> sparse.csr_array:
        """Â, shape (N, N)."""
        return normalised_with_self_loops(adjacency)
