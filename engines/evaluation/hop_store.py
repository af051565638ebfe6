"""HopStore: a folder of hop features that later runs and other processes read instead of propagating again.

    FOLDER/SECTION/CHAIN/hop-003

A section belongs to one graph and normalisation, a chain to one matrix, restart and precision. A hop is written under
a temporary name, flushed to the disk and renamed, so a file is whole or absent; a process reads and checks all of it
once before the first use. Locks go with their process, however that ends: whoever extends a chain holds the
chain's, so several processes at once write each hop once; whoever uses a section holds a share of the section's, and
only sections that nobody uses make room for others.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engines.evaluation.hop_files import HEADER_BYTES, Floats, HopFile, new_file, seal, sealed_bytes, unsealed, writable
from search_space.errors import ConfigError, StorageError

Chain = tuple[str, float]

FORMAT = 1
"""Goes up whenever a reader of the old files would misunderstand the new ones, or compute other hops."""

_UNFINISHED = ".unfinished-"
_LOCK = "lock"

_log = logging.getLogger(__name__)


def section_key(structure_checksum: str, normalise: str, recipe_of_matrices: str) -> str:
    """Name of the section for one graph and one normalisation, as a hex digest usable as a file name.

    Args:
        structure_checksum: of adjacency and raw features.
        normalise: what is done to the features first.
        recipe_of_matrices: anything that changes when matrices are built in another way.
    """
    parts = (FORMAT, structure_checksum, normalise, recipe_of_matrices)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


class _Owner:
    """Lives as long as a temporary folder is to exist."""


@dataclass(frozen=True, slots=True)
class HopStore:
    """A folder with hops of any number of graphs.

    Attributes:
        folder: made on first use.
        limit_bytes: what all its files may take. Sections that were not used for longest and are not in use now are
            removed to make room; what does not fit even so is not stored.
        durable: whether a hop waits until it is on the disk; not needed where the folder goes with the process.
    Raises:
        ConfigError: the limit is negative.
    """

    folder: Path
    limit_bytes: int
    durable: bool = True
    _owner: _Owner | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.limit_bytes < 0:
            raise ConfigError(f"the limit of a hop store is at least 0 bytes, got {self.limit_bytes}")

    @classmethod
    def temporary(cls, parent: Path | None = None) -> HopStore:
        """A store without a limit in a new folder, which is removed with the store, at the program's end at the latest.

        Raises:
            StorageError: the folder cannot be made.
        """
        try:
            folder = tempfile.mkdtemp(prefix="pasca-hops-", dir=parent)
        except OSError as error:
            raise StorageError(f"no temporary folder can be made for hops: {error.strerror or error}") from error
        owner = _Owner()
        weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
        return cls(Path(folder), sys.maxsize, durable=False, _owner=owner)

    def section(self, key: str) -> Section:
        """Open a section, which is then in use until it is closed.

        Raises:
            StorageError: the folder cannot be made or written to.
        """
        return Section(self, key)


class Section:
    """The hops of one graph under one normalisation. Use by one thread at a time."""

    def __init__(self, store: HopStore, key: str) -> None:
        self._store, self.folder = store, store.folder / key
        self._full, self._damaged = False, set[Path]()
        try:
            self._lock = _share_of(self.folder)
            os.utime(self.folder)  # used last: what orders the sections when room is needed
        except OSError as error:
            raise StorageError(
                f"cannot keep hops in {store.folder}: {error.strerror or error}; name another folder or leave the "
                "hop store out"
            ) from error

    def close(self) -> None:
        """The section is no longer in use; what was read from it stays readable while its files exist."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def find(self, chain: Chain, k: int, shape: tuple[int, ...], dtype: str) -> HopFile | None:
        """A stored hop, once all of it was read and checked; None where there is none.

        A damaged file is none, which is said in one warning; `write` replaces it.
        """
        path = self._path(chain, k, dtype)
        try:
            found = unsealed(path, shape, dtype, _about(chain, k))
        except FileNotFoundError:
            return None
        except OSError as error:
            found = error.strerror or str(error)
        if isinstance(found, HopFile):
            return found
        if path not in self._damaged:
            self._damaged.add(path)
            _log.warning("%s is damaged (%s) and is computed again", path, found)
        return None

    @contextlib.contextmanager
    def extending(self, chain: Chain, dtype: str) -> Iterator[None]:
        """Be the one process that extends a chain; waits until no other does."""
        folder = self._path(chain, 0, dtype).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise StorageError(f"cannot keep hops in {folder}: {error.strerror or error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left_behind in folder.glob(f"{_UNFINISHED}*"):
                left_behind.unlink()  # by a process that was killed: the living one holds the lock
            yield
        finally:
            os.close(lock)

    def write(
        self, chain: Chain, k: int, shape: tuple[int, ...], dtype: str, fill: Callable[[Any], Floats | None]
    ) -> HopFile | None:
        """Store a hop; the caller is extending its chain.

        Args:
            fill: writes the values into an (N, F) array of `dtype`, and returns their factors if it is float16.
        Returns:
            The hop as it is read from now on; None where there is no room for it, which is said once.
        Raises:
            StorageError: it could not be written.
        """
        size = sealed_bytes(shape, dtype)
        if not self._room_for(size):
            return None
        path = self._path(chain, k, dtype)
        unfinished = path.with_name(f"{_UNFINISHED}{path.name}")
        try:
            new_file(unfinished, size)
            try:
                factors = fill(writable(unfinished, shape, dtype, HEADER_BYTES))
                seal(unfinished, shape, factors, _about(chain, k), durable=self._store.durable)
                os.replace(unfinished, path)
                if self._store.durable:
                    _sync(path.parent)
            finally:
                unfinished.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                f"the hop store {self._store.folder} could not take {size} bytes more: {error.strerror or error}; "
                "lower its limit, name another folder or leave it out"
            ) from error
        return HopFile(path, shape, HEADER_BYTES, factors)

    def _path(self, chain: Chain, k: int, dtype: str) -> Path:
        matrix_key, restart = chain
        return self.folder / f"{matrix_key}+{restart!r}-{dtype}" / f"hop-{k:03d}"

    def _room_for(self, size: int) -> bool:
        """Make room if need be; whether there is some."""
        if self._full:
            return False
        folder, limit = self._store.folder, self._store.limit_bytes
        sizes = {section: _size(section) for section in folder.iterdir() if section.is_dir()}
        total = sum(sizes.values())
        for section in sorted(sizes, key=_last_used):
            if total + size <= limit:
                break
            if section != self.folder and _removed(section):
                total -= sizes[section]
        self._full = total + size > limit
        if self._full:
            _log.warning(
                "the hop store %s has reached its limit of %.3g GB; further hops are not kept for later runs",
                folder,
                limit / 1e9,
            )
        return not self._full


def _share_of(folder: Path) -> int:
    """Make a section's folder and hold a share of its lock; returns the handle that holds it."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # removed to make room, between the two lines
        fcntl.flock(handle, fcntl.LOCK_SH)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(folder / _LOCK)):
                return handle
        os.close(handle)  # removed while we waited for the lock


def _about(chain: Chain, k: int) -> dict[str, Any]:
    return {"format": FORMAT, "matrix": chain[0], "restart": chain[1], "k": k}


def _size(folder: Path) -> int:
    """Bytes of the files in a folder, while others may come and go."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total


def _last_used(section: Path) -> float:
    try:
        return section.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _removed(section: Path) -> bool:
    """Remove a section unless a process uses it; whether it is gone."""
    try:
        lock = os.open(section / _LOCK, os.O_RDWR)
    except OSError:
        return False  # removed just now, or none of ours
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(section)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def _sync(folder: Path) -> None:
    """Make a rename in the folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
