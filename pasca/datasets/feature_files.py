"""Features from a file of their own: .npy, .npz (SciPy's sparse layout or a single array), .mtx, or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pasca.datasets.arrays import Npz, read_npy
from pasca.datasets.csr import checked_csr, from_coo
from pasca.datasets.matrix_market import read_mtx
from pasca.datasets.parts import RawFeatures
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
        return read_mtx(path)
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
        shape = tuple(npz["shape"].reshape(-1).tolist())
        try:
            kind = npz["format"].reshape(-1)[:1].astype(np.str_).tolist()
            if kind == ["coo"]:
                return from_coo(npz["data"], npz.require("row"), npz.require("col"), shape)
            if kind in (["csr"], ["csc"]):
                parts = npz["data"], npz.require("indices"), npz.require("indptr")
                return checked_csr(*parts, shape) if kind == ["csr"] else _from_csc(*parts, shape)
        except ValueError as error:
            raise DataError(f"{path}: not a sparse matrix: {error}") from None
    raise DataError(f"{path}: a sparse matrix is csr, csc or coo here, got {kind}; save it as CSR")


def _from_csc(data: Any, indices: Any, indptr: Any, shape: tuple[Any, ...]) -> sparse.csr_array:
    columns_first = checked_csr(data, indices, indptr, shape[::-1]).tocoo()
    return from_coo(columns_first.data, columns_first.col, columns_first.row, shape)
