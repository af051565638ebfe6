"""Communicator: what ranks say to one another, and how a single process answers. MPI itself is in `mpi.py`."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.evaluation.messages import Tag
from search_space.errors import PascaError, ShapeError

Numbers = NDArray[Any]

SHORTEST_PAUSE, LONGEST_PAUSE = 2e-5, 5e-4
"""Seconds between two looks at what a rank waits for."""

_log = logging.getLogger(__name__)


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
