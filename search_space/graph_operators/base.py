"""GraphOperator: one propagation step, split into a matrix that can be shared and a restart."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import sparse


class GraphOperator(Protocol):
    """One step X(k) = (1 - restart) M X(k-1) + restart X(0), with M made from the adjacency.

    Attributes:
        name: as in an Architecture.
        matrix_key: operators with equal keys have the same M, so it is built once for all of them.
        restart: share of X(0) that is mixed in after each step, 0 for a plain product.
    """

    @property
    def name(self) -> str: ...

    @property
    def matrix_key(self) -> str: ...

    @property
    def restart(self) -> float: ...

    def matrix(self, adjacency: sparse.csr_array) -> sparse.csr_array:
        """Build M.

        Args:
            adjacency: (N, N) CSR without self-loops; row i gathers from its columns.
        Returns:
            (N, N) CSR, float32, sorted indices.
        """
        ...


def normalised_with_self_loops(adjacency: sparse.csr_array, r: float = 0.5) -> sparse.csr_array:
    """Return D_row^(r-1) (A + I) D_col^(-r), float32.

    D_row holds the row sums of A + I and D_col its column sums; they are equal for an undirected graph. Degrees are
    summed in float64. Every node has its self-loop of weight 1, so no degree is zero.

    Args:
        adjacency: (N, N) CSR of non-negative weights without self-loops.
        r: 1/2 symmetric; 0 divides rows (random walk), 1 columns.
    Source: PaSca, section 3.1 (augmented normalised adjacency); symbols as there.
    """
    N = adjacency.shape[0]
    with_loops = sparse.csr_array(adjacency.astype(np.float64) + sparse.eye_array(N, format="csr", dtype=np.float64))
    row_sums = np.asarray(with_loops.sum(axis=1)).ravel()
    column_sums = np.asarray(with_loops.sum(axis=0)).ravel()
    with_loops.data *= np.repeat(row_sums ** (r - 1.0), np.diff(with_loops.indptr))
    with_loops.data *= (column_sums**-r)[with_loops.indices]
    with_loops.sort_indices()
    # The narrowest index type: a propagation step reads every index, and so half the bytes.
    index = sparse.get_index_dtype(maxval=max(N, with_loops.nnz))
    parts = (with_loops.data.astype(np.float32), with_loops.indices.astype(index), with_loops.indptr.astype(index))
    return sparse.csr_array(parts, shape=(N, N))
