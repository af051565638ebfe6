"""Feature slices: each rank propagates all nodes for its share of the columns and hands over rows at the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from engines.evaluation.communicator import Communicator
from engines.evaluation.plans import Ownership, Rows
from engines.evaluation.propagation import propagate_step

FLOAT_BYTES = 4


def column_share(width: int, rank: int, num_ranks: int) -> slice:
    """The columns of one rank: contiguous, differing by one at most, empty where there are fewer columns than ranks."""
    return slice(rank * width // num_ranks, (rank + 1) * width // num_ranks)


class FeatureSlices:
    """The feature-slice plan.

    Args:
        communicator: the ranks that share the graph.
        ownership: of this rank: the rows it hands in and gets back.
        matrix: gives the whole (N, N) matrix with that key; may be memory-mapped.
        buffer_bytes: what the buffers of an all-to-all may take on one rank.
    """

    name = "features"

    def __init__(
        self,
        communicator: Communicator,
        ownership: Ownership,
        matrix: Callable[[str], sparse.csr_array],
        buffer_bytes: int = 256 << 20,
    ) -> None:
        self._communicator, self._matrix, self._buffer_bytes = communicator, matrix, buffer_bytes
        self.nodes = ownership.nodes
        self._nodes_of = communicator.gather(ownership.nodes)
        self._num_nodes = sum(nodes.size for nodes in self._nodes_of)
        self._matrices: dict[str, sparse.csr_array] = {}

    def walk(self, key: str, start: Rows, restart: float) -> FeatureWalk:
        """See PropagationPlan; one all-to-all turns rows into columns."""
        if key not in self._matrices:
            self._matrices[key] = self._matrix(key)
        columns = self._to_columns(start)
        return FeatureWalk(self._matrices[key], columns, restart, lambda hop: self._to_rows(hop, start.shape[1]))

    def predicted_bytes(self, key: str, width: int, num_steps: int) -> int:
        """See PropagationPlan: the start once and every hop once, less what a rank keeps."""
        P = self._communicator.size
        kept = 0
        for rank, nodes in enumerate(self._nodes_of):
            share = column_share(width, rank, P)
            kept += nodes.size * (share.stop - share.start)
        return (self._num_nodes * width - kept) * FLOAT_BYTES * (num_steps + 1)

    def _tiles(self, width: int) -> int:
        """How many exchanges one all-to-all takes, so that what a rank packs and unpacks stays within its buffers.

        The largest part decides, since all ranks make the same number of exchanges.
        """
        largest = max(nodes.size for nodes in self._nodes_of)
        share = -(-width // self._communicator.size)
        needed = FLOAT_BYTES * (largest * width + self._num_nodes * share)
        return max(1, min(-(-needed // self._buffer_bytes), largest))

    def _to_columns(self, rows: Rows) -> Rows:
        """(n, W) own rows to (N, w) own columns."""
        P, W = self._communicator.size, rows.shape[1]
        mine = column_share(W, self._communicator.rank, P)
        columns = np.empty((self._num_nodes, mine.stop - mine.start), dtype=np.float32)
        tiles = self._tiles(W)
        for tile in range(tiles):
            own = _share(self.nodes.size, tile, tiles)
            parts = [rows[own, column_share(W, to, P)].ravel() for to in range(P)]
            for nodes, part in zip(self._nodes_of, self._communicator.exchange(parts), strict=True):
                whose = nodes[_share(nodes.size, tile, tiles)]
                columns[whose] = part.reshape(whose.size, columns.shape[1])
        return columns

    def _to_rows(self, columns: Rows, width: int) -> Rows:
        """(N, w) own columns to (n, W) own rows."""
        P = self._communicator.size
        rows = np.empty((self.nodes.size, width), dtype=np.float32)
        tiles = self._tiles(width)
        for tile in range(tiles):
            parts = [columns[nodes[_share(nodes.size, tile, tiles)]].ravel() for nodes in self._nodes_of]
            own = _share(self.nodes.size, tile, tiles)
            for source, part in enumerate(self._communicator.exchange(parts)):
                share = column_share(width, source, P)
                rows[own, share] = part.reshape(own.stop - own.start, share.stop - share.start)
        return rows


class FeatureWalk:
    """A walk whose state is this rank's columns of the last hop."""

    def __init__(self, matrix: sparse.csr_array, start: Rows, restart: float, to_rows: Callable[[Rows], Rows]) -> None:
        self._matrix, self._start, self._current, self._restart = matrix, start, start, restart
        self._to_rows = to_rows

    def steps(self, count: int) -> list[Rows]:
        """See Walk: no traffic during the hops, then the all-to-all of each."""
        columns = []
        for _ in range(count):
            if self._current.shape[1]:
                self._current = propagate_step(
                    self._matrix, self._current, restart=self._restart, start=self._start if self._restart else None
                )
            columns.append(self._current)
        columns.reverse()
        # Each hop's columns are let go once its rows are there.
        return [self._to_rows(columns.pop()) for _ in range(count)]


def _share(size: int, tile: int, tiles: int) -> slice:
    return slice(tile * size // tiles, (tile + 1) * size // tiles)
