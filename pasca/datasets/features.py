"""Features: those of the source in float32, or made from the structure where there are none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.graph import Features
from pasca.datasets.csr import row_of
from pasca.datasets.parts import RawFeatures
from search_space.errors import DataError

MADE = ("degree",)


def to_single(raw: RawFeatures, source: str, node: Callable[[int], str]) -> Features:
    """Convert numeric features to float32, dense stays dense and C-contiguous, sparse stays sparse.

    Args:
        raw: (N, F) of booleans, integers or floats of any width.
        source, node: the file and how to name node i, for messages.
    Raises:
        DataError: not a matrix of numbers, no column, or NaN, infinite and too large values.
    """
    if raw.ndim != 2 or raw.shape[1] == 0:
        raise DataError(f"{source}: features form a matrix with at least one column, got shape {raw.shape}")
    if raw.dtype.kind not in "biuf":
        raise DataError(f"{source}: features are numbers, got type {raw.dtype}")
    with np.errstate(over="ignore"):
        if sparse.issparse(raw):
            matrix = sparse.csr_array(raw, dtype=np.float32)
            matrix.sum_duplicates()
            finite = np.isfinite(matrix.data)
            if finite.all():
                return matrix
            first = row_of(matrix.indptr, int(np.flatnonzero(~finite)[0]))
        else:
            dense = np.ascontiguousarray(raw, dtype=np.float32)
            finite = np.isfinite(dense)
            if finite.all():
                return dense
            first = int(np.flatnonzero(~finite.all(axis=1))[0])
    raise DataError(
        f"{source}: features hold {int((~finite).sum())} value(s) that are NaN, infinite or past float32, "
        f"the first at {node(first)}; clean or fill them"
    )


def make(kind: str, adjacency: sparse.csr_array) -> tuple[Features, tuple[str, ...]]:
    """Make features from the structure alone.

    Args:
        kind: one of MADE.
        adjacency: (N, N) CSR.
    Returns:
        (N, F) float32 features and their names.
    """
    if kind != "degree":
        raise DataError(f"unknown features {kind!r}; choose from: {', '.join(MADE)}")
    degrees: NDArray[np.float32] = np.diff(adjacency.indptr).astype(np.float32)
    return np.log1p(degrees).reshape(-1, 1), ("log1p_degree",)
