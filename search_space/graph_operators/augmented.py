"""Augmented normalised adjacency: X(k) = Â X(k-1), Â = D̃^(r-1) (A + w I) D̃^(-r), as usual r = 1/2 and w = 1."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import sparse

from search_space.graph_operators.base import normalised_with_self_loops
from search_space.names import USUAL_EXPONENT, USUAL_LOOPS, AggregatorName


@dataclass(frozen=True, slots=True)
class AugmentedAdjacency:
    """The low-pass step of GCN and SGC. Source: Kipf and Welling 2017; Wu et al. 2019; PaSca, section 3.1.

    Attributes:
        exponent: r; 0 takes the mean over neighbours (random walk), 1 divides what a node sends by its degree.
        loops: w, how much a node counts beside a neighbour.
    Raises:
        DesignError: r is not in 0..1, or w is negative.
    """

    exponent: float = USUAL_EXPONENT
    loops: float = USUAL_LOOPS

    def __post_init__(self) -> None:
        AggregatorName("augmented", None, self.exponent, self.loops)

    @property
    def suffix(self) -> str:
        """What the name says of r and w; empty as usual."""
        return AggregatorName("augmented", None, self.exponent, self.loops).normalisation

    @property
    def name(self) -> str:
        """`augmented`."""
        return f"augmented{self.suffix}"

    @property
    def matrix_key(self) -> str:
        """The name, shared with personalised PageRank."""
        return self.name

    @property
    def restart(self) -> float:
        """0."""
        return 0.0

    def matrix(self, adjacency: sparse.csr_array) -> sparse.csr_array:
        """Â, shape (N, N)."""
        return normalised_with_self_loops(adjacency, self.exponent, self.loops)
