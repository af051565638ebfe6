"""Arcs in any order become the CSR adjacency of a Graph.

Arcs are sorted as single 64-bit keys row·N + column: sorting keys is several times faster, and takes less memory, than
sorting pairs, which matters at tens of millions of edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pasca.datasets.parts import Arcs, Integers
from search_space.errors import DataError

# row·N + column must fit in 63 bits.
_MAX_NODES = 3_037_000_499
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Built:
    """An adjacency and what happened to the arcs on the way.

    Attributes:
        adjacency: (N, N) CSR float32 without self-loops; row i holds what node i gathers from.
        num_self_loops: distinct self-loops dropped.
        num_repeated: arcs that repeated an earlier arc in the same direction.
        num_one_way: distinct arcs, self-loops aside, whose reverse is not listed.
        num_averaged: undirected edges whose two directions had different weights.
    """

    adjacency: sparse.csr_array
    num_self_loops: int
    num_repeated: int
    num_one_way: int
    num_averaged: int


def build(arcs: Arcs, num_nodes: int, *, directed: bool, weights: NDArray[np.float64] | None = None) -> Built:
    """Build the adjacency of a graph from arcs in any order.

    Args:
        arcs: E' arcs; their own weights are not looked at.
        num_nodes: N.
        directed: row i then gathers from the sources of arcs into i only.
        weights: (E',) positive and finite, or None for ones. Repeated arcs add up; two opposite arcs of an undirected
            graph are averaged, an arc without its reverse counts in full.
    Raises:
        DataError: more nodes than 64-bit keys can tell apart.
    """
    if num_nodes > _MAX_NODES:
        raise DataError(f"a graph has at most {_MAX_NODES} nodes here, got {num_nodes}")
    loops = arcs.sources == arcs.targets
    num_self_loops = int(np.unique(arcs.sources[loops]).size)
    # Row = target, column = source: a row gathers from the sources of arcs into it.
    keys = arcs.targets * np.int64(num_nodes) + arcs.sources
    values: NDArray[np.float64] | None
    if loops.any():
        keys, values = keys[~loops], None if weights is None else weights[~loops]
    else:
        values = weights
    num_arcs = keys.size
    keys, values = _merge(keys, values)
    num_repeated = num_arcs - keys.size + int(loops.sum()) - num_self_loops
    reverse = _reversed(keys, num_nodes)
    num_averaged = 0
    if values is None:
        both, _ = _merge(np.concatenate([keys, reverse]), None)
        num_one_way = int(both.size - keys.size)
        kept = keys if directed else both
    else:
        both, means, num_averaged, num_one_way = _average(keys, reverse, values)
        kept, values = (keys, values) if directed else (both, means)
        num_averaged = 0 if directed else num_averaged
    return Built(_to_csr(kept, values, num_nodes), num_self_loops, num_repeated, num_one_way, num_averaged)


def _merge(keys: Integers, values: NDArray[np.float64] | None) -> tuple[Integers, NDArray[np.float64] | None]:
    """Sort keys and merge equal ones, adding up their values; `keys` may be sorted in place."""
    if values is None:
        keys.sort()
    else:
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
    if not keys.size:
        return keys, values
    first = np.empty(keys.size, dtype=bool)
    first[0] = True
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    if values is not None:
        values = np.add.reduceat(values, np.flatnonzero(first))
    return (keys if first.all() else keys[first]), values


def _reversed(keys: Integers, num_nodes: int) -> Integers:
    rows = keys // num_nodes
    return (keys - rows * num_nodes) * num_nodes + rows


def _average(
    keys: Integers, reverse: Integers, values: NDArray[np.float64]
) -> tuple[Integers, NDArray[np.float64], int, int]:
    """Merge both directions, a pair listed both ways gets the mean; return keys, means, unequal pairs, one-way arcs."""
    everything = np.concatenate([keys, reverse])
    order = np.argsort(everything, kind="stable")
    everything = everything[order]
    doubled = np.concatenate([values, values])[order]
    if not everything.size:
        return everything, doubled, 0, 0
    starts = np.flatnonzero(np.concatenate([[True], everything[1:] != everything[:-1]]))
    counts = np.diff(np.append(starts, everything.size))
    low, high = np.minimum.reduceat(doubled, starts), np.maximum.reduceat(doubled, starts)
    means = np.where(low == high, low, low + (high - low) / 2)
    return everything[starts], means, int(np.count_nonzero(low != high)) // 2, int(np.count_nonzero(counts == 1)) // 2


def _to_csr(keys: Integers, values: NDArray[np.float64] | None, num_nodes: int) -> sparse.csr_array:
    rows = keys // num_nodes
    wide = max(keys.size, num_nodes) > _INT32_MAX
    index_type = np.int64 if wide else np.int32
    columns = (keys - rows * num_nodes).astype(index_type)
    indptr = np.zeros(num_nodes + 1, dtype=index_type)
    np.cumsum(np.bincount(rows, minlength=num_nodes), out=indptr[1:])
    data = np.ones(keys.size, dtype=np.float32) if values is None else values.astype(np.float32)
    adjacency = sparse.csr_array((data, columns, indptr), shape=(num_nodes, num_nodes))
    # Keys were sorted and merged, so SciPy need not look again.
    adjacency.has_sorted_indices = adjacency.has_canonical_format = True
    return adjacency
