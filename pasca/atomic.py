"""Files and folders that appear whole or not at all, whatever happens while they are written.

Everything is written under a temporary sibling name first, flushed to the disk, and renamed. An error removes the
temporary; a killed process leaves one behind, which the next writer of the same target removes, and which
`remove_leftovers` recognises by its name.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from search_space.errors import RunError, StorageError

_PREFIX, _SUFFIX = ".pasca-", ".tmp"


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Fill a file under a temporary name; it takes the place of an earlier one when the block ends without an error.

    Yields:
        The temporary file, open for writing bytes.
    Raises:
        StorageError: it could not be written; an earlier file of that name is untouched.
    """
    if path.is_dir():
        raise StorageError(f"cannot write {path}: it is a folder; give a file")
    temporary: Path | None = None
    try:
        remove_dead(path)
        handle, name = tempfile.mkstemp(prefix=_prefix(path), suffix=_SUFFIX, dir=path.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file, replacing an earlier one only once the new one is complete.

    Args:
        content: bytes, or text that is written as UTF-8.
    Raises:
        StorageError: it could not be written; an earlier file of that name is untouched.
    """
    with new_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a mapping of JSON types as indented JSON; otherwise as `write_file`."""
    write_file(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a folder under a temporary name; it gets its own name when the block ends without an error.

    Yields:
        The temporary folder, beside `path`.
    Raises:
        RunError: `path` exists already.
        StorageError: something could not be written; nothing is left behind.
    """
    if os.path.lexists(path):
        raise RunError(f"{path} exists already; give another folder or remove it")
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_dead(path)
        temporary = Path(tempfile.mkdtemp(prefix=_prefix(path), suffix=_SUFFIX, dir=path.parent))
        with _locked(temporary):
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    with file.open("rb") as opened:
                        os.fsync(opened.fileno())
            _sync_folder(temporary)
            temporary.chmod(0o777 & ~_umask())
            os.rename(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary is not None and temporary.exists():
            shutil.rmtree(temporary)


def remove_dead(path: Path) -> None:
    """Remove what killed writers of `path` left beside it."""
    prefix = _prefix(path)
    if path.parent.is_dir():
        for entry in [entry for entry in path.parent.iterdir() if entry.name.startswith(prefix)]:
            _removed_if_dead(entry)


def leftovers(folder: Path) -> list[Path]:
    """What unfinished writers have, or left, in a folder."""
    return sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}"))


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove what killed writers left in a folder; returns what was removed."""
    return [path for path in leftovers(folder) if _removed_if_dead(path)]


def _removed_if_dead(path: Path) -> bool:
    """Remove a temporary unless its writer is alive, which holds a lock on it; whether it was removed."""
    try:
        with _locked(path):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    except (BlockingIOError, FileNotFoundError):
        return False  # at work, or just finished
    return True


def _prefix(path: Path) -> str:
    """How temporaries of one target begin, whatever signs and length its name has."""
    return f"{_PREFIX}{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:12]}-"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder; it goes with the process, however that ends.

    Raises:
        BlockingIOError: another process holds it.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
