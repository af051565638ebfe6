"""Row blocks: each rank owns the rows of its nodes and fetches, hop by hop, the rows that they gather from.

A row's entries keep their order when columns are renumbered, so every row is summed in the same order as in one
process and the results do not depend on the number of ranks, the partition or the tile width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.communicator import Communicator, Pending
from engines.evaluation.messages import Tag
from engines.evaluation.plans import USUAL_BUFFER_BYTES, Ownership, Rows, take_rows
from engines.evaluation.propagation import propagate_step
from search_space.errors import ConfigError, ShapeError

FLOAT_BYTES = 4
LINE_COLUMNS = 16
"""Columns of a cache line: tiles of whole lines gather nothing that they do not use."""
BATCH_ROWS = 1 << 14
"""Rows multiplied at once: between two looks at the messages under way, or before they go to their columns."""
TILES_UNDER_WAY = 2


@dataclass(frozen=True, eq=False)
class RowBlock:
    """The rows of one matrix that one rank owns, in the order of its Ownership.

    Attributes:
        interior: (n_int, n) CSR; columns are places among the own rows.
        boundary: (n - n_int, m + h) CSR; columns are places among the near rows, then the halo rows.
        near: (m,) places of the own rows that boundary rows gather from.
        halo: (h,) node numbers of foreign rows that boundary rows gather from, by owner, then ascending.
        halo_counts: (P,) how many halo rows each rank owns.
    """

    interior: sparse.csr_array
    boundary: sparse.csr_array
    near: NDArray[np.int64]
    halo: NDArray[np.int64]
    halo_counts: NDArray[np.int64]

    @classmethod
    def of(
        cls, matrix: sparse.csr_array, ownership: Ownership, owner: NDArray[np.int32], rank: int, num_ranks: int
    ) -> RowBlock:
        """Cut a rank's rows out of the (N, N) matrix, whose nodes have the given owners."""
        nodes, n_int = ownership.nodes, ownership.num_interior
        order = np.argsort(nodes)
        interior = take_rows(matrix, nodes[:n_int])
        boundary = take_rows(matrix, nodes[n_int:])
        columns = np.unique(boundary.indices).astype(np.int64)
        own = owner[columns] == rank
        near_nodes, halo = columns[own], columns[~own]
        halo = halo[np.argsort(owner[halo], kind="stable")]
        place = np.empty(columns.size, dtype=np.int64)
        place[np.searchsorted(columns, near_nodes)] = np.arange(near_nodes.size)
        place[np.searchsorted(columns, halo)] = near_nodes.size + np.arange(halo.size)
        return cls(
            _renumbered(interior, _places(nodes, order, interior.indices), nodes.size),
            _renumbered(boundary, place[np.searchsorted(columns, boundary.indices)], columns.size),
            _places(nodes, order, near_nodes),
            halo,
            np.bincount(owner[halo], minlength=num_ranks).astype(np.int64),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the stored entries and row starts."""
        return sum(
            int(part.nbytes) for csr in (self.interior, self.boundary) for part in (csr.data, csr.indices, csr.indptr)
        )


def _places(nodes: NDArray[np.int64], order: NDArray[np.int64], wanted: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where the wanted nodes stand among `nodes`, which `order` sorts; all of them do."""
    return order[np.searchsorted(nodes, wanted, sorter=order)].astype(np.int64)


def _renumbered(matrix: sparse.csr_array, columns: NDArray[np.int64], width: int) -> sparse.csr_array:
    index = np.int32 if max(width, matrix.nnz) < 2**31 else np.int64
    return sparse.csr_array(
        (matrix.data.astype(np.float32, copy=False), columns.astype(index), matrix.indptr.astype(index)),
        shape=(matrix.shape[0], width),
    )


class RowBlocks:
    """The row-block plan.

    Args:
        communicator: the ranks that share the graph.
        ownership: of this rank.
        block: gives this rank's rows of the matrix with that key.
        buffer_bytes: what the working buffers of one rank may take besides the hops themselves.
    """

    name = "rows"

    def __init__(
        self,
        communicator: Communicator,
        ownership: Ownership,
        block: Callable[[str], RowBlock],
        buffer_bytes: int = USUAL_BUFFER_BYTES,
    ) -> None:
        self._communicator, self._ownership, self._make = communicator, ownership, block
        self._buffer_bytes = buffer_bytes
        self._linked: dict[str, _Linked] = {}
        self.nodes = ownership.nodes

    def walk(self, key: str, start: Rows, restart: float) -> RowWalk:
        """See PropagationPlan.

        Raises:
            ConfigError: on every rank, when a tile of one column does not fit the working buffers of some rank.
        """
        return RowWalk(self._communicator, self._link(key), start, restart)

    def predicted_bytes(self, key: str, width: int, num_steps: int) -> int:
        """See PropagationPlan: every halo row travels once a step."""
        return self._link(key).all_halo_rows * width * FLOAT_BYTES * num_steps

    def _link(self, key: str) -> _Linked:
        if key not in self._linked:
            self._linked[key] = _Linked.of(self._communicator, self._ownership, self._make(key), self._buffer_bytes)
        return self._linked[key]


@dataclass(frozen=True, eq=False)
class _Linked:
    """A row block that knows which of its rows other ranks need.

    Attributes:
        interior_batches, boundary_batches: ranges of the interior and of the boundary rows.
        sends: for each rank, the places of the own rows that it needs.
        all_halo_rows: halo rows of all ranks together.
        column_bytes: buffers that one column under way takes on the rank where it takes most.
        buffer_bytes: what all columns under way may take.
    """

    block: RowBlock
    interior_batches: list[sparse.csr_array]
    boundary_batches: list[sparse.csr_array]
    sends: list[NDArray[np.int64]]
    all_halo_rows: int
    column_bytes: int
    buffer_bytes: int

    @classmethod
    def of(cls, communicator: Communicator, ownership: Ownership, block: RowBlock, buffer_bytes: int) -> _Linked:
        ends = np.cumsum(block.halo_counts)
        requests = communicator.exchange(np.split(block.halo, ends[:-1]))
        order = np.argsort(ownership.nodes)
        for source, wanted in enumerate(requests):
            known = np.isin(wanted, ownership.nodes)
            if not known.all():
                raise ShapeError(
                    f"rank {communicator.rank} of {communicator.size} was asked by rank {source} for node "
                    f"{wanted[~known][0]}, which it does not own; "
                    "was the graph partitioned for another number of ranks?"
                )
        sends = [_places(ownership.nodes, order, wanted) for wanted in requests]
        num_sent = sum(wanted.size for wanted in sends)
        mine = np.array([[num_sent + block.near.size + block.halo.size, block.halo.size]], dtype=np.int64)
        everybody = np.concatenate(communicator.gather(mine))
        worst = int(everybody[:, 0].argmax())
        column_bytes = FLOAT_BYTES * int(everybody[worst, 0])
        if TILES_UNDER_WAY * column_bytes > buffer_bytes:
            raise ConfigError(
                f"exchanging one column of rank {worst} takes {TILES_UNDER_WAY * column_bytes} bytes of "
                f"buffers, but {buffer_bytes} are allowed; raise --memory or use more ranks"
            )
        batches = _row_batches(block.interior), _row_batches(block.boundary)
        return cls(block, *batches, sends, int(everybody[:, 1].sum()), column_bytes, buffer_bytes)

    def tiles(self, width: int) -> list[slice]:
        """Ranges of columns that travel together, the same on every rank: all at once, or whole cache lines."""
        if self.column_bytes * width <= self.buffer_bytes:
            return [slice(0, width)]
        columns = self.buffer_bytes // (TILES_UNDER_WAY * self.column_bytes)
        if columns > LINE_COLUMNS:
            columns -= columns % LINE_COLUMNS
        return [slice(first, min(first + columns, width)) for first in range(0, width, columns)]


class RowWalk:
    """A walk whose state is the rows of the last hop."""

    def __init__(self, communicator: Communicator, linked: _Linked, start: Rows, restart: float) -> None:
        self._communicator, self._linked = communicator, linked
        self._start, self._current, self._restart = start, start, restart

    def steps(self, count: int) -> list[Rows]:
        """See Walk."""
        hops = []
        for _ in range(count):
            self._current = self._step(self._current)
            hops.append(self._current)
        return hops

    def _step(self, current: Rows) -> Rows:
        tiles = self._linked.tiles(current.shape[1])
        out = np.empty_like(current)
        under_way = self._send(current, tiles[0])
        self._multiply_interior(current, out, under_way.pending)
        for place, tile in enumerate(tiles):
            arriving = under_way
            self._communicator.wait(arriving.pending)
            if place + 1 < len(tiles):
                under_way = self._send(current, tiles[place + 1])
            self._multiply_boundary(arriving.gathered, out, tile)
        return out

    def _send(self, current: Rows, tile: slice) -> _Tile:
        """Start the exchange of some columns; the near rows are copied in front of the halo rows to come."""
        block, width = self._linked.block, tile.stop - tile.start
        m = block.near.size
        gathered = _empty_at_a_line(m + block.halo.size, width)
        pending: list[Pending] = []
        first = m
        for source, count in enumerate(block.halo_counts):
            if count:
                arriving = gathered[first : first + count]
                pending.append(self._communicator.start_receive(arriving, source, Tag.ROWS))
                first += int(count)
        for to, rows in enumerate(self._linked.sends):
            if rows.size:
                pending.append(self._communicator.start_send(current[rows, tile], to, Tag.ROWS))
        np.take(current[:, tile], block.near, axis=0, out=gathered[:m])
        return _Tile(gathered, pending)

    def _multiply_interior(self, current: Rows, out: Rows, pending: list[Pending]) -> None:
        first = 0
        for batch in self._linked.interior_batches:
            rows = slice(first, first + batch.shape[0])
            propagate_step(batch, current, restart=self._restart, start=self._start[rows], out=out[rows])
            for message in pending:
                message.test()  # lets the library make progress while this rank computes
            first = rows.stop

    def _multiply_boundary(self, gathered: Rows, out: Rows, tile: slice) -> None:
        first = self._linked.block.interior.shape[0]
        for batch in self._linked.boundary_batches:
            rows = slice(first, first + batch.shape[0])
            start = np.ascontiguousarray(self._start[rows, tile]) if self._restart else None
            out[rows, tile] = propagate_step(batch, gathered, restart=self._restart, start=start)
            first = rows.stop


@dataclass(frozen=True, eq=False)
class _Tile:
    """Some columns of the rows that boundary rows gather from, complete once all is received."""

    gathered: Rows
    pending: list[Pending]


def _empty_at_a_line(num_rows: int, width: int) -> Rows:
    """A new (n, w) array that begins at the start of a cache line."""
    whole = np.empty(num_rows * width + LINE_COLUMNS, dtype=np.float32)
    first = -whole.ctypes.data // FLOAT_BYTES % LINE_COLUMNS
    return whole[first : first + num_rows * width].reshape(num_rows, width)


def _row_batches(matrix: sparse.csr_array) -> list[sparse.csr_array]:
    """Ranges of `BATCH_ROWS` rows, as views."""
    batches = []
    for first in range(0, matrix.shape[0], BATCH_ROWS):
        indptr = matrix.indptr[first : first + BATCH_ROWS + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        part = (matrix.data[entries], matrix.indices[entries], indptr - indptr[0])
        batches.append(sparse.csr_array(part, shape=(indptr.size - 1, matrix.shape[1])))
    return batches
