"""The augmented normalised adjacency against dense arithmetic on five nodes, node 4 isolated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from search_space.graph_operators import AugmentedAdjacency
from search_space.graph_operators.base import normalised_with_self_loops

# edges 0-1, 1-2, 2-0, 2-3; node 4 has none
A = np.array([[0, 1, 1, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]], dtype=np.float32)


def test_entries_are_one_over_root_of_degree_products() -> None:
    found = AugmentedAdjacency().matrix(sparse.csr_array(A)).toarray()
    # degrees with self-loop: 3, 3, 4, 2, 1
    by_hand = np.array(
        [
            [1 / 3, 1 / 3, 1 / np.sqrt(12), 0, 0],
            [1 / 3, 1 / 3, 1 / np.sqrt(12), 0, 0],
            [1 / np.sqrt(12), 1 / np.sqrt(12), 1 / 4, 1 / np.sqrt(8), 0],
            [0, 0, 1 / np.sqrt(8), 1 / 2, 0],
            [0, 0, 0, 0, 1],
        ]
    )
    np.testing.assert_allclose(found, by_hand, rtol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize(("r", "axis"), [(0.0, 1), (1.0, 0)])
def test_extreme_exponents_divide_rows_or_columns(r: float, axis: int) -> None:
    found = normalised_with_self_loops(sparse.csr_array(A), r).toarray()
    np.testing.assert_allclose(found.sum(axis=axis), np.ones(5), rtol=1e-6)


def test_arcs_take_row_sums_left_and_column_sums_right() -> None:
    arcs = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]], dtype=np.float32)  # row i gathers from its columns
    found = AugmentedAdjacency().matrix(sparse.csr_array(arcs)).toarray()
    with_loops = arcs + np.eye(3)
    dense = np.diag(with_loops.sum(1) ** -0.5) @ with_loops @ np.diag(with_loops.sum(0) ** -0.5)
    np.testing.assert_allclose(found, dense, rtol=1e-6)


def test_weights_enter_the_degrees() -> None:
    weighted = A * 2.5
    found = AugmentedAdjacency().matrix(sparse.csr_array(weighted)).toarray()
    with_loops = weighted + np.eye(5)
    scale = np.diag(with_loops.sum(1) ** -0.5)
    np.testing.assert_allclose(found, scale @ with_loops @ scale, rtol=1e-6)


def test_a_graph_without_edges_gives_the_identity() -> None:
    found = AugmentedAdjacency().matrix(sparse.csr_array((3, 3), dtype=np.float32)).toarray()
    np.testing.assert_array_equal(found, np.eye(3, dtype=np.float32))
