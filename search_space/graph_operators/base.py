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


def normalised_with_self_loops(adjacency: sparse.csr_array, r: float = 0.5, loops: float = 1.0) -> sparse.csr_array:
    """Return D_row^(r-1) (A + loops·I) D_col^(-r), float32.

    D_row holds the row sums of A + loops·I and D_col its column sums; they are equal for an undirected graph. Degrees
    are summed in float64. Without self-loops (weight 0) a node that gathers from nobody keeps one of weight 1, so no
    row is empty.

    Args:
        adjacency: (N, N) CSR of non-negative weights without self-loops.
        r: 1/2 symmetric; 0 divides rows (random walk), 1 columns.
        loops: weight of the self-loops, 0 or more.
    Source: PaSca, section 3.1 (augmented normalised adjacency); symbols as there.
    """
    with_loops = sparse.csr_array(adjacency.astype(np.float64) + _self_loops(adjacency, loops))
    row_sums = np.asarray(with_loops.sum(axis=1)).ravel()
    column_sums = np.asarray(with_loops.sum(axis=0)).ravel()
    column_sums[column_sums == 0.0] = 1.0  # nobody gathers from there: no entry is divided by it
    with_loops.data *= np.repeat(row_sums ** (r - 1.0), np.diff(with_loops.indptr))
    with_loops.data *= (column_sums**-r)[with_loops.indices]
    return _as_step(with_loops)


def with_diagonal(matrix: sparse.csr_array, value: float) -> sparse.csr_array:
    """Return M + value·I, (N, N) float32; entries that cancel stay, so that M's entries are all there."""
    N = matrix.shape[0]
    return _as_step(sparse.csr_array(matrix + sparse.eye_array(N, format="csr", dtype=np.float64) * value))


def _self_loops(adjacency: sparse.csr_array, loops: float) -> sparse.csr_array:
    """The diagonal to be added: `loops` everywhere, or 1 for rows without entries where that is 0."""
    N = adjacency.shape[0]
    if loops > 0.0:
        eye = sparse.eye_array(N, format="csr", dtype=np.float64)
        eye.data *= loops
        return eye
    alone = np.flatnonzero(np.diff(adjacency.indptr) == 0)
    return sparse.csr_array((np.ones(alone.size), (alone, alone)), shape=(N, N))


def _as_step(matrix: sparse.csr_array) -> sparse.csr_array:
    """The same in float32, sorted, with the narrowest index type: a step reads every index, and so half the bytes."""
    matrix.sort_indices()
    index = sparse.get_index_dtype(maxval=max(matrix.shape[0], matrix.nnz))
    parts = (matrix.data.astype(np.float32), matrix.indices.astype(index), matrix.indptr.astype(index))
    return sparse.csr_array(parts, shape=matrix.shape)
