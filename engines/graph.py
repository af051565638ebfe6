"""Graph: adjacency, features, labels and split of one node-classification problem, checked on construction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from dataclasses import fields as dataclass_fields
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from search_space.errors import GraphError, ShapeError

Nodes = NDArray[np.int64]
Features: TypeAlias = NDArray[np.float32] | sparse.csr_array

UNLABELLED = -1

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Split:
    """Which labelled nodes train, validate and test.

    Attributes:
        train, validation, test: ascending distinct node numbers, int64; disjoint.
        name: where the split comes from, for the record (`public`, `0`, `20/30 per class, seed 0`).
    """

    train: Nodes
    validation: Nodes
    test: Nodes
    name: str = "given"

    def __post_init__(self) -> None:
        for part in ("train", "validation", "test"):
            nodes = np.asarray(getattr(self, part))
            if nodes.ndim != 1 or (nodes.size and nodes.dtype.kind not in "iu"):
                raise ShapeError(
                    f"the {part} part of a split lists node numbers, got {nodes.dtype} of shape {nodes.shape}"
                )
            unique = np.unique(nodes.astype(np.int64))
            if unique.size < nodes.size:
                raise GraphError(f"the {part} part of split {self.name!r} lists a node twice")
            object.__setattr__(self, part, unique)
        for one, other in (("train", "test"), ("train", "validation"), ("validation", "test")):
            both = np.intersect1d(getattr(self, one), getattr(self, other))
            if both.size:
                raise GraphError(
                    f"split {self.name!r}: {one} and {other} share {both.size} node(s), the first is node {both[0]}; "
                    "every node belongs to one part at most"
                )

    @classmethod
    def trusted(cls, train: Nodes, validation: Nodes, test: Nodes, name: str) -> Split:
        """A split from parts that were checked before they were stored: ascending, distinct, disjoint."""
        return _without_checks(cls, {"train": train, "validation": validation, "test": test, "name": name})

    @property
    def num_nodes(self) -> int:
        """Nodes in the three parts together."""
        return self.train.size + self.validation.size + self.test.size


@dataclass(frozen=True, eq=False)
class Graph:
    """One node-classification problem. Row i of every part belongs to node i.

    Attributes:
        name: for people; never used as a path.
        adjacency: (N, N) CSR, float32, no self-loops, no repeated entries, column indices sorted within rows.
            Entry (i, j) means that node i gathers from node j. Symmetric unless `directed`. All ones unless `weighted`.
        features: (N, F) float32, dense and C-contiguous or CSR; finite; not normalised.
        labels: (N,) int64 in 0..C-1, or -1 for a node without a label.
        class_names: the C original labels as text.
        split: disjoint labelled nodes; may be empty (a graph to predict on).
        node_ids: (N,) original ids as text, or None when nodes are known by number only.
        feature_names: the F column names, or None when columns are known by position only.
        directed, weighted: how `adjacency` is to be read.
        num_self_loops: distinct self-loops that the source had and that were dropped.
        notes: lines for the data summary: what was symmetrised, merged, dropped, made up.
        made_features: how features were made from the structure (`degree`, `svd`, ...), or None when they are given.
    Raises:
        GraphError, ShapeError: two parts disagree; the message says which and where.
    """

    name: str
    adjacency: sparse.csr_array
    features: Features
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    split: Split
    node_ids: NDArray[np.str_] | None = None
    feature_names: tuple[str, ...] | None = None
    directed: bool = False
    weighted: bool = False
    num_self_loops: int = 0
    notes: tuple[str, ...] = field(default=())
    made_features: str | None = None

    def __post_init__(self) -> None:
        self._check_shapes()
        self._check_values()
        self._check_split()

    @classmethod
    def trusted(cls, *, checksums: tuple[str, str] | None = None, **fields: Any) -> Graph:
        """A graph from parts that were a checked Graph before they were stored, as memory-mapped files are.

        Shapes and types are checked, values are not: no array is read, so opening takes no longer for more edges.

        Args:
            checksums: `structure_checksum` and `checksum`, where they were stored too.
            fields: every field without a default, and any other.
        Raises:
            GraphError, ShapeError: two parts disagree in shape or type.
        """
        defaults = {one.name: one.default for one in dataclass_fields(cls) if one.default is not MISSING}
        graph = _without_checks(cls, {**defaults, **fields})
        graph._check_shapes()
        if checksums is not None:
            graph.__dict__["structure_checksum"], graph.__dict__["checksum"] = checksums
        return graph

    def _check_shapes(self) -> None:
        """Refuse parts whose shapes or types do not belong together; reads no value."""
        N = self.adjacency.shape[0]
        if self.adjacency.shape != (N, N):
            raise ShapeError(f"the adjacency must be square, got shape {self.adjacency.shape}")
        if N == 0:
            raise GraphError("the graph has no nodes")
        for what, rows in (("features", self.features.shape[0]), ("labels", self.labels.shape[0])):
            if rows != N:
                raise ShapeError(f"the adjacency has {N} nodes but {what} has {rows} rows")
        if self.features.ndim != 2 or self.features.shape[1] == 0:
            raise ShapeError(f"features must have shape (N, F) with F of at least 1, got {self.features.shape}")
        if self.features.dtype != np.float32 or self.adjacency.dtype != np.float32:
            raise GraphError(
                f"adjacency and features are float32 in a Graph, got {self.adjacency.dtype} and {self.features.dtype}"
            )
        if self.labels.ndim != 1 or self.labels.dtype != np.int64:
            raise ShapeError(
                f"labels must be int64 of shape (N,), got {self.labels.dtype} of shape {self.labels.shape}"
            )
        if self.node_ids is not None and len(self.node_ids) != N:
            raise ShapeError(f"the adjacency has {N} nodes but there are {len(self.node_ids)} node ids")
        if self.feature_names is not None and len(self.feature_names) != self.num_features:
            raise ShapeError(f"features have {self.num_features} columns but {len(self.feature_names)} names")

    def _check_values(self) -> None:
        """Refuse values that a Graph does not hold; reads every array."""
        values = self.features.data if sparse.issparse(self.features) else self.features
        if not np.isfinite(values).all():
            raise GraphError(_where_not_finite(self.features))
        C = len(self.class_names)
        if self.labels.size and (self.labels.min() < UNLABELLED or self.labels.max() >= C):
            bad = int(np.flatnonzero((self.labels < UNLABELLED) | (self.labels >= C))[0])
            raise GraphError(f"node {bad} has label {self.labels[bad]}, but labels run from 0 to {C - 1} (-1 for none)")
        if not self.adjacency.has_canonical_format or self.adjacency.diagonal().any():
            raise GraphError("the adjacency of a Graph has sorted distinct entries and no self-loops")

    def _check_split(self) -> None:
        """Refuse a split of nodes that do not exist or have no label."""
        N = self.num_nodes
        for part in ("train", "validation", "test"):
            nodes = getattr(self.split, part)
            if nodes.size and (nodes[0] < 0 or nodes[-1] >= N):
                bad = int(nodes[0] if nodes[0] < 0 else nodes[-1])
                raise GraphError(f"the {part} part of the split names node {bad}, but nodes run from 0 to {N - 1}")
            unlabelled = nodes[self.labels[nodes] == UNLABELLED]
            if unlabelled.size:
                raise GraphError(
                    f"the {part} part of the split holds {unlabelled.size} node(s) without a label, "
                    f"the first is node {unlabelled[0]}"
                )

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.adjacency.shape[0])

    @property
    def num_features(self) -> int:
        """F."""
        return int(self.features.shape[1])

    @property
    def num_classes(self) -> int:
        """C."""
        return len(self.class_names)

    @property
    def num_edges(self) -> int:
        """Distinct edges without self-loops: pairs {i, j}, or arcs when directed."""
        return int(self.adjacency.nnz) if self.directed else int(self.adjacency.nnz) // 2

    @property
    def num_isolated(self) -> int:
        """Nodes without any edge, incoming or outgoing."""
        touched = np.zeros(self.num_nodes, dtype=bool)
        touched[self.adjacency.indices] = True
        touched |= np.diff(self.adjacency.indptr) > 0
        return int(self.num_nodes - touched.sum())

    @property
    def num_labelled(self) -> int:
        """Nodes with a label."""
        return int((self.labels != UNLABELLED).sum())

    def original_ids(self) -> NDArray[np.str_]:
        """Node ids as the source spells them, (N,) text; node numbers where it has none."""
        return np.arange(self.num_nodes).astype(np.str_) if self.node_ids is None else self.node_ids

    def with_split(self, split: Split) -> Graph:
        """The same graph with another split; only the split is checked.

        Raises:
            GraphError: the split names a node that does not exist or has no label.
        """
        own = {one.name: getattr(self, one.name) for one in dataclass_fields(self)}
        graph = _without_checks(Graph, {**own, "split": split})
        graph._check_split()
        if "structure_checksum" in self.__dict__:
            graph.__dict__["structure_checksum"] = self.structure_checksum
        return graph

    @cached_property
    def structure_checksum(self) -> str:
        """SHA-256 of adjacency and features, the key of everything that does not depend on labels."""
        digest = hashlib.sha256()
        adjacency, features = self.adjacency, self.features
        _update(digest, adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64), adjacency.data)
        if isinstance(features, np.ndarray):
            _update(digest, features)
        else:
            _update(digest, features.indptr.astype(np.int64), features.indices.astype(np.int64), features.data)
        digest.update(repr((self.num_nodes, self.num_features, self.directed)).encode())
        return digest.hexdigest()

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of everything that an evaluation depends on: structure, labels and split; not of names and ids."""
        digest = hashlib.sha256(self.structure_checksum.encode())
        _update(digest, self.labels, self.split.train, self.split.validation, self.split.test)
        digest.update(repr(self.num_classes).encode())
        return digest.hexdigest()


def _without_checks(kind: type[T], fields: Mapping[str, Any]) -> T:
    """An instance of a frozen dataclass whose __post_init__ has not run."""
    instance = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(instance, name, value)
    return instance


def _update(digest: hashlib._Hash, *arrays: NDArray[np.generic]) -> None:
    for array in arrays:
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)


def _where_not_finite(features: Features) -> str:
    if isinstance(features, np.ndarray):
        rows = np.flatnonzero(~np.isfinite(features).all(axis=1))
        first, count = int(rows[0]), int((~np.isfinite(features)).sum())
    else:
        bad = ~np.isfinite(features.data)
        first = int(np.searchsorted(features.indptr, np.flatnonzero(bad)[0], side="right")) - 1
        count = int(bad.sum())
    return f"features hold {count} value(s) that are NaN or infinite, the first at node {first}; clean or fill them"


def undirected(
    sources: NDArray[np.integer], targets: NDArray[np.integer], num_nodes: int
) -> tuple[sparse.csr_array, int, int]:
    """Build the adjacency of an undirected unweighted graph from arcs in any order.

    Args:
        sources, targets: (E',) node numbers in 0..N-1; arcs may repeat, be reversed, or be self-loops.
    Returns:
        The (N, N) symmetric CSR of ones without self-loops, the number of distinct self-loops dropped, and the number
        of arcs that repeated an earlier arc in the same direction.
    """
    sources, targets = np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64)
    ones = np.ones(sources.size, dtype=np.float32)
    arcs = sparse.coo_array((ones, (sources, targets)), shape=(num_nodes, num_nodes)).tocsr()
    arcs.sum_duplicates()
    num_repeated = sources.size - int(arcs.nnz)
    num_self_loops = int(np.count_nonzero(arcs.diagonal()))
    both = (arcs + arcs.T).tocoo()
    keep = both.row != both.col
    row, col = both.row[keep], both.col[keep]
    adjacency = sparse.csr_array((np.ones(row.size, dtype=np.float32), (row, col)), shape=(num_nodes, num_nodes))
    adjacency.sum_duplicates()
    adjacency.sort_indices()
    return adjacency, num_self_loops, num_repeated


def class_counts(graph: Graph, nodes: Sequence[int] | Nodes) -> NDArray[np.int64]:
    """How many of the nodes have each class, shape (C,)."""
    labels = graph.labels[np.asarray(nodes, dtype=np.int64)]
    return np.bincount(labels[labels != UNLABELLED], minlength=graph.num_classes)
