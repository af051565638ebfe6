"""Local structure: degrees, triangles, clustering and their means over neighbours."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from scipy import sparse

from search_space.local_structure import STRUCTURE_WIDTH, local_structure

EDGES = [(0, 1), (0, 2), (1, 2), (0, 3), (3, 4)]
"""A triangle 0-1-2, the path 0-3-4, and node 5 alone."""


def adjacency(edges: list[tuple[int, int]], N: int = 6, weight: float = 1.0) -> sparse.csr_array:
    A = np.zeros((N, N), np.float32)
    for i, j in edges:
        A[i, j] = weight
    return sparse.csr_array(A)


def both_ways(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return edges + [(j, i) for i, j in edges]


def test_a_graph_by_hand() -> None:
    d = [3, 2, 2, 2, 1, 0]
    t = [1, 1, 1, 0, 0, 0]
    clustering = [1 / 3, 1.0, 1.0, 0.0, 0.0, 0.0]
    own = np.column_stack((np.log1p(d), np.log1p(t), clustering))
    neighbours = [[1, 2, 3], [0, 2], [0, 1], [0, 4], [3]]
    means = [own[near].mean(axis=0) for near in neighbours] + [np.zeros(3)]
    found = local_structure(adjacency(both_ways(EDGES)))
    assert found.shape == (6, STRUCTURE_WIDTH)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.column_stack((own, means)), rtol=1e-6)
    assert found[0, 0] == pytest.approx(log(4))


def test_arcs_are_read_as_edges_and_weights_are_ignored() -> None:
    expected = local_structure(adjacency(both_ways(EDGES)))
    np.testing.assert_array_equal(local_structure(adjacency(EDGES, weight=0.25)), expected)
    np.testing.assert_array_equal(local_structure(adjacency(both_ways(EDGES), weight=7.0)), expected)


def test_an_edgeless_graph_has_zeros() -> None:
    assert not local_structure(adjacency([])).any()
