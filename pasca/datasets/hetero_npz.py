"""hetero-npz: the heterophilous-graphs layout, one .npz with several splits.

node_features (N, F)   node_labels (N,)   edges (E, 2)
train_masks, val_masks, test_masks (S, N): one row a split, booleans or zeros and ones
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.graph import Nodes
from pasca.datasets.arrays import Npz
from pasca.datasets.parts import Arcs, GivenSplit, Parts
from pasca.datasets.splits import nodes_of_mask
from search_space.errors import DataError

_MASKS = ("train_masks", "val_masks", "test_masks")


def is_hetero_npz(keys: set[str]) -> bool:
    """Whether an .npz with these arrays has this layout."""
    return "edges" in keys and bool(keys & {"node_features", "node_labels"})


def read_hetero_npz(path: Path) -> Parts:
    """Read one .npz of the hetero-npz layout; split 0 unless another is named.

    Raises:
        DataError: arrays that are missing, hold objects, or do not belong together.
    """
    with Npz(path) as npz:
        features = npz.get("node_features")
        labels = npz.get("node_labels")
        edges = npz.require("edges")
        masks = {key: npz.require(key) for key in _MASKS} if any(key in npz for key in _MASKS) else {}
    first = features if features is not None else labels
    if first is None or not first.ndim:
        raise DataError(f"{path}: node_features and node_labels need a row for each node")
    N = first.shape[0]
    return Parts(
        name=path.stem,
        source=str(path),
        num_nodes=N,
        arcs=_arcs(edges, N, path),
        features=features,
        labels=labels,
        splits=_splits(masks, N, path),
        default_split="0" if masks else None,
    )


def _arcs(edges: NDArray[Any], num_nodes: int, path: Path) -> Arcs:
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        turned = "; it is transposed" if edges.ndim == 2 and edges.shape[0] == 2 else ""
        raise DataError(
            f"{path}: edges are pairs of node numbers, shape (E, 2), got {edges.dtype} of {edges.shape}{turned}"
        )
    outside = np.flatnonzero(((edges < 0) | (edges >= num_nodes)).any(axis=1))
    if outside.size:
        row = int(outside[0])
        raise DataError(
            f"{path}: row {row} of edges is {edges[row].tolist()}, but node numbers run from 0 to {num_nodes - 1} "
            f"({outside.size} such rows)"
        )
    return Arcs(edges[:, 0].astype(np.int64), edges[:, 1].astype(np.int64), where=lambda i: f"row {i} of edges")


def _splits(masks: dict[str, NDArray[Any]], num_nodes: int, path: Path) -> dict[str, GivenSplit]:
    if not masks:
        return {}
    for key, mask in masks.items():
        if mask.ndim == 1 and mask.shape == (num_nodes,):
            masks[key] = mask.reshape(1, -1)
        elif mask.ndim != 2 or mask.shape[1] != num_nodes:
            turned = "; it is transposed" if mask.ndim == 2 and mask.shape[0] == num_nodes else ""
            raise DataError(f"{path}: {key} has a row for each split, shape (S, {num_nodes}), got {mask.shape}{turned}")
    counts = {mask.shape[0] for mask in masks.values()}
    if len(counts) > 1:
        shapes = ", ".join(f"{key} {mask.shape}" for key, mask in masks.items())
        raise DataError(f"{path}: the masks need the same number of splits, got {shapes}")

    def read(number: int) -> tuple[Nodes, Nodes, Nodes]:
        train, validation, test = (
            nodes_of_mask(masks[key][number], num_nodes, f"{path}: {key}, split {number}") for key in _MASKS
        )
        return train, validation, test

    return {str(number): partial(read, number) for number in range(counts.pop())}
