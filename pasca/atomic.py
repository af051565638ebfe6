"""Files and folders that appear whole or not at all, whatever happens while they are written.

Everything is written under a temporary sibling name first, flushed to the disk, and renamed. An error removes the
temporary; a killed process leaves one behind, which `remove_leftovers` recognises by its name.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from search_space.errors import RunError, StorageError

_PREFIX, _SUFFIX = ".pasca-", ".tmp"


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file, replacing an earlier one only once the new one is complete.

    Args:
        content: bytes, or text that is written as UTF-8.
    Raises:
        StorageError: it could not be written; an earlier file of that name is untouched.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX, dir=path.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


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
        temporary = Path(tempfile.mkdtemp(prefix=_PREFIX, suffix=_SUFFIX, dir=path.parent))
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


def leftovers(folder: Path) -> list[Path]:
    """What unfinished writers have, or left, in a folder."""
    return sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}"))


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove what killed writers left in a folder; returns what was removed.

    Call it only while holding the folder's lock: the temporary of a living writer looks the same.
    """
    found = leftovers(folder)
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return found


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
