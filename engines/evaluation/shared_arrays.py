"""Arrays that several processes on one machine read from the same files, which are mapped and not copied."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_PARTS = ("data", "indices", "indptr")


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array for `map_array`."""
    with path.open("wb") as file:
        np.save(file, array)


def map_array(path: Path) -> NDArray[Any]:
    """The array in a file; what is written to it stays with this process."""
    mapped: NDArray[Any] = np.load(path, mmap_mode="c", allow_pickle=False)
    return mapped


def save_csr(folder: Path, matrix: sparse.csr_array) -> None:
    """Write a matrix for `map_csr` into a folder, which is made and appears whole or not at all."""
    unfinished = folder.with_name(f"{folder.name}.unfinished-{os.getpid()}")
    unfinished.mkdir()
    for part in _PARTS:
        save_array(unfinished / part, getattr(matrix, part))
    save_array(unfinished / "shape", np.asarray(matrix.shape))
    os.rename(unfinished, folder)


def map_csr(folder: Path) -> sparse.csr_array:
    """The matrix in a folder, with sorted indices as it was written."""
    shape = tuple(map(int, map_array(folder / "shape")))
    matrix = sparse.csr_array(tuple(map_array(folder / part) for part in _PARTS), shape=shape)
    # known of what was written; finding out would read it all
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


def shared_csr(folder: Path, build: Callable[[], sparse.csr_array]) -> sparse.csr_array:
    """The matrix in a folder, built by the first of the processes that ask for it; the others wait for that one."""
    handle = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not folder.exists():
            save_csr(folder, build())
    finally:
        os.close(handle)
    return map_csr(folder)
