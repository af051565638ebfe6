"""Partitions own every node once, weigh edges, and report what a count by hand finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from engines.evaluation.partition import PARTITIONS, Partition, expected_halo, make_partition, partition_report
from engines.graph import undirected
from search_space.errors import ConfigError

PATH = undirected(np.array([0, 1, 2, 3]), np.array([1, 2, 3, 4]), 5)[0]


def random_graph(N: int, E: int, seed: int = 0) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return undirected(rng.integers(0, N, E), rng.integers(0, N, E), N)[0]


@pytest.mark.parametrize("method", PARTITIONS)
@given(st.integers(1, 40), st.integers(0, 80), st.integers(1, 9))
def test_every_node_has_one_owner_among_the_parts(method: str, N: int, E: int, P: int) -> None:
    partition = make_partition(method, random_graph(N, E), P)
    nodes = np.concatenate([partition.nodes(part) for part in range(P)])
    assert sorted(nodes.tolist()) == list(range(N))


def test_contiguous_parts_are_ranges_of_equal_edges_not_nodes() -> None:
    # node 0 has 9 neighbours and weighs 10, each neighbour weighs 2: 28 in all, 14 a part
    star = undirected(np.zeros(9, np.int64), np.arange(1, 10), 10)[0]
    partition = make_partition("contiguous", star, 2)
    assert partition.owner.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("method", ["contiguous", "metis"])
def test_parts_of_a_large_graph_weigh_about_the_same(method: str) -> None:
    graph = random_graph(1000, 5000)
    assert partition_report(make_partition(method, graph, 7), graph).imbalance < 1.05


def test_metis_cuts_the_bridge_between_two_cliques() -> None:
    clique = np.ones((6, 6)) - np.eye(6)
    dense = np.block([[clique, np.zeros((6, 6))], [np.zeros((6, 6)), clique]])
    dense[5, 6] = dense[6, 5] = 1
    graph = sparse.csr_array(dense.astype(np.float32))
    report = partition_report(make_partition("metis", graph, 2), graph)
    assert report.cut_edges == 2
    assert report.halo == (1, 1)


def test_more_parts_than_nodes_leave_parts_empty() -> None:
    for method in PARTITIONS:
        report = partition_report(make_partition(method, PATH, 9), PATH)
        assert sum(report.nodes) == 5
        assert len(report.idle) >= 4
        assert all(report.nodes[part] == 0 for part in report.idle)


def test_a_report_worked_by_hand() -> None:
    # path 0-1-2-3-4 in parts {0, 2} and {1, 3, 4}: every edge but 3-4 is cut, from both of its ends
    report = partition_report(Partition("given", 2, np.array([0, 1, 0, 1, 1], np.int32)), PATH)
    assert report.nodes == (2, 3)
    assert report.edges == (3, 5)
    assert report.cut_edges == 6
    assert report.halo == (2, 2)
    assert report.imbalance == pytest.approx(8 / 6.5)


def test_the_expected_halo_is_that_of_a_random_graph() -> None:
    graph = random_graph(4000, 20_000)
    counted = sum(partition_report(make_partition("hash", graph, 5), graph).halo)
    assert expected_halo(4000, graph.nnz, 5) == pytest.approx(counted, rel=0.02)


def test_one_part_has_no_halo() -> None:
    assert expected_halo(100, 1000, 1) == 0.0


def test_a_partition_does_not_depend_on_anything_but_the_graph() -> None:
    for method in PARTITIONS:
        one, other = (make_partition(method, random_graph(200, 600), 4).owner for _ in range(2))
        np.testing.assert_array_equal(one, other)


def test_an_unknown_method_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="unknown partition 'random'; choose from: contiguous, hash, metis"):
        make_partition("random", PATH, 2)


def test_no_parts_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1 part, got 0"):
        make_partition("hash", PATH, 0)
