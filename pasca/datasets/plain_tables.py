"""Plain tables: an edge list with a node table, or with features and labels in files of their own.

The node table, or else the rows of the features, say which nodes there are and in which order; an edge list alone has
the nodes that it names. Edges, labels and splits are joined to the nodes by id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.graph import Nodes
from pasca.datasets import splits
from pasca.datasets.arrays import read_npy
from pasca.datasets.edge_tables import EdgeTable, read_edge_table
from pasca.datasets.feature_files import FEATURE_SUFFIXES, read_features
from pasca.datasets.ids import Ids, NodeIndex, ids_of, union
from pasca.datasets.node_tables import NodeTable, assign_columns, read_node_table
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import GivenSplit, Integers, Parts, RawFeatures
from pasca.datasets.tables import columns_of, read_table
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError


@dataclass(frozen=True)
class PlainSet:
    """The files of one plain-table data set.

    Attributes:
        split: files of node lists or masks by part: train, val, test.
    """

    edges: Path
    nodes: Path | None = None
    features: Path | None = None
    labels: Path | None = None
    split: Mapping[str, Path] = field(default_factory=dict)

    @property
    def files(self) -> tuple[Path, ...]:
        """All files."""
        named = (self.edges, self.nodes, self.features, self.labels, *self.split.values())
        return tuple(path for path in named if path is not None)


def feature_columns(path: Path) -> tuple[str, ...]:
    """The columns of a node table that are neither id nor label nor split; by its header alone, none without one."""
    try:
        names = columns_of(TextFile(path), "latin-1", None)
        return (
            () if names is None else tuple(names[i] for i in assign_columns(names, TextFile(path), None, None).features)
        )
    except DataError:  # whatever is wrong with the table is said when it is read
        return ()


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Who the nodes are, and what their own files say of them.

    Attributes:
        features: (N, F), rows in node order.
        described: how messages describe the nodes.
    """

    index: NodeIndex
    table: NodeTable | None
    features: RawFeatures | None
    feature_names: tuple[str, ...] | None
    described: str
    notes: list[str]


def read_plain(chosen: PlainSet, options: LoadOptions) -> Parts:
    """Read the files of one data set and join them by node id.

    Raises:
        DataError: a file cannot be read, or names a node that the others do not have.
    """
    edges = read_edge_table(TextFile(chosen.edges), options)
    labels = None if chosen.labels is None else _read_labels(chosen.labels, options)
    nodes = _nodes(chosen, edges, labels, options)
    if nodes.table is not None:
        edges = edges.without_unnoticed_header(nodes.index)
    arcs, edge_notes = edges.arcs(nodes.index, nodes.described, options.unknown_nodes)
    N = len(nodes.index)
    names, label_notes = _join_labels(labels, nodes, options) if labels is not None else (None, [])
    if names is None and nodes.table is not None:
        names = nodes.table.labels()
    given = _split(chosen, nodes, options)
    read = ", ".join(path.name for path in chosen.files)
    return Parts(
        name=chosen.edges.resolve().parent.name,
        source=str(chosen.edges),
        num_nodes=N,
        arcs=arcs,
        features=nodes.features,
        labels=names,
        splits=given,
        default_split="given" if given else None,
        node_ids=nodes.index.original(),
        feature_names=nodes.feature_names,
        notes=(f"read {read}", *nodes.notes, *edge_notes, *label_notes),
    )


def _nodes(chosen: PlainSet, edges: EdgeTable, labels: NodeTable | NDArray[Any] | None, options: LoadOptions) -> _Nodes:
    """Find out who the nodes are, from the first file that says so."""
    if chosen.nodes is not None:
        table = read_node_table(TextFile(chosen.nodes), options)
        return _of_table(table, chosen.features, options)
    if chosen.features is not None:
        if chosen.features.suffix.lower() not in FEATURE_SUFFIXES:
            return _of_table(read_node_table(TextFile(chosen.features), options, "features"), None, options)
        return _of_features(chosen.features, labels)
    if isinstance(labels, np.ndarray):
        N = labels.shape[0]
        return _Nodes(_numbered(N), None, None, None, f"the {N} nodes of {chosen.labels}, numbered from 0", [])
    listed = [edges.sources, edges.targets, *([labels.ids] if labels is not None and labels.ids is not None else [])]
    return _Nodes(NodeIndex(union(*listed)), None, None, None, "the nodes of the edge list", [])


def _of_table(table: NodeTable, features: Path | None, options: LoadOptions) -> _Nodes:
    index = NodeIndex(table.ids) if table.ids is not None else _numbered(table.num_rows)
    own, names, notes = table.features()
    described = f"the {len(index)} nodes of {table.table.file}"
    if table.ids is None:
        described += ", numbered from 0"
        notes.append("no id column: nodes are known by row number")
    if features is None:
        return _Nodes(index, table, own, names if own is not None else None, described, notes)
    if features.suffix.lower() not in FEATURE_SUFFIXES:
        other = read_node_table(TextFile(features), options, "features")
        matrix, names, more = other.features()
        rows = _rows_by_id(other, index) if other.ids is not None else None
        chosen: RawFeatures | None = matrix if rows is None or matrix is None else matrix[rows]
        return _Nodes(index, table, chosen, names, described, notes + more)
    values = read_features(features)
    if values.shape[0] != len(index):
        raise DataError(f"{features}: expected a row for each of {described}, got shape {values.shape}")
    integers = index.ids.integers
    if integers is not None and np.array_equal(np.sort(integers), np.arange(len(index))):
        return _Nodes(index, table, values[integers], None, described, [*notes, "row i of the features is node i"])
    return _Nodes(index, table, values, None, described, [*notes, "rows of the features are in the node table's order"])


def _of_features(path: Path, labels: NodeTable | NDArray[Any] | None) -> _Nodes:
    values = read_features(path)
    N = int(values.shape[0])
    if isinstance(labels, NodeTable) and labels.ids is not None and labels.num_rows == N:
        integers = labels.ids.integers
        if integers is None or integers.min() < 0 or integers.max() >= N:
            described = f"the {N} nodes of {labels.table.file}"
            note = "rows of the features are in the order of the labels"
            return _Nodes(NodeIndex(labels.ids), None, values, None, described, [note])
    return _Nodes(_numbered(N), None, values, None, f"the {N} rows of {path}, numbered from 0", [])


def _rows_by_id(table: NodeTable, index: NodeIndex) -> Integers:
    """The row of every node in a table that lists every node once."""
    rows = NodeIndex(table.ids).find(index.ids) if table.ids is not None else np.arange(len(index))
    missing = np.flatnonzero(rows < 0)
    if missing.size:
        raise DataError(f"{table.table.file}: node {index.ids[int(missing[0])]!r} has no row ({missing.size} such)")
    return rows


def _numbered(num_nodes: int) -> NodeIndex:
    return NodeIndex(Ids(np.arange(num_nodes, dtype=np.int64)))


def _read_labels(path: Path, options: LoadOptions) -> NodeTable | NDArray[Any]:
    return read_npy(path) if path.suffix.lower() == ".npy" else read_node_table(TextFile(path), options, "labels")


def _join_labels(
    labels: NodeTable | NDArray[Any], nodes: _Nodes, options: LoadOptions
) -> tuple[NDArray[Any], list[str]]:
    """Raw labels in node order."""
    if isinstance(labels, np.ndarray):
        return labels, []
    values = labels.labels()
    if values is None and len(labels.columns.features) == 1:
        values = labels.table.text_array(labels.columns.features[0], missing_ok=True)
    if values is None:
        names = ", ".join(labels.table.names or ())
        raise DataError(f"{labels.table.file}: no column is called label; name one of {names} with --label-column")
    if labels.ids is None:
        return values, []
    places = nodes.index.find(labels.ids)
    unknown = np.flatnonzero(places < 0)
    if unknown.size and options.unknown_nodes == "error":
        row = int(unknown[0])
        raise DataError(
            f"{labels.table.file}: {unknown.size} label(s) are of unknown nodes, the first is {labels.ids[row]!r} in "
            f"{labels.table.where(row)}, not among {nodes.described}; mend it, or use --unknown-nodes drop"
        )
    joined = np.zeros(len(nodes.index), dtype=values.dtype)  # empty texts
    joined[places[places >= 0]] = values[places >= 0]
    return joined, [f"{unknown.size} label(s) of unknown nodes dropped"] if unknown.size else []


def _split(chosen: PlainSet, nodes: _Nodes, options: LoadOptions) -> dict[str, GivenSplit]:
    """The given split: of the node table's columns, or of files."""
    if chosen.split:
        parts = [_part(chosen.split[part], nodes, options) if part in chosen.split else _NOBODY for part in _PARTS]
        return {"given": lambda: (parts[0], parts[1], parts[2])}
    rows = None if nodes.table is None else nodes.table.split_rows()
    return {} if rows is None else {"given": lambda: rows}


_PARTS = ("train", "val", "test")
_NOBODY: Nodes = np.zeros(0, dtype=np.int64)


def _part(path: Path, nodes: _Nodes, options: LoadOptions) -> Nodes:
    """The nodes of one part, from a mask, a list of node numbers, or a table of ids."""
    N = len(nodes.index)
    if path.suffix.lower() == ".npy":
        values = read_npy(path)
        is_mask = values.dtype.kind == "b" or "mask" in path.name.lower()
        return splits.nodes_of_mask(values, N, str(path)) if is_mask else splits.nodes_of_list(values, N, str(path))
    table = read_table(TextFile(path), options.encoding, options.header)
    ids = ids_of(table.texts(0))
    places = nodes.index.find(ids)
    unknown = np.flatnonzero(places < 0)
    if unknown.size:
        row = int(unknown[0])
        raise DataError(f"{path}: {ids[row]!r} in {table.where(row)} is not among {nodes.described}")
    return splits.nodes_of_list(places, N, str(path))
