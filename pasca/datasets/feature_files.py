"""Features from a file of their own: .npy, .npz (SciPy's sparse layout or a single array), .mtx, or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pasca.datasets.arrays import Npz, read_npy
from pasca.datasets.csr import checked_csr
from pasca.datasets.parts import RawFeatures
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError

FEATURE_SUFFIXES = (".npy", ".npz", ".mtx")
_SPARSE_KEYS = {"format", "shape", "data"}


def is_sparse_npz(keys: set[str]) -> bool:
    """Whether an .npz with these arrays is one that scipy.sparse.save_npz writes."""
    return keys >= _SPARSE_KEYS


def read_features(path: Path) -> RawFeatures:
    """Read an (N, F) matrix; a list of N numbers is one column.

    Raises:
        DataError: it is no such matrix, or damaged.
    """
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _as_matrix(read_npy(path), path)
    if suffix == ".npz":
        return _read_npz(path)
    if suffix == ".mtx":
        return _read_mtx(path)
    raise DataError(f"{path}: features come as {', '.join(FEATURE_SUFFIXES)} or a table, got {suffix or 'no suffix'}")


def _as_matrix(array: NDArray[Any], path: Path) -> NDArray[Any]:
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise DataError(f"{path}: expected a matrix of numbers, got {array.dtype} of shape {array.shape}")
    return array


def _read_npz(path: Path) -> RawFeatures:
    with Npz(path) as npz:
        if not is_sparse_npz(set(npz)):
            if len(npz) != 1:
                raise DataError(f"{path}: expected one array or a sparse matrix, the file holds {', '.join(npz)}")
            return _as_matrix(npz[next(iter(npz))], path)
        kind = npz["format"].reshape(-1)[:1].astype(np.str_).tolist()
        shape = tuple(npz["shape"].reshape(-1).tolist())
        try:
            if kind == ["coo"]:
                return _from_coo(npz.require("row"), npz.require("col"), npz["data"], shape)
            if kind in (["csr"], ["csc"]):
                parts = npz["data"], npz.require("indices"), npz.require("indptr")
                return checked_csr(*parts, shape) if kind == ["csr"] else checked_csr(*parts, shape[::-1]).T.tocsr()
        except ValueError as error:
            raise DataError(f"{path}: not a sparse matrix: {error}") from None
    raise DataError(f"{path}: a sparse matrix is csr, csc or coo here, got {kind}; save it as CSR")


def _from_coo(rows: NDArray[Any], columns: NDArray[Any], data: NDArray[Any], shape: tuple[Any, ...]) -> Any:
    if len(shape) != 2 or rows.dtype.kind not in "iu" or columns.dtype.kind not in "iu" or rows.ndim != 1:
        raise ValueError("rows and columns are lists of integers")
    if rows.size and (rows.min() < 0 or rows.max() >= shape[0]):
        raise ValueError(f"a row number is outside 0..{shape[0] - 1}")
    checked = checked_csr(data, columns, np.array([0, columns.size]), (1, shape[1]))
    return sparse.coo_array((checked.data, (rows, checked.indices)), shape=shape).tocsr()


def _read_mtx(path: Path) -> RawFeatures:
    """Read a Matrix Market file whose size line claims no more than the file can hold."""
    from scipy.io import mmread

    kind = sizes = ""
    for number, line in TextFile(path).lines("latin-1"):
        if number == 1:
            kind = line.lower()
        elif line.strip() and not line.startswith("%"):
            sizes = line
            break
    claimed = sizes.split()
    is_sparse = "coordinate" in kind
    if not kind.startswith("%%matrixmarket matrix ") or len(claimed) != (3 if is_sparse else 2):
        raise DataError(f"{path}: not a Matrix Market file; it starts with {kind[:60]!r} and sizes {sizes[:60]!r}")
    if not all(text.isdecimal() and len(text) < 19 for text in claimed):
        raise DataError(f"{path}: the sizes of a matrix are numbers, got {sizes[:60]!r}")
    entries = int(claimed[2]) if is_sparse else int(claimed[0]) * int(claimed[1])
    # An entry takes at least two characters, one of them white space; a symmetric file lists half of a dense matrix.
    if entries > path.stat().st_size:
        raise DataError(f"{path}: its size line claims {entries} entries, more than the file can hold; is it cut off?")
    try:
        matrix = mmread(path, spmatrix=False)
    except (ValueError, OverflowError, MemoryError, OSError) as error:
        raise DataError(f"{path}: not a complete Matrix Market file ({error})") from None
    if not sparse.issparse(matrix):
        return _as_matrix(np.asarray(matrix), path)
    return sparse.csr_array(matrix)
