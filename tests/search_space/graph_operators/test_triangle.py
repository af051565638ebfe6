"""Triangle counts against (A·A)∘A, which is never formed by the code under test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from search_space.graph_operators import TriangleInducedAdjacency, triangle
from search_space.graph_operators.triangle import triangle_counts


def test_five_nodes_by_hand() -> None:
    # two triangles 0-1-2 and 1-2-3 share edge 1-2; node 4 hangs on 3 by an edge in no triangle
    edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4)]
    A = np.zeros((5, 5), dtype=np.float32)
    for i, j in edges:
        A[i, j] = A[j, i] = 1
    counts = triangle_counts(sparse.csr_array(A)).toarray()
    by_hand = np.zeros((5, 5))
    for (i, j), count in {(0, 1): 1, (0, 2): 1, (1, 2): 2, (1, 3): 1, (2, 3): 1}.items():
        by_hand[i, j] = by_hand[j, i] = count
    np.testing.assert_array_equal(counts, by_hand)
    # degrees with self-loop: 3, 5, 5, 3, 1
    M = TriangleInducedAdjacency().matrix(sparse.csr_array(A)).toarray()
    np.testing.assert_allclose(M[1, 2], 2 / 5, rtol=1e-6)
    np.testing.assert_allclose(M[0, 1], 1 / np.sqrt(15), rtol=1e-6)
    assert M[3, 4] == 0
    assert M[4, 4] == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 24), st.floats(0, 1), st.integers(0, 10**6), st.sampled_from([1, 3, 1 << 22]))
def test_equals_the_dense_formula_in_any_batch_size(N: int, density: float, seed: int, batch: int) -> None:
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((N, N)) < density, 1).astype(np.float32)
    A += A.T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triangle, "PATHS_PER_BATCH", batch)
        found = triangle_counts(sparse.csr_array(A)).toarray()
    np.testing.assert_array_equal(found, (A @ A) * A)


def test_weights_are_ignored_and_arcs_symmetrised() -> None:
    arcs = np.array([[0, 7, 0], [0, 0, 0.5], [2, 0, 0]], dtype=np.float32)
    found = triangle_counts(sparse.csr_array(arcs)).toarray()
    np.testing.assert_array_equal(found, np.ones((3, 3)) - np.eye(3))


def test_a_graph_without_triangles_keeps_only_self_loops() -> None:
    path = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
    np.testing.assert_array_equal(TriangleInducedAdjacency().matrix(path).toarray(), np.eye(3))
