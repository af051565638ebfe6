"""Planetoid folders: eight files ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}.

Rows of allx and ally are nodes 0, 1, ...; the first of them, as many as x has rows, train, the next 500 validate. Row i
of tx and ty belongs to the node on line i of test.index, which is not sorted. Ids that the index skips have no features
and no label (Citeseer has 15).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.graph import Nodes
from pasca.datasets.candidates import Candidate
from pasca.datasets.geom_splits import find_geom_splits
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Arcs, GivenSplit, Integers, Parts
from pasca.datasets.pickles import read_pickle
from search_space.errors import DataError

PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
NUM_VALIDATION = 500


def find_planetoid(folder: Path) -> list[Candidate]:
    """The Planetoid data sets of a folder; complete ones are preferred to what else is there."""
    found: dict[str, set[str]] = {}
    for file in folder.glob("ind.*.*"):
        for part in PARTS:
            if file.name.endswith(f".{part}") and len(file.name) > len(f"ind..{part}"):
                found.setdefault(file.name[len("ind.") : -len(part) - 1], set()).add(part)
    return [
        Candidate(
            name=name,
            files=tuple(folder / f"ind.{name}.{part}" for part in sorted(parts)),
            read=partial(_read, folder, name),
            aliases=(f"ind.{name}",),
            preferred=len(parts) == len(PARTS),
        )
        for name, parts in sorted(found.items())
    ]


def _read(folder: Path, name: str, _: LoadOptions) -> Parts:
    return read_planetoid(folder, name)


def read_planetoid(folder: Path, name: str) -> Parts:
    """Read the data set `name` of a folder, with the public split and the geom-gcn splits beside it.

    Raises:
        DataError: a file is missing, holds a foreign global or is damaged, or the files do not fit together.
    """
    paths = {part: folder / f"ind.{name}.{part}" for part in PARTS}
    missing = [path.name for path in paths.values() if not path.is_file()]
    if missing:
        raise DataError(f"{folder}: a Planetoid data set has 8 files, {', '.join(missing)} is missing; copy it there")
    index = _read_index(paths["test.index"])
    allx, tx = (_features(paths[part]) for part in ("allx", "tx"))
    ally, ty = (_one_hot(paths[part]) for part in ("ally", "ty"))
    num_train = _one_hot(paths["y"]).shape[0]
    num_first = allx.shape[0]
    for one, rows, other, expected in (
        ("ally", ally.shape[0], "allx", num_first),
        ("ty", ty.shape[0], "tx", tx.shape[0]),
        ("test.index", index.size, "tx", tx.shape[0]),
        ("x", _features(paths["x"]).shape[0], "y", num_train),
    ):
        if rows != expected:
            raise DataError(f"{paths[one]}: expected {expected} rows, as in {other}, got {rows}")
    if allx.shape[1] != tx.shape[1] or ally.shape[1] != ty.shape[1]:
        raise DataError(
            f"{paths['tx']}: allx and tx need equally many columns, and ally and ty; got "
            f"{allx.shape[1]} and {tx.shape[1]}, {ally.shape[1]} and {ty.shape[1]}"
        )
    if num_train > num_first:
        raise DataError(f"{paths['y']}: training rows are the first rows of allx, got {num_train} of {num_first}")
    neighbours = _neighbours(paths["graph"])
    N = _num_nodes(paths, num_first, index, neighbours)
    sources, targets = _arcs(paths["graph"], neighbours, N)
    order = np.concatenate([np.arange(num_first, dtype=np.int64), index])
    labels = np.zeros((N, ally.shape[1]), dtype=np.int8)
    labels[order] = np.concatenate([ally, ty])
    skipped = N - order.size
    validation = np.arange(num_train, min(num_train + NUM_VALIDATION, num_first), dtype=np.int64)

    def public() -> tuple[Nodes, Nodes, Nodes]:
        return np.arange(num_train, dtype=np.int64), validation, index

    public_split: Mapping[str, GivenSplit] = {"public": public}
    return Parts(
        name=name,
        source=str(folder / f"ind.{name}.*"),
        num_nodes=N,
        arcs=Arcs(sources, targets),
        features=_place(sparse.vstack([allx, tx], format="csr"), order, N),
        labels=labels,
        splits={**public_split, **find_geom_splits(folder, name, N)},
        default_split="public",
        notes=(f"{skipped} node(s) are missing from test.index: no features, no label",) if skipped else (),
    )


def _read_index(path: Path) -> Integers:
    """The node of every row of tx, checked to be distinct non-negative numbers."""
    try:
        lines = path.read_text(encoding="ascii").split()
    except UnicodeDecodeError:
        raise DataError(f"{path}: expected one node number a line, got bytes that are no text") from None
    for number, line in enumerate(lines, start=1):
        if not line.isdecimal() or len(line) > 18:
            raise DataError(f"{path}: expected one node number a line, got {line[:40]!r} at line {number}")
    index = np.array([int(line) for line in lines], dtype=np.int64)
    unique, counts = np.unique(index, return_counts=True)
    if unique.size < index.size:
        raise DataError(f"{path}: every test node is listed once, but node {unique[counts > 1][0]} is listed again")
    return index


def _features(path: Path) -> sparse.csr_array:
    value = read_pickle(path)
    if isinstance(value, np.ndarray) and value.ndim == 2:
        value = sparse.csr_array(value)
    if not sparse.issparse(value):
        raise DataError(f"{path}: expected a pickled sparse matrix, got {type(value).__name__}")
    return value


def _one_hot(path: Path) -> NDArray[Any]:
    value = read_pickle(path)
    if not isinstance(value, np.ndarray) or value.ndim != 2:
        raise DataError(f"{path}: expected a pickled matrix of one-hot labels, got {type(value).__name__}")
    if not ((value == 0) | (value == 1)).all():
        raise DataError(f"{path}: one-hot labels hold zeros and ones only; other values were found")
    return value


def _neighbours(path: Path) -> dict[int, list[int]]:
    value = read_pickle(path)
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a pickled dict from node to neighbours, got {type(value).__name__}")
    # Lists may be shared inside a pickle; an honest file spends at least a byte on every neighbour.
    size, listed = path.stat().st_size, 0
    for node, others in value.items():
        if type(node) is not int or not isinstance(others, list):
            raise DataError(
                f"{path}: expected a list of neighbours for each node number, got {type(others).__name__} "
                f"for {str(node)[:40]!r}"
            )
        listed += len(others)
        if listed > size:
            raise DataError(f"{path}: {size} bytes cannot list that many neighbours; the file is not a graph")
    return value


def _num_nodes(paths: Mapping[str, Path], num_first: int, index: Integers, neighbours: Mapping[int, list[int]]) -> int:
    """N: past the last row of allx, the last test node and the last node of the graph.

    Skipped ids leave N above the number of rows, but every node is still a key of the graph, which bounds N.
    """
    most = max(num_first + index.size, len(neighbours))
    for part, last in (("test.index", int(index.max(initial=-1))), ("graph", max(neighbours, default=-1))):
        if last >= most:
            raise DataError(f"{paths[part]}: node {last} is outside the {most} nodes of the other files")
    first_test = int(index.min(initial=num_first))
    if first_test < num_first:
        raise DataError(f"{paths['test.index']}: node {first_test} is a row of allx too, which has {num_first} rows")
    return max(num_first, int(index.max(initial=-1)) + 1, max(neighbours, default=-1) + 1)


def _arcs(path: Path, neighbours: Mapping[int, list[int]], num_nodes: int) -> tuple[Integers, Integers]:
    for node, others in neighbours.items():
        for other in (node, *others):
            if type(other) is not int or not 0 <= other < num_nodes:
                raise DataError(
                    f"{path}: node {str(node)[:40]} has neighbour {str(other)[:40]!r}, "
                    f"but nodes run from 0 to {num_nodes - 1}"
                )
    counts = [len(others) for others in neighbours.values()]
    sources = np.repeat(np.fromiter(neighbours, dtype=np.int64, count=len(neighbours)), counts)
    targets = np.fromiter((other for others in neighbours.values() for other in others), np.int64, count=sum(counts))
    return sources, targets


def _place(rows: sparse.csr_array, order: Integers, num_nodes: int) -> sparse.csr_array:
    """Move row i to row order[i] of N rows; rows that nothing moves to are empty."""
    entries = rows.tocoo()
    placed = sparse.coo_array((entries.data, (order[entries.row], entries.col)), shape=(num_nodes, rows.shape[1]))
    return placed.tocsr()
