"""Triangle-induced adjacency: entry (i, j) counts the triangles through edge {i, j}; then as the augmented one.

The counts are (A·A)∘A, but A·A has tens of times the non-zeros of A on social graphs and is never formed: each edge is
directed from its end of lower degree to the other, which leaves at most sqrt(2E) arcs out of a node, and the two-arc
paths are looked up in batches among the arcs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from search_space.graph_operators.base import normalised_with_self_loops
from search_space.names import USUAL_EXPONENT, USUAL_LOOPS, AggregatorName

PATHS_PER_BATCH = 1 << 22


@dataclass(frozen=True, slots=True)
class TriangleInducedAdjacency:
    """Propagation along edges in proportion to their triangles.

    Structure only: weights are ignored, arcs are symmetrised, self-loops have weight 1. An edge in no triangle
    vanishes, a node in no triangle keeps its self-loop. Source: PaSca, section 3.1 (triangle-induced adjacency);
    counting: Latapy 2008, algorithm "forward".

    Attributes:
        exponent, loops: as for AugmentedAdjacency; 1/2 and 1 as usual.
    Raises:
        DesignError: the exponent is not in 0..1, or the weight of self-loops is negative.
    """

    exponent: float = USUAL_EXPONENT
    loops: float = USUAL_LOOPS

    def __post_init__(self) -> None:
        AggregatorName("triangle", None, self.exponent, self.loops)

    @property
    def name(self) -> str:
        """`triangle`."""
        return str(AggregatorName("triangle", None, self.exponent, self.loops))

    @property
    def matrix_key(self) -> str:
        """The name."""
        return self.name

    @property
    def restart(self) -> float:
        """0."""
        return 0.0

    def matrix(self, adjacency: sparse.csr_array) -> sparse.csr_array:
        """The normalised triangle counts with self-loops, shape (N, N)."""
        return normalised_with_self_loops(triangle_counts(adjacency), self.exponent, self.loops)


def triangle_counts(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Count the triangles through each edge.

    Args:
        adjacency: (N, N) CSR without self-loops; values are ignored and arcs are read as undirected edges.
    Returns:
        (N, N) symmetric CSR, float32, with the edges that lie in at least one triangle.
    """
    N = adjacency.shape[0]
    pattern = sparse.csr_array((np.ones(adjacency.nnz, np.int8), adjacency.indices, adjacency.indptr), shape=(N, N))
    edges = (pattern + pattern.T).tocoo()
    degree = np.bincount(edges.row, minlength=N)
    # Rank by degree, ties by number: a total order, so every triangle has exactly one lowest, middle and highest node.
    rank = np.empty(N, dtype=np.int64)
    rank[np.lexsort((np.arange(N), degree))] = np.arange(N)
    low, high = rank[edges.row], rank[edges.col]
    forward = low < high
    low, high = low[forward], high[forward]
    order = np.lexsort((high, low))
    low, high = low[order], high[order]
    counts = _count_along_arcs(low, high, N)
    kept = counts > 0
    node = np.empty(N, dtype=np.int64)
    node[rank] = np.arange(N)
    one, other, values = node[low[kept]], node[high[kept]], counts[kept].astype(np.float32)
    found = sparse.csr_array(
        (np.concatenate((values, values)), (np.concatenate((one, other)), np.concatenate((other, one)))), shape=(N, N)
    )
    found.sort_indices()
    return found


def _count_along_arcs(low: NDArray[np.int64], high: NDArray[np.int64], N: int) -> NDArray[np.int64]:
    """Triangles through each arc low -> high; arcs are sorted by (low, high) and go up in rank."""
    start = np.searchsorted(low, np.arange(N + 1))
    keys = low * N + high
    counts = np.zeros(low.size, dtype=np.int64)
    # A path goes along arc a = (u, v) and then along some arc b = (v, w); it closes when (u, w) is an arc as well.
    paths_of_arc = start[high + 1] - start[high]
    ends = np.cumsum(paths_of_arc)
    first = 0
    while first < low.size:
        already = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, already + PATHS_PER_BATCH, side="right")))
        arcs = np.arange(first, last)
        lengths = paths_of_arc[arcs]
        a = np.repeat(arcs, lengths)
        within = np.arange(a.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        b = start[high[a]] + within
        wanted = low[a] * N + high[b]
        place = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
        closes = keys[place] == wanted if keys.size else np.zeros(0, dtype=bool)
        for arc in (a[closes], b[closes], place[closes]):
            counts += np.bincount(arc, minlength=low.size)
        first = last
    return counts
