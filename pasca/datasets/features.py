"""Features: those of the source in float32, or made from the structure where there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.graph import Features
from pasca.datasets.csr import row_of
from pasca.datasets.options import FEATURE_CHOICES
from pasca.datasets.parts import RawFeatures
from search_space.errors import ConfigError, DataError

# Degrees from here on share a column, so that graphs of any size have the same columns.
MAX_DEGREE = 127
SVD_RANK = 64


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


def make(kind: str, adjacency: sparse.csr_array, *, directed: bool) -> tuple[Features, tuple[str, ...] | None]:
    """Make features from the structure alone.

    Degrees count neighbours, weights aside; a directed graph has columns for arcs in and for arcs out.

    - degree: a constant 1 and log(1 + degree). The constant keeps degrees visible when rows are divided by their sum.
    - onehot-degree: a column for each degree below MAX_DEGREE, the last one for all higher degrees.
    - svd: the leading left singular vectors of the adjacency, each times the root of its singular value.
    - identity: a column for each node. adjacency: the rows of the adjacency.

    Args:
        kind: one of FEATURE_CHOICES.
        adjacency: (N, N) CSR.
    Returns:
        (N, F) float32 features and their names, None where a column belongs to a node or has no meaning of its own.
    """
    N = adjacency.shape[0]
    degrees = {"degree": np.diff(adjacency.indptr)}
    if directed:
        arcs_out = np.bincount(adjacency.indices, minlength=N)
        degrees = {"degree_in": degrees["degree"], "degree_out": arcs_out}
    if kind == "degree":
        columns = [np.ones(N, dtype=np.float32), *(np.log1p(d).astype(np.float32) for d in degrees.values())]
        return np.stack(columns, axis=1), ("one", *(f"log1p_{name}" for name in degrees))
    if kind == "onehot-degree":
        names = tuple(f"{name}_{k}" for name in degrees for k in range(MAX_DEGREE + 1))
        return _one_hot(list(degrees.values())), names
    if kind == "svd":
        return _singular_vectors(adjacency), None
    if kind == "identity":
        return sparse.csr_array(sparse.eye_array(N, dtype=np.float32, format="csr")), None
    if kind == "adjacency":
        return adjacency.copy(), None
    raise ConfigError(f"unknown features {kind!r}; choose from: {', '.join(FEATURE_CHOICES)}")


def _one_hot(degrees: list[NDArray[np.integer[Any]]]) -> sparse.csr_array:
    N, width = degrees[0].size, MAX_DEGREE + 1
    columns = np.stack([np.minimum(d, MAX_DEGREE) + i * width for i, d in enumerate(degrees)], axis=1)
    indptr = np.arange(0, columns.size + 1, len(degrees))
    ones = np.ones(columns.size, dtype=np.float32)
    return sparse.csr_array((ones, columns.reshape(-1), indptr), shape=(N, len(degrees) * width))


def _singular_vectors(adjacency: sparse.csr_array) -> NDArray[np.float32]:
    from sklearn.utils.extmath import randomized_svd

    rank = min(SVD_RANK, adjacency.shape[0])
    left, values, _ = randomized_svd(adjacency, rank, random_state=0)
    return np.ascontiguousarray(left * np.sqrt(values), dtype=np.float32)
