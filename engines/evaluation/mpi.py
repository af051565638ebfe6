"""MPICommunicator: a communicator over MPI ranks. The only module that knows MPI.

Every wait is a non-blocking call that is tested, first without pause and then with growing pauses: a rank that waits
leaves its core to others, and several threads of a rank can wait at once, since no call blocks while it holds the lock.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.evaluation.communicator import (
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    Communicator,
    Numbers,
    Pending,
    SerialCommunicator,
    Traffic,
)
from engines.evaluation.launch import launched_ranks
from engines.evaluation.messages import PIECE_BYTES, Tag, pieces
from search_space.errors import ConfigError, ShapeError

SPINS = 20
"""Looks without a pause before the first pause."""
IDLE_PAUSE = 5e-3
"""Longest pause of a rank that waits for an order, which may take minutes to come."""

_log = logging.getLogger(__name__)
_lock = threading.Lock()
"""Held for each call of the MPI library, so that a library that serves one thread at a time is enough."""


class MPICommunicator:
    """A communicator over MPI ranks.

    Args:
        inner: an mpi4py communicator of this object's own: a duplicate or a split.
        piece_bytes: longest single message.
    """

    def __init__(self, inner: Any, piece_bytes: int = PIECE_BYTES) -> None:
        self._inner, self._piece_bytes = inner, piece_bytes
        self.rank, self.size, self.host, self.traffic = inner.rank, inner.size, socket.gethostname(), Traffic()

    def split(self, color: int | None) -> MPICommunicator | None:
        """See Communicator."""
        from mpi4py import MPI as library

        # A split is collective over this communicator and short; all ranks come here in the same order.
        self.barrier()
        with _lock:
            inner = self._inner.Split(library.UNDEFINED if color is None else color, self.rank)
        return None if inner == library.COMM_NULL else MPICommunicator(inner, self._piece_bytes)

    def barrier(self) -> None:
        """See Communicator."""
        with _lock:
            request = self._inner.Ibarrier()
        self.wait([_Messages([request])])

    def broadcast(self, array: NDArray[Any], root: int = 0) -> None:
        """See Communicator."""
        started = []
        for piece in pieces(array, self._piece_bytes):
            with _lock:
                started.append(self._inner.Ibcast(piece, root=root))
        self._count_broadcast(array, root)
        self.wait([_Messages(started)])

    def sum(self, array: Numbers) -> Numbers:
        """See Communicator."""
        own = np.ascontiguousarray(array)
        total = np.empty_like(own)
        started = []
        for mine, all_of_it in zip(pieces(own, self._piece_bytes), pieces(total, self._piece_bytes), strict=True):
            with _lock:
                started.append(self._inner.Iallreduce(mine, all_of_it))
        # Counted as a ring does it: each rank passes on 2 (P - 1) / P of the array.
        share = 2 * (self.size - 1) * array.nbytes // self.size
        self.traffic.sent_bytes += share
        self.traffic.received_bytes += share
        self.wait([_Messages(started)])
        return total

    def exchange(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """See Communicator."""
        if len(parts) != self.size:
            raise ShapeError(f"an exchange between {self.size} ranks needs as many parts, got {len(parts)}")
        counts = np.array([part.shape[0] for part in parts], dtype=np.int64)
        coming = np.empty_like(counts)
        with _lock:
            request = self._inner.Ialltoall(counts, coming)
        self.wait([_Messages([request])])
        received = [
            parts[source] if source == self.rank else np.empty((int(count), *parts[0].shape[1:]), parts[0].dtype)
            for source, count in enumerate(coming)
        ]
        pending: list[Pending] = []
        # Each rank begins with its neighbour, so that no rank is everybody's first.
        for step in range(1, self.size):
            source, to = (self.rank - step) % self.size, (self.rank + step) % self.size
            if received[source].size:
                pending.append(self.start_receive(received[source], source, Tag.ROWS))
            if parts[to].size:
                pending.append(self.start_send(parts[to], to, Tag.ROWS))
        self.wait(pending)
        return received

    def gather(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """See Communicator."""
        return self.exchange([np.ascontiguousarray(rows)] * self.size)

    def start_send(self, array: NDArray[Any], to: int, tag: Tag) -> Pending:
        """See Communicator."""
        began = time.perf_counter()
        started = []
        for piece in pieces(array, self._piece_bytes):
            with _lock:
                started.append(self._inner.Isend(piece, dest=to, tag=int(tag)))
        self.traffic.sent_bytes += array.nbytes
        self.traffic.num_messages += len(started)
        self.traffic.send_seconds += time.perf_counter() - began
        return _Messages(started, array)

    def start_receive(self, array: NDArray[Any], source: int, tag: Tag) -> Pending:
        """See Communicator."""
        began = time.perf_counter()
        started, expected = [], []
        for piece in pieces(array, self._piece_bytes):
            with _lock:
                started.append(self._inner.Irecv(piece, source=source, tag=int(tag)))
            expected.append(piece.nbytes)
        self.traffic.received_bytes += array.nbytes
        self.traffic.send_seconds += time.perf_counter() - began
        return _Messages(started, array, expected, f"rank {self.rank} of {self.size} expected from rank {source}")

    def wait(self, pending: Sequence[Pending]) -> None:
        """See Communicator."""
        began = time.perf_counter()
        left, pause, spins = list(pending), SHORTEST_PAUSE, 0
        while left := [message for message in left if not message.test()]:
            spins += 1
            if spins > SPINS:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        self.traffic.wait_seconds += time.perf_counter() - began

    def receive_bytes(self, tag: Tag) -> tuple[int, NDArray[np.uint8]] | None:
        """See Communicator."""
        from mpi4py import MPI as library

        status = library.Status()
        with _lock:
            message = self._inner.Improbe(source=library.ANY_SOURCE, tag=int(tag), status=status)
            if message is None:
                return None
            buffer = np.empty(status.Get_count(library.BYTE), dtype=np.uint8)
            request = message.Irecv(buffer)
        self.wait([_Messages([request], buffer)])
        self.traffic.received_bytes += buffer.nbytes
        return int(status.Get_source()), buffer

    def send_object(self, value: Any, to: int, tag: Tag) -> None:
        """See Communicator."""
        packed = np.frombuffer(pickle.dumps(value), dtype=np.uint8)
        # One message whatever its length: the receiver learns the length by looking, and set-up objects are small.
        if packed.nbytes >= PIECE_BYTES:
            raise ShapeError(f"an object of {packed.nbytes} bytes is too long for one message; send arrays instead")
        self.wait([self.start_send(packed, to, tag)])

    def receive_object(self, source: int, tag: Tag) -> Any:
        """See Communicator."""
        from mpi4py import MPI as library

        status, pause = library.Status(), SHORTEST_PAUSE
        while True:
            with _lock:
                message = self._inner.Improbe(source=source, tag=int(tag), status=status)
                if message is not None:
                    buffer = np.empty(status.Get_count(library.BYTE), dtype=np.uint8)
                    request = message.Irecv(buffer)
            if message is not None:
                break
            time.sleep(pause)
            pause = min(2 * pause, IDLE_PAUSE)
        self.wait([_Messages([request], buffer)])
        # from a rank of this job, which runs the same program for the same user; nothing from a file comes this way
        return pickle.loads(buffer.tobytes())

    def gather_objects(self, value: Any) -> list[Any]:
        """See Communicator."""
        packed = np.frombuffer(pickle.dumps(value), dtype=np.uint8)
        # as in receive_object: what is unpacked comes from ranks of this job, never from a file
        return [pickle.loads(part.tobytes()) for part in self.gather(packed)]

    def abort(self, cause: str) -> None:
        """See Communicator."""
        _log.critical("rank %d of %d on %s: %s", *_place_in_job(), self.host, cause)
        from mpi4py import MPI as library

        # Without the lock: another thread may hold it for ever, and nothing comes after this call.
        library.COMM_WORLD.Abort(1)

    def _count_broadcast(self, array: NDArray[Any], root: int) -> None:
        if self.rank == root:
            self.traffic.sent_bytes += array.nbytes * (self.size - 1)
        else:
            self.traffic.received_bytes += array.nbytes


class _Messages:
    """The pieces of one array under way; keeps the array alive until they are done."""

    def __init__(
        self, requests: list[Any], array: NDArray[Any] | None = None, expected: Sequence[int] = (), what: str = ""
    ) -> None:
        self._requests, self._array, self._expected, self._what = requests, array, expected, what

    def test(self) -> bool:
        from mpi4py import MPI as library

        if not self._requests:
            return True
        statuses = [library.Status() for _ in self._requests] if self._expected else None
        with _lock:
            done = library.Request.Testall(self._requests, statuses)
        if done:
            if statuses is not None:
                for status, expected in zip(statuses, self._expected, strict=True):
                    if status.Get_count(library.BYTE) != expected:
                        raise ShapeError(
                            f"{self._what} {expected} bytes but received {status.Get_count(library.BYTE)}; "
                            "do all ranks read the same data?"
                        )
            self._requests = []
        return bool(done)


def world(environment: Mapping[str, str] = os.environ) -> Communicator:
    """All ranks of this job, on a communicator of our own; one rank, without MPI, where no launcher started several.

    Raises:
        ConfigError: several ranks were started, but no MPI library can be loaded or it sees another number of them.
    """
    _, size = launched_ranks(environment)
    if size == 1:
        return SerialCommunicator()
    try:
        from mpi4py import MPI as library
    except (ImportError, RuntimeError, OSError) as error:
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"a launcher started {size} ranks, but no MPI library can be loaded through mpi4py ({cause}); "
            "install one (pip install mpi4py mpich) or start pasca without mpiexec"
        ) from error
    found = library.COMM_WORLD.size
    if found != size:
        name = library.Get_library_version().splitlines()[0].strip(" \0")
        raise ConfigError(
            f"the launcher started {size} ranks, but the MPI library ({name}) sees {found}; "
            "use the mpiexec that belongs to that library"
        )
    if library.Query_thread() < library.THREAD_SERIALIZED:
        raise ConfigError("the MPI library serves only one thread of a rank; build it with thread support")
    with _lock:
        inner = library.COMM_WORLD.Dup()
    return MPICommunicator(inner)


def _place_in_job() -> tuple[int, int]:
    """Rank and number of ranks of the whole job, whatever group this rank is in."""
    from mpi4py import MPI as library

    return library.COMM_WORLD.rank, library.COMM_WORLD.size
