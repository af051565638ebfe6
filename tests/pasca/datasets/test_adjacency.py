"""Arcs become an adjacency: compared with sums over a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pasca.datasets.adjacency import build
from pasca.datasets.parts import Arcs
from search_space.errors import DataError

N = 5
ARCS = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1), st.integers(1, 4)), max_size=20)


def arcs_of(listed: list[tuple[int, int, int]]) -> tuple[Arcs, np.ndarray]:
    """The arcs, and dense (N, N) sums of weights with entry (target, source)."""
    dense = np.zeros((N, N))
    for source, target, weight in listed:
        dense[target, source] += weight
    columns = np.array(listed, dtype=np.int64).reshape(-1, 3).T
    return Arcs(columns[0], columns[1]), dense


@settings(max_examples=60)
@given(listed=ARCS, directed=st.booleans())
def test_unweighted_arcs_give_ones_where_an_arc_is(listed: list[tuple[int, int, int]], directed: bool) -> None:
    arcs, dense = arcs_of(listed)
    present = (dense > 0) if directed else (dense + dense.T > 0)
    np.fill_diagonal(present, False)
    built = build(arcs, N, directed=directed)
    assert np.array_equal(built.adjacency.toarray(), present.astype(np.float32))
    assert built.num_self_loops == np.count_nonzero(dense.diagonal())
    assert built.num_repeated == len(listed) - np.count_nonzero(dense)


@settings(max_examples=60)
@given(listed=ARCS)
def test_weights_add_up_and_opposite_arcs_are_averaged(listed: list[tuple[int, int, int]]) -> None:
    arcs, dense = arcs_of(listed)
    weights = np.array([weight for _, _, weight in listed], dtype=np.float64)
    np.fill_diagonal(dense, 0)
    both = (dense > 0) & (dense.T > 0)
    expected = np.where(both, (dense + dense.T) / 2, dense + dense.T)
    built = build(arcs, N, directed=False, weights=weights)
    assert np.array_equal(built.adjacency.toarray(), expected.astype(np.float32))
    assert built.num_averaged == np.count_nonzero(both & (dense != dense.T)) // 2
    assert built.num_one_way == np.count_nonzero((dense > 0) & (dense.T == 0))


@settings(max_examples=30)
@given(listed=ARCS)
def test_directed_weights_are_the_sums_of_each_direction(listed: list[tuple[int, int, int]]) -> None:
    arcs, dense = arcs_of(listed)
    np.fill_diagonal(dense, 0)
    weights = np.array([weight for _, _, weight in listed], dtype=np.float64)
    assert np.array_equal(build(arcs, N, directed=True, weights=weights).adjacency.toarray(), dense.astype(np.float32))


def test_indices_are_sorted_distinct_and_32_bit() -> None:
    arcs = Arcs(np.array([3, 0, 3, 1]), np.array([0, 3, 1, 1]))
    adjacency = build(arcs, 4, directed=False).adjacency
    assert adjacency.indices.dtype == adjacency.indptr.dtype == np.int32
    unmarked = type(adjacency)((adjacency.data, adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    assert unmarked.has_canonical_format


def test_more_nodes_than_keys_can_tell_apart_are_refused() -> None:
    with pytest.raises(DataError, match="at most 3037000499 nodes"):
        build(Arcs(np.array([0]), np.array([1])), 4 * 10**9, directed=False)
