"""Partitions: which rank owns which node, balanced by edges, and what a partition costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from search_space.errors import ConfigError

PARTITIONS = ("contiguous", "hash", "metis")


@dataclass(frozen=True, eq=False)
class Partition:
    """An owner for every node.

    Attributes:
        method: how it was made.
        num_parts: P; a part may be empty.
        owner: (N,) int32 in 0..P-1.
    """

    method: str
    num_parts: int
    owner: NDArray[np.int32]

    def nodes(self, part: int) -> NDArray[np.int64]:
        """The nodes of one part, ascending."""
        return np.flatnonzero(self.owner == part)


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """What a partition costs when each row gathers from its columns.

    Attributes:
        nodes, edges: of each part; edges are the stored entries of its rows, self-loops left out.
        halo: of each part, how many rows of other parts it reads.
        cut_edges: entries whose column belongs to another part than their row.
        imbalance: entries of the largest part over the mean, self-loops counted; 1 is perfect.
    """

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    halo: tuple[int, ...]
    cut_edges: int
    imbalance: float

    @property
    def idle(self) -> tuple[int, ...]:
        """Parts without a node."""
        return tuple(part for part, count in enumerate(self.nodes) if count == 0)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> PartitionReport:
        """Read what `as_mapping` wrote."""
        return cls(
            tuple(values["nodes"]),
            tuple(values["edges"]),
            tuple(values["halo_rows"]),
            int(values["cut_edges"]),
            float(values["imbalance"]),
        )

    def as_mapping(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "nodes": list(self.nodes),
            "edges": list(self.edges),
            "halo_rows": list(self.halo),
            "cut_edges": self.cut_edges,
            "imbalance": round(self.imbalance, 4),
            "idle": list(self.idle),
        }


def make_partition(method: str, adjacency: sparse.csr_array, num_parts: int) -> Partition:
    """Divide the nodes among P parts.

    - `contiguous`: ranges of node numbers with about equal entries; keeps the locality that node numbers have.
    - `hash`: by a hash of the node number; even and without structure.
    - `metis`: few cut edges, through METIS.

    A node weighs its entries and its self-loop, since that is what a propagation step spends on it.

    Args:
        adjacency: (N, N) CSR without self-loops.
    Raises:
        ConfigError: the method is unknown, or P is below 1.
    """
    if num_parts < 1:
        raise ConfigError(f"a partition needs at least 1 part, got {num_parts}")
    if method == "contiguous":
        owner = _contiguous(adjacency, num_parts)
    elif method == "hash":
        owner = (_mixed(np.arange(adjacency.shape[0], dtype=np.uint64)) % np.uint64(num_parts)).astype(np.int32)
    elif method == "metis":
        owner = _metis(adjacency, num_parts)
    else:
        raise ConfigError(f"unknown partition {method!r}; choose from: {', '.join(PARTITIONS)}")
    return Partition(method, num_parts, owner)


def partition_report(partition: Partition, adjacency: sparse.csr_array) -> PartitionReport:
    """Count nodes, entries, halo rows and cut edges of each part."""
    owner, P = partition.owner, partition.num_parts
    N = owner.size
    degrees = np.diff(adjacency.indptr)
    nodes = np.bincount(owner, minlength=P)
    edges = np.bincount(owner, weights=degrees, minlength=P).astype(np.int64)
    cut, halo = 0, []
    for part in range(P):
        columns = _columns_of(adjacency, np.flatnonzero(owner == part))
        foreign = columns[owner[columns] != part]
        cut += foreign.size
        seen = np.zeros(N, dtype=bool)
        seen[foreign] = True
        halo.append(int(np.count_nonzero(seen)))
    weights = edges + nodes
    imbalance = float(weights.max() / (weights.sum() / P)) if weights.sum() else 1.0
    return PartitionReport(tuple(nodes.tolist()), tuple(edges.tolist()), tuple(halo), int(cut), imbalance)


def expected_halo(num_nodes: int, num_entries: int, num_parts: int) -> float:
    """Halo rows of one part, all parts together, for a hash partition of a graph whose edges have random ends.

    A part of N/P rows has num_entries/P entries. Each of the N(1 - 1/P) foreign nodes is missed by all of them with
    probability (1 - 1/N)^(num_entries/P). Real graphs have hubs and clusters, which only lower the number.
    """
    if num_parts == 1:
        return 0.0
    missed = np.exp(num_entries / num_parts * np.log1p(-1.0 / max(num_nodes, 2)))
    return float(num_parts * num_nodes * (1.0 - 1.0 / num_parts) * (1.0 - missed))


def _contiguous(adjacency: sparse.csr_array, num_parts: int) -> NDArray[np.int32]:
    # Twice the cumulated weight up to the middle of each node, in whole numbers: node i belongs to the part in whose
    # share of the total its middle lies.
    weights = np.diff(adjacency.indptr).astype(np.int64) + 1
    middles = 2 * np.cumsum(weights) - weights
    owner: NDArray[np.int32] = (middles * num_parts // (2 * int(weights.sum()))).astype(np.int32)
    return owner


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of 64-bit numbers. Source: Steele, Lea, Flood 2014 (the finaliser of SplitMix64)."""
    x = numbers + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _metis(adjacency: sparse.csr_array, num_parts: int) -> NDArray[np.int32]:
    import pymetis

    N = adjacency.shape[0]
    parts = min(num_parts, N)  # METIS makes no empty part, and fails where it would have to
    if parts == 1:
        return np.zeros(N, dtype=np.int32)
    pattern = sparse.csr_array((np.ones(adjacency.nnz, np.int8), adjacency.indices, adjacency.indptr), shape=(N, N))
    both = sparse.csr_array(pattern + pattern.T)
    weights = np.diff(both.indptr).astype(np.int64) + 1
    neighbours = pymetis.CSRAdjacency(both.indptr, both.indices)
    _, owner = pymetis.part_graph(parts, adjacency=neighbours, vweights=weights)
    return np.asarray(owner, dtype=np.int32)


def _columns_of(adjacency: sparse.csr_array, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The columns of all entries of some rows."""
    columns: NDArray[np.int64] = adjacency.indices[entries_of(adjacency.indptr, rows)].astype(np.int64)
    return columns


def entries_of(indptr: NDArray[np.integer[Any]], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of the entries of some rows, row by row in the order given."""
    first = indptr[rows].astype(np.int64)
    lengths = indptr[rows + 1].astype(np.int64) - first
    return np.repeat(first - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
