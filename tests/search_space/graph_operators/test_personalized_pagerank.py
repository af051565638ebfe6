"""Personalised PageRank: the restart goes to X(0)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from search_space.errors import DesignError
from search_space.graph_operators import AugmentedAdjacency, PersonalizedPageRank, graph_operator


def test_shares_its_matrix_with_the_augmented_adjacency() -> None:
    path = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
    operator = PersonalizedPageRank(0.2)
    assert operator.matrix_key == AugmentedAdjacency().matrix_key
    np.testing.assert_array_equal(operator.matrix(path).toarray(), AugmentedAdjacency().matrix(path).toarray())


def test_two_steps_are_a_restart_and_not_a_lazy_walk() -> None:
    path = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
    operator = graph_operator("ppr0.3")
    M = operator.matrix(path).toarray().astype(np.float64)
    X0 = np.array([[1.0], [2.0], [3.0]])
    X = X0
    for _ in range(2):
        X = (1 - operator.restart) * M @ X + operator.restart * X0
    closed_form = 0.49 * M @ M @ X0 + 0.7 * 0.3 * M @ X0 + 0.3 * X0
    np.testing.assert_allclose(X, closed_form, rtol=1e-12)
    lazy = np.linalg.matrix_power(0.7 * M + 0.3 * np.eye(3), 2) @ X0
    assert np.abs(X - lazy).max() > 1e-2


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_alpha_outside_the_open_interval_is_refused(alpha: float) -> None:
    with pytest.raises(DesignError, match=r"0 < alpha < 1, got alpha="):
        PersonalizedPageRank(alpha)
