"""Communicator: what ranks say to one another. The only module that knows MPI.

Every wait is a non-blocking call that is tested, first without pause and then with growing pauses: a rank that waits
leaves its core to others, and several threads of a rank can wait at once, since no call blocks while it holds the lock.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.evaluation.launch import launched_ranks
from engines.evaluation.messages import PIECE_BYTES, Tag, pieces
from search_space.errors import ConfigError, PascaError, ShapeError

Numbers = NDArray[Any]

SPINS = 20
SHORTEST_PAUSE, LONGEST_PAUSE = 2e-5, 5e-4
IDLE_PAUSE = 5e-3
"""Longest pause of a rank that waits for an order, which may take minutes to come."""

_log = logging.getLogger(__name__)
_lock = threading.Lock()
"""Held for each call of the MPI library, so that a library that serves one thread at a time is enough."""


@dataclass(slots=True)
class Traffic:
    """What one rank has sent and how long that took.

    Attributes:
        sent_bytes, received_bytes: payload of messages from and to other ranks.
        num_messages: messages sent.
        send_seconds: starting sends and receives, copies included.
        wait_seconds: waiting for messages to arrive or leave.
    """

    sent_bytes: int = 0
    received_bytes: int = 0
    num_messages: int = 0
    send_seconds: float = 0.0
    wait_seconds: float = 0.0

    def since(self, before: Traffic) -> Traffic:
        """What was added since a copy was taken."""
        now, then = asdict(self), asdict(before)
        return Traffic(**{name: now[name] - then[name] for name in now})

    def copy(self) -> Traffic:
        """The figures as they are now."""
        return Traffic(**asdict(self))


class Pending(Protocol):
    """A message under way."""

    def test(self) -> bool:
        """Whether it is done; also lets the library make progress."""
        ...


class Communicator(Protocol):
    """A group of P ranks.

    Attributes:
        rank: 0..P-1.
        size: P.
        host: where this rank runs.
        traffic: of this rank, on this communicator.
    """

    rank: int
    size: int
    host: str
    traffic: Traffic

    def split(self, color: int | None) -> Communicator | None:
        """The ranks that give the same color as a communicator of their own, in rank order; None for color None."""
        ...

    def barrier(self) -> None:
        """Return once every rank is here."""
        ...

    def broadcast(self, array: NDArray[Any], root: int = 0) -> None:
        """Fill the array on every rank with that of `root`; shapes and dtypes are equal everywhere."""
        ...

    def sum(self, array: Numbers) -> Numbers:
        """The element-wise sum over ranks, on every rank; bitwise the same everywhere."""
        ...

    def exchange(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """All-to-all: part p goes to rank p; returns what came from each rank, part `rank` being handed over as it is.

        Parts are C-contiguous (n_p, ...) arrays of one dtype and one shape after the first axis, on all ranks.
        """
        ...

    def gather(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """The rows of every rank, on every rank, in rank order."""
        ...

    def start_send(self, array: NDArray[Any], to: int, tag: Tag) -> Pending:
        """Start sending a C-contiguous array, which must not change until the message is done."""
        ...

    def start_receive(self, array: NDArray[Any], source: int, tag: Tag) -> Pending:
        """Start receiving into a C-contiguous array of the exact shape and dtype that is sent."""
        ...

    def wait(self, pending: Sequence[Pending]) -> None:
        """Return once all are done."""
        ...

    def receive_bytes(self, tag: Tag) -> tuple[int, NDArray[np.uint8]] | None:
        """One message with that tag and from whom, or None when none has come."""
        ...

    def send_object(self, value: Any, to: int, tag: Tag) -> None:
        """Send anything that can be pickled; for orders and set-up."""
        ...

    def receive_object(self, source: int, tag: Tag) -> Any:
        """Wait, with pauses, for an object from a rank."""
        ...

    def gather_objects(self, value: Any) -> list[Any]:
        """The objects of every rank, on every rank, in rank order; for set-up."""
        ...

    def abort(self, cause: str) -> None:
        """Say which rank failed and why, and end every rank of the job."""
        ...


class SerialCommunicator:
    """A communicator of one rank, which needs no MPI library."""

    def __init__(self) -> None:
        self.rank, self.size, self.host, self.traffic = 0, 1, socket.gethostname(), Traffic()

    def split(self, color: int | None) -> SerialCommunicator | None:
        """See Communicator."""
        return None if color is None else SerialCommunicator()

    def barrier(self) -> None:
        """See Communicator."""

    def broadcast(self, array: NDArray[Any], root: int = 0) -> None:
        """See Communicator."""

    def sum(self, array: Numbers) -> Numbers:
        """See Communicator."""
        return array.copy()

    def exchange(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """See Communicator."""
        return list(parts)

    def gather(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """See Communicator."""
        return [rows]

    def start_send(self, array: NDArray[Any], to: int, tag: Tag) -> Pending:
        """See Communicator; there is nobody to send to."""
        raise _alone(to)

    def start_receive(self, array: NDArray[Any], source: int, tag: Tag) -> Pending:
        """See Communicator; there is nobody to receive from."""
        raise _alone(source)

    def wait(self, pending: Sequence[Pending]) -> None:
        """See Communicator."""
        assert not pending

    def receive_bytes(self, tag: Tag) -> tuple[int, NDArray[np.uint8]] | None:
        """See Communicator."""
        return None

    def send_object(self, value: Any, to: int, tag: Tag) -> None:
        """See Communicator; there is nobody to send to."""
        raise _alone(to)

    def receive_object(self, source: int, tag: Tag) -> Any:
        """See Communicator; there is nobody to receive from."""
        raise _alone(source)

    def gather_objects(self, value: Any) -> list[Any]:
        """See Communicator."""
        return [value]

    def abort(self, cause: str) -> None:
        """See Communicator; a single process ends by raising."""
        raise PascaError(cause)


def _alone(other: int) -> ShapeError:
    return ShapeError(f"there is 1 rank, so none has the number {other}")


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
        return pickle.loads(buffer.tobytes())

    def gather_objects(self, value: Any) -> list[Any]:
        """See Communicator."""
        packed = np.frombuffer(pickle.dumps(value), dtype=np.uint8)
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


@contextlib.contextmanager
def failures_end_the_job(communicator: Communicator) -> Iterator[None]:
    """Let an error of this rank end every rank, since the others would wait for it for ever.

    With one rank the error is simply passed on.
    """
    try:
        yield
    except BaseException as error:
        if communicator.size == 1:
            raise
        _log.debug("this rank failed", exc_info=True)
        if isinstance(error, SystemExit):
            communicator.abort(f"ended with exit code {error.code}")
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        text = lines[0] if lines else "no reason given"
        communicator.abort(text if isinstance(error, PascaError) else f"{type(error).__name__}: {text}")
        raise


def _place_in_job() -> tuple[int, int]:
    """Rank and number of ranks of the whole job, whatever group this rank is in."""
    from mpi4py import MPI as library

    return library.COMM_WORLD.rank, library.COMM_WORLD.size
