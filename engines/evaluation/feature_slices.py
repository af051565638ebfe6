"""Feature slices: each rank propagates all nodes for its share of the columns and hands over the rows of each hop.

Between rows and columns stands an all-to-all. It goes in tiles that fit the caches, two under way at once: a tile is
packed, received and unpacked before its memory would have to be fetched a second time. Rows that lie together in the
columns are sent from where they are.

A rank holds the columns of two hops at a time, and of the start where steps go back to it: the columns of a hop are
overwritten once its rows are handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.communicator import Communicator, Pending
from engines.evaluation.messages import Tag
from engines.evaluation.plans import USUAL_BUFFER_BYTES, Ownership, Rows
from engines.evaluation.propagation import propagate_step

FLOAT_BYTES = 4
TILE_BYTES = 4 << 20
"""What one rank sends and receives in a tile, where its buffers allow more: a part of the last cache."""
TILES_UNDER_WAY = 2


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
        buffer_bytes: int = USUAL_BUFFER_BYTES,
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
        turn = _Turn(self._communicator, self._nodes_of, start.shape[1], self._buffer_bytes)
        return FeatureWalk(self._matrices[key], turn, start, restart)

    def predicted_bytes(self, key: str, width: int, num_steps: int) -> int:
        """See PropagationPlan: the start once and every hop once, less what a rank keeps."""
        P = self._communicator.size
        kept = 0
        for rank, nodes in enumerate(self._nodes_of):
            share = column_share(width, rank, P)
            kept += nodes.size * (share.stop - share.start)
        return (self._num_nodes * width - kept) * FLOAT_BYTES * (num_steps + 1)


class FeatureWalk:
    """A walk whose state is this rank's columns of the last hop, and of the start where steps go back to it."""

    def __init__(self, matrix: sparse.csr_array, turn: _Turn, start: Rows, restart: float) -> None:
        self._matrix, self._turn, self._restart = matrix, turn, restart
        self._current = turn.to_columns(start)
        self._start = self._current if restart else None

    def steps(self, count: int) -> list[Rows]:
        """See Walk: no traffic during a hop, then the all-to-all of its rows."""
        hops: list[Rows] = []
        spare: Rows | None = None
        for _ in range(count):
            previous = self._current
            if previous.shape[1]:
                self._current = propagate_step(
                    self._matrix, previous, restart=self._restart, start=self._start, out=spare
                )
                spare = None if previous is self._start else previous
            hops.append(self._turn.to_rows(self._current))
        return hops


class _Turn:
    """The all-to-all between own rows, all columns, and all rows, own columns.

    Every rank makes one alike and turns alike: all make the same number of tiles, which the largest part decides.

    Args:
        communicator: P ranks.
        nodes_of: the nodes of each rank, in the order of its rows.
        width: W, columns of all ranks together.
        buffer_bytes: what the buffers of this rank may take.
    """

    def __init__(
        self, communicator: Communicator, nodes_of: Sequence[NDArray[np.int64]], width: int, buffer_bytes: int
    ) -> None:
        P = communicator.size
        self._communicator, self._nodes_of, self._width = communicator, nodes_of, width
        self._num_nodes = sum(nodes.size for nodes in nodes_of)
        self._shares = [column_share(width, rank, P) for rank in range(P)]
        self._mine = self._shares[communicator.rank]
        self._others = [(communicator.rank + step) % P for step in range(1, P)]
        largest, share = max(nodes.size for nodes in nodes_of), -(-width // P)
        a_row = FLOAT_BYTES * (width + P * share)
        wanted = min(buffer_bytes, TILES_UNDER_WAY * TILE_BYTES)
        self._tiles = max(1, min(-(-TILES_UNDER_WAY * largest * a_row // wanted), largest))

    def to_columns(self, rows: Rows) -> Rows:
        """(n, W) own rows to (N, w) own columns."""
        columns = np.empty((self._num_nodes, self._mine.stop - self._mine.start), dtype=np.float32)

        def send(to: int, tile: int) -> Rows:
            return np.ascontiguousarray(rows[self._own(tile), self._shares[to]])

        def take(source: int, tile: int, part: Rows) -> None:
            columns[self._places(source, tile)] = part

        def keep(tile: int) -> None:
            take(self._communicator.rank, tile, rows[self._own(tile), self._mine])

        self._exchange(send, take, keep, to_columns=True)
        return columns

    def to_rows(self, columns: Rows) -> Rows:
        """(N, w) own columns to (n, W) own rows."""
        rows = np.empty((self._nodes_of[self._communicator.rank].size, self._width), dtype=np.float32)

        def send(to: int, tile: int) -> Rows:
            return columns[self._places(to, tile)]

        def take(source: int, tile: int, part: Rows) -> None:
            rows[self._own(tile), self._shares[source]] = part

        def keep(tile: int) -> None:
            take(self._communicator.rank, tile, send(self._communicator.rank, tile))

        self._exchange(send, take, keep, to_columns=False)
        return rows

    def _exchange(
        self,
        send: Callable[[int, int], Rows],
        take: Callable[[int, int, Rows], None],
        keep: Callable[[int], None],
        *,
        to_columns: bool,
    ) -> None:
        """Send, keep and take tile after tile; a tile is taken when the next one is under way."""
        under_way: list[_Tile] = []
        for tile in range(self._tiles):
            under_way.append(self._start(tile, send, to_columns=to_columns))
            keep(tile)
            if len(under_way) == TILES_UNDER_WAY:
                self._finish(under_way.pop(0), take)
        for last in under_way:
            self._finish(last, take)

    def _start(self, tile: int, send: Callable[[int, int], Rows], *, to_columns: bool) -> _Tile:
        pending: list[Pending] = []
        parts: list[tuple[int, Rows]] = []
        for source in reversed(self._others):
            whose = source if to_columns else self._communicator.rank
            columns = self._mine if to_columns else self._shares[source]
            num_rows = self._range(whose, tile)
            part = np.empty((num_rows.stop - num_rows.start, columns.stop - columns.start), dtype=np.float32)
            if part.size:
                pending.append(self._communicator.start_receive(part, source, Tag.ROWS))
                parts.append((source, part))
        # Each rank begins with its neighbour, so that no rank is everybody's first.
        for to in self._others:
            part = send(to, tile)
            if part.size:
                pending.append(self._communicator.start_send(part, to, Tag.ROWS))
        return _Tile(tile, pending, parts)

    def _finish(self, tile: _Tile, take: Callable[[int, int, Rows], None]) -> None:
        self._communicator.wait(tile.pending)
        for source, part in tile.parts:
            take(source, tile.number, part)

    def _range(self, rank: int, tile: int) -> slice:
        """Places of a tile among the rows of a rank."""
        size = self._nodes_of[rank].size
        return slice(tile * size // self._tiles, (tile + 1) * size // self._tiles)

    def _own(self, tile: int) -> slice:
        return self._range(self._communicator.rank, tile)

    def _places(self, rank: int, tile: int) -> slice | NDArray[np.int64]:
        """Places of a rank's tile among all nodes: a slice where they follow one another."""
        nodes = self._nodes_of[rank][self._range(rank, tile)]
        if nodes.size and nodes[-1] - nodes[0] == nodes.size - 1 and (np.diff(nodes) == 1).all():
            return slice(int(nodes[0]), int(nodes[-1]) + 1)
        return nodes


@dataclass(frozen=True, eq=False)
class _Tile:
    """A tile under way: what is sent and received, and what comes from whom."""

    number: int
    pending: list[Pending]
    parts: list[tuple[int, Rows]]
