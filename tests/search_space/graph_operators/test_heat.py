"""The heat kernel worked by hand, and against the matrix exponential that it approximates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import expm

from search_space.errors import DesignError
from search_space.graph_operators import HeatKernel, graph_operator

PAIR = sparse.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
"""Two nodes and an edge: Â has 1/2 everywhere."""


def test_two_steps_by_hand() -> None:
    """M = 1/2 I + 1/2 Â = (3/4 1/4; 1/4 3/4): heat at node 0 becomes (3/4, 1/4), then (5/8, 3/8)."""
    M = HeatKernel(0.5).matrix(PAIR)
    np.testing.assert_allclose(M.toarray(), [[0.75, 0.25], [0.25, 0.75]])
    np.testing.assert_allclose(M @ (M @ np.array([1.0, 0.0])), [0.625, 0.375])


def test_many_short_steps_approach_the_heat_kernel() -> None:
    rng = np.random.default_rng(0)
    pattern = np.triu(rng.random((6, 6)) < 0.5, 1).astype(np.float32)
    adjacency = sparse.csr_array(pattern + pattern.T)
    L = np.eye(6) - graph_operator("augmented").matrix(adjacency).toarray()
    steps = np.linalg.matrix_power(HeatKernel(0.01).matrix(adjacency).toarray().astype(np.float64), 200)
    np.testing.assert_allclose(steps, expm(-2.0 * L), atol=5e-3)


def test_a_step_outside_zero_to_one_is_refused() -> None:
    with pytest.raises(DesignError, match="a heat step needs 0 < step < 1, got 'heat1'"):
        graph_operator("heat1")
