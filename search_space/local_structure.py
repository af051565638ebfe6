"""Local structure: what a node's place in the graph says of it, whoever its neighbours are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from search_space.graph_operators.triangle import triangle_counts

STRUCTURE_WIDTH = 6
"""Columns of `local_structure`."""


def local_structure(adjacency: sparse.csr_array) -> NDArray[np.float32]:
    """Degrees, triangles and clustering of each node, and the means of the three over its neighbours.

    Normalised propagation divides by degrees, so that a design sees little of them; where a class depends on how
    connected a node is, as with how often a page is read, they say much. Arcs are read as undirected edges and weights
    are ignored, as in the triangle-induced adjacency. Source: Henderson et al. 2011 (ReFeX), local and egonet features
    and one round of their means over neighbours.

    Args:
        adjacency: (N, N) CSR without self-loops.
    Returns:
        (N, 6): with d neighbours of v and t triangles through it, log(1 + d), log(1 + t) and the clustering
        coefficient 2t / (d (d - 1)), which is 0 where d is below 2; then the means, which are 0 without neighbours.
    """
    N = adjacency.shape[0]
    pattern = sparse.csr_array((np.ones(adjacency.nnz), adjacency.indices, adjacency.indptr), shape=(N, N))
    both_ways = sparse.csr_array(pattern + pattern.T)
    both_ways.data[:] = 1.0
    d = both_ways.sum(axis=1)
    t = triangle_counts(adjacency).sum(axis=1, dtype=np.float64) / 2.0  # each lies at two edges of a node
    pairs = d * (d - 1.0) / 2.0
    own = np.column_stack((np.log1p(d), np.log1p(t), t / np.maximum(pairs, 1.0)))
    means = (both_ways @ own) / np.maximum(d, 1.0)[:, None]
    return np.concatenate((own, means), axis=1).astype(np.float32)
