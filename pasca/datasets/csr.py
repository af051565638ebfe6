"""CSR parts from a file become a CSR array, after checking that they belong together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


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
