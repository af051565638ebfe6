"""CSR parts from a file become a CSR array, after checking that they belong together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Rows cost memory even when they are empty, so a file of few entries cannot ask for many of them.
_HARMLESS_ROWS = 10_000_000
_ROWS_PER_ENTRY = 100


def row_of(indptr: NDArray[np.integer[Any]], entry: int) -> int:
    """The row that entry number `entry` of a CSR matrix belongs to."""
    return int(np.searchsorted(indptr, entry, side="right")) - 1


def checked_csr(data: Any, indices: Any, indptr: Any, shape: tuple[Any, ...]) -> sparse.csr_array:
    """Build a CSR array after checking that its parts belong together.

    Raises:
        ValueError: they do not; SciPy itself would read out of bounds for some of these.
    """
    if len(shape) != 2 or not all(isinstance(side, (int, np.integer)) and 0 <= side < 2**62 for side in shape):
        raise ValueError(f"a sparse matrix has two non-negative sides, got shape {shape}")
    for name, part, kinds in (("data", data, "biuf"), ("indices", indices, "iu"), ("indptr", indptr, "iu")):
        if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype.kind not in kinds:
            raise ValueError(
                f"{name} of a sparse matrix is a list of numbers, got {getattr(part, 'dtype', type(part))}"
            )
    rows, columns = int(shape[0]), int(shape[1])
    if indptr.size != rows + 1:
        raise ValueError(f"indptr of {rows} rows has {rows + 1} entries, got {indptr.size}")
    if indptr[0] != 0 or (np.diff(indptr.astype(np.int64)) < 0).any() or int(indptr[-1]) != indices.size:
        raise ValueError(f"indptr must rise from 0 to the {indices.size} entries of indices")
    if data.size != indices.size:
        raise ValueError(f"data and indices have one entry each, got {data.size} and {indices.size}")
    outside = np.flatnonzero((indices < 0) | (indices >= columns))
    if outside.size:
        row = row_of(indptr, int(outside[0]))
        raise ValueError(f"index {indices[outside[0]]} in row {row} is outside 0..{columns - 1}")
    index_type = np.int32 if max(columns, indices.size) < 2**31 else np.int64
    return sparse.csr_array((data, indices.astype(index_type), indptr.astype(index_type)), shape=(rows, columns))


def from_coo(data: Any, rows: Any, columns: Any, shape: tuple[Any, ...]) -> sparse.csr_array:
    """Build a CSR array from entries in any order, equal places added up, after the same checks.

    Raises:
        ValueError: the parts do not belong together, or there are far more rows than entries account for.
    """
    entries = np.array([0, columns.size]) if isinstance(columns, np.ndarray) else columns
    checked = checked_csr(data, columns, entries, (1, shape[-1]) if len(shape) == 2 else shape)
    by_column = checked_csr(data, rows, entries, (1, shape[0]))
    num_rows = int(shape[0])
    if num_rows > max(_HARMLESS_ROWS, _ROWS_PER_ENTRY * data.size):
        raise ValueError(f"{data.size} entries do not make a matrix of {num_rows} rows")
    return sparse.coo_array(
        (checked.data, (by_column.indices, checked.indices)), shape=(num_rows, int(shape[1]))
    ).tocsr()
