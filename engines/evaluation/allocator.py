"""Large blocks of memory stay with the process while a training runs, instead of being fetched anew in every step.

glibc gives every block of more than a few hundred kilobytes, at most 32 MB, back to the system when it is freed. A step
of training allocates the same large arrays again and again, and the system clears every page of them each time: with
wide features a third of the time of a training goes there.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_USUAL_TRIM_BYTES, _USUAL_MMAPS = 128 << 10, 65536
_MOST = 2**31 - 1

_lock = threading.Lock()
_users = 0


@contextmanager
def keeping_large_blocks() -> Iterator[None]:
    """Freed blocks are kept for the next allocation until the last user leaves; then all free memory is given back.

    Peak memory is that of the training itself. Without glibc nothing changes.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _users
    with _lock:
        _users += 1
        if _users == 1 and (library := _glibc()) is not None:
            library.mallopt(_MMAP_MAX, 0)
            library.mallopt(_TRIM_THRESHOLD, _MOST)


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users == 0 and (library := _glibc()) is not None:
            library.mallopt(_MMAP_MAX, _USUAL_MMAPS)
            library.mallopt(_TRIM_THRESHOLD, _USUAL_TRIM_BYTES)
            library.malloc_trim(0)


@functools.cache
def _glibc() -> Any:
    """The C library, if it is one with these calls."""
    try:
        library = ctypes.CDLL(None)
        _ = library.mallopt, library.malloc_trim, library.gnu_get_libc_version
    except (OSError, AttributeError, TypeError):
        return None
    return library
