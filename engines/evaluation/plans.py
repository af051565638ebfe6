"""PropagationPlan: how the hops of a graph are computed by several ranks, each of which keeps the rows of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.partition import Partition, entries_of

Rows = NDArray[np.float32]
USUAL_BUFFER_BYTES, LEAST_BUFFER_BYTES = 1 << 30, 1 << 20
"""What the working buffers of one rank may take where no memory is stated, and what they may take at any rate."""


def buffer_bytes_of(memory_bytes: int | None) -> int:
    """What working buffers may take of a rank's memory: an eighth, at most the usual; None for no stated memory."""
    if memory_bytes is None:
        return USUAL_BUFFER_BYTES
    return min(USUAL_BUFFER_BYTES, max(memory_bytes // 8, LEAST_BUFFER_BYTES))


class Walk(Protocol):
    """Repeated application of one aggregator to one start, as far as it has been asked for."""

    def steps(self, count: int) -> list[Rows]:
        """The next hops, `count` arrays of shape (n, W) with the rows of this rank; every rank calls this alike."""
        ...


class PropagationPlan(Protocol):
    """One way of dividing X(k) = (1 - restart) M X(k-1) + restart X(0) among P ranks.

    Attributes:
        name: `rows` or `features`.
        nodes: (n,) the nodes of this rank in the order in which it holds their rows.
    """

    name: str
    nodes: NDArray[np.int64]

    def walk(self, key: str, start: Rows, restart: float) -> Walk:
        """Begin at X(0); every rank calls this alike.

        Args:
            key: which matrix, as in `GraphOperator.matrix_key`.
            start: (n, W) rows of this rank, not to be modified while the walk is in use.
        """
        ...

    def predicted_bytes(self, key: str, width: int, num_steps: int) -> int:
        """Payload that all ranks together send for a walk of so many steps, all asked for at once."""
        ...


@dataclass(frozen=True, eq=False)
class Ownership:
    """The nodes of one rank, interior ones first.

    A row is interior when every node it gathers from belongs to the same rank. Each part is ascending. An aggregator's
    matrix has no entries outside the adjacency and the diagonal, so one order serves all aggregators.

    Attributes:
        nodes: (n,) int64 node numbers.
        num_interior: how many of them are interior.
    """

    nodes: NDArray[np.int64]
    num_interior: int

    @classmethod
    def of(cls, partition: Partition, adjacency: sparse.csr_array, rank: int) -> Ownership:
        """The nodes of a rank under a partition of an (N, N) adjacency."""
        owned = partition.nodes(rank)
        lengths = np.diff(adjacency.indptr)[owned]
        foreign = partition.owner[adjacency.indices[entries_of(adjacency.indptr, owned)]] != rank
        boundary = np.zeros(owned.size, dtype=bool)
        boundary[np.repeat(np.arange(owned.size), lengths)[foreign]] = True
        return cls(np.concatenate((owned[~boundary], owned[boundary])), int(owned.size - boundary.sum()))


def take_rows(matrix: sparse.csr_array, rows: NDArray[np.int64]) -> sparse.csr_array:
    """Some rows of a CSR matrix, (n, N), with the entries of each row in their order."""
    indptr = np.concatenate(([0], np.cumsum(np.diff(matrix.indptr)[rows], dtype=np.int64)))
    entries = entries_of(matrix.indptr, rows)
    taken = (matrix.data[entries], matrix.indices[entries], indptr)
    return sparse.csr_array(taken, shape=(rows.size, matrix.shape[1]))
