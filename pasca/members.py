"""The processes that work on one run: who they are, whether they live, and how they take turns.

Each holds a lock on a file in the run's folder: `lock` is held by the process that began or resumed the run, `lock-2`,
`lock-3`, ... by those that joined it. Two more files are locked for a while: `lock-turn` by whoever chooses a design or
writes to the record, `lock-end` by whoever retrains the front. A lock belongs to an open file and goes with its
process, however that ends, on this host and, where the folder is on a network file system, on others; what is written
in a file is only for messages and to tell processes apart.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pasca.atomic import remove_leftovers
from search_space.errors import RunError, StorageError

LOCK_FILE = "lock"
_TURN, _END = "lock-turn", "lock-end"
_PLACE = re.compile(r"lock(-\d+)?")
_POLL_SECONDS = 0.2


class Member:
    """This process, at work on a run. Made by `occupied` and `joined`.

    Attributes:
        folder: of the run.
        first: whether it began or resumed the run; otherwise it has joined it.
        token: names it among all processes that ever worked on the run.
    """

    def __init__(self, folder: Path, place: str, token: str, turn: int, end: int) -> None:
        self.folder, self.first, self.token = folder, place == LOCK_FILE, token
        self._place, self._turn, self._end = place, turn, end
        self._depth = 0

    def has_company(self) -> bool:
        """Whether another process has ever joined the run; as cheap as a look for a file."""
        return not self.first or (self.folder / _place(2)).exists()

    def others(self) -> list[str]:
        """The other processes that work on the run now, by token."""
        return [token for place, token in _held(self.folder) if place != self._place]

    def is_alive(self, token: str | None) -> bool:
        """Whether the process of that token works on the run."""
        return token == self.token or token in self.others()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Keep all others from choosing a design or writing while the block runs. May be nested."""
        if self._depth == 0:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                fcntl.flock(self._turn, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def closing(self, wait: Callable[[], None]) -> Iterator[None]:
        """Keep all others from closing the run while the block runs.

        Args:
            wait: called once where another does it now, before that is waited for.
        """
        try:
            fcntl.flock(self._end, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait()
            fcntl.flock(self._end, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._end, fcntl.LOCK_UN)


@contextlib.contextmanager
def occupied(folder: Path) -> Iterator[Member]:
    """Make the folder if need be, and work in it alone until others join.

    Also removes what a killed writer left in it.

    Raises:
        RunError: another living process works in it; the message names its host and number.
        StorageError: the folder cannot be made or written to.
    """
    with _writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder, LOCK_FILE) as handle:
        if not _taken(handle):
            raise RunError(_refusal(folder, _token_in(handle)))
        others = [token for place, token in _held(folder) if place != LOCK_FILE]
        if others:  # they joined a process that has ended since
            raise RunError(_refusal(folder, others[0]))
        with _member(folder, LOCK_FILE, handle) as member:
            yield member


@contextlib.contextmanager
def joined(folder: Path) -> Iterator[Member]:
    """Work in an existing run folder together with whoever is at work there; as the first, where nobody is.

    Raises:
        StorageError: the folder cannot be written to.
    """
    with contextlib.ExitStack() as held:
        number = 1
        while True:
            handle = held.enter_context(_opened(folder, _place(number)))
            if _taken(handle):
                break
            number += 1
        yield held.enter_context(_member(folder, _place(number), handle))


def refuse_held(folder: Path) -> None:
    """Make sure that nobody works in a run folder.

    Raises:
        RunError: a living process does; the message names its host and number.
    """
    if held := _held(folder):
        raise RunError(_refusal(folder, held[0][1]))


def holders(folder: Path) -> list[str]:
    """The living processes that work in a run folder, as `process 17 on host`."""
    return [name_of(token) for _, token in _held(folder)]


def is_held(folder: Path) -> bool:
    """Whether a living process is working in a run folder."""
    return bool(_held(folder))


def name_of(token: str | None) -> str:
    """How to speak of a process."""
    parts = (token or "").split("/")
    return f"process {parts[1]} on {parts[0]}" if len(parts) == 3 else "another process"


def is_lock(path: Path) -> bool:
    """Whether a file of a run folder is one of those that are locked."""
    return path.name in (_TURN, _END) or _PLACE.fullmatch(path.name) is not None


@contextlib.contextmanager
def _member(folder: Path, place: str, handle: int) -> Iterator[Member]:
    token = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
    with _writable(folder):
        os.truncate(handle, 0)
        os.pwrite(handle, json.dumps({"token": token}).encode(), 0)
        remove_leftovers(folder)
    with _opened(folder, _TURN) as turn, _opened(folder, _END) as end:
        yield Member(folder, place, token, turn, end)


@contextlib.contextmanager
def _opened(folder: Path, name: str) -> Iterator[int]:
    with _writable(folder):
        handle = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write to the run folder {folder}: {error.strerror or error}") from error


def _taken(handle: int) -> bool:
    """Lock an open file, unless another process has; whoever only looks holds it for an instant."""
    for _ in range(5):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.01)
    return False


def _held(folder: Path) -> list[tuple[str, str]]:
    """Places that are held, and by whom."""
    found = []
    names = [path.name for path in folder.glob(f"{LOCK_FILE}*") if _PLACE.fullmatch(path.name)]
    for name in sorted(names):
        try:
            handle = os.open(folder / name, os.O_RDONLY)
        except OSError:
            continue  # nobody whom this process may look at
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append((name, _token_in(handle)))
        finally:
            os.close(handle)
    return found


def _token_in(handle: int) -> str:
    """Who wrote into a lock; empty where that cannot be read."""
    try:
        return str(json.loads(os.pread(handle, 4096, 0))["token"])
    except (ValueError, KeyError, TypeError):
        return ""


def _refusal(folder: Path, token: str) -> str:
    return f"{folder} is in use by {name_of(token)}; wait for it, work beside it with --join, or choose another run"


def _place(number: int) -> str:
    return LOCK_FILE if number == 1 else f"{LOCK_FILE}-{number}"
