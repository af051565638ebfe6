"""csr-npz: the gnn-benchmark layout, CSR parts of adjacency and attributes in one .npz, and its variants.

    adj_data adj_indices adj_indptr adj_shape    (or adj_matrix.data ...)
    attr_data attr_indices attr_indptr attr_shape    or a dense attr_matrix, or no attributes
    labels, sometimes class_names, node_names, attr_names, train_idx, val_idx, test_idx

Values of the adjacency count repeated edges; `assemble.py` reads them as 1 unless weights are asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.graph import Nodes
from pasca.datasets import splits
from pasca.datasets.arrays import Npz
from pasca.datasets.csr import checked_csr
from pasca.datasets.parts import Arcs, Parts, RawFeatures
from search_space.errors import DataError

_ADJACENCY = ("adj_{}", "adj_matrix.{}", "adj_matrix_{}")
_ATTRIBUTES = ("attr_{}", "attr_matrix.{}", "attr_matrix_{}")
_DENSE_ATTRIBUTES = ("attr_matrix", "attr", "features")
_CSR_PARTS = ("data", "indices", "indptr", "shape")
# Names are a convenience, and published files often pickle them; everything else in the file must be plain.
_OPTIONAL = ("class_names", "node_names", "attr_names", "metadata", "idx_to_node", "idx_to_attr", "idx_to_class")
_INDEX_KEYS = ("train_idx", "val_idx", "test_idx")


def is_csr_npz(keys: set[str]) -> bool:
    """Whether an .npz with these arrays has this layout."""
    return any(pattern.format("indptr") in keys for pattern in _ADJACENCY)


def read_csr_npz(path: Path) -> Parts:
    """Read one .npz of the csr-npz layout.

    Raises:
        DataError: arrays that are missing, hold objects, or do not belong together.
    """
    with Npz(path) as npz:
        adjacency = _matrix(npz, _ADJACENCY)
        if adjacency is None:
            raise DataError(f"{path}: array 'adj_indptr' is missing; the file holds {', '.join(npz)}")
        N = adjacency.shape[0]
        if adjacency.shape != (N, N):
            raise DataError(f"{path}: the adjacency must be square, got shape {adjacency.shape}")
        names = _texts(npz, "class_names")
        ids = _texts(npz, "node_names")
        if ids is not None and len(ids) != N:
            raise DataError(f"{path}: expected one of node_names for each of {N} nodes, got {len(ids)}")
        unread = [key for key in npz if key not in _OPTIONAL and npz.is_object(key)]
        if unread:
            npz.require(unread[0])
        given = _index_split(npz, N)
        rows = np.repeat(np.arange(N, dtype=np.int64), np.diff(adjacency.indptr))
        features = _features(npz)
        return Parts(
            name=path.stem,
            source=str(path),
            num_nodes=N,
            arcs=Arcs(rows, adjacency.indices.astype(np.int64), adjacency.data.astype(np.float64), are_counts=True),
            features=features,
            labels=npz.get("labels"),
            label_names=None if names is None else tuple(names.tolist()),
            splits={} if given is None else {"given": lambda: given},
            default_split=None if given is None else "given",
            node_ids=ids if ids is not None and np.unique(ids).size == N else None,
            feature_names=_feature_names(npz, features),
            notes=tuple(f"{key} holds pickled objects: not read" for key in _OPTIONAL if npz.is_object(key)),
        )


def _matrix(npz: Npz, patterns: tuple[str, ...]) -> sparse.csr_array | None:
    for pattern in patterns:
        if any(pattern.format(part) in npz for part in _CSR_PARTS):
            parts = [npz.require(pattern.format(part)) for part in _CSR_PARTS]
            try:
                return checked_csr(parts[0], parts[1], parts[2], tuple(parts[3].reshape(-1).tolist()))
            except ValueError as error:
                raise DataError(f"{npz.path}: {pattern.format('*')} is not a CSR matrix: {error}") from None
    return None


def _features(npz: Npz) -> RawFeatures | None:
    attributes = _matrix(npz, _ATTRIBUTES)
    if attributes is not None:
        return attributes
    key = next((key for key in _DENSE_ATTRIBUTES if key in npz), None)
    return None if key is None else npz[key]


def _texts(npz: Npz, key: str) -> NDArray[np.str_] | None:
    """An optional array of names; one saved as pickled objects counts as absent."""
    if key not in npz or npz.is_object(key):
        return None
    array = npz[key].reshape(-1)
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array.astype(np.str_)


def _feature_names(npz: Npz, features: RawFeatures | None) -> tuple[str, ...] | None:
    names = None if features is None or "attr_names" not in npz else _texts(npz, "attr_names")
    return (
        tuple(names.tolist())
        if names is not None and features is not None and names.size == features.shape[1]
        else None
    )


def _index_split(npz: Npz, num_nodes: int) -> tuple[Nodes, Nodes, Nodes] | None:
    if not all(key in npz for key in _INDEX_KEYS):
        return None
    parts: list[Any] = [splits.nodes_of_list(npz[key], num_nodes, f"{npz.path}: {key}") for key in _INDEX_KEYS]
    return parts[0], parts[1], parts[2]
