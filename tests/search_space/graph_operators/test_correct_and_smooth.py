"""Correct & Smooth worked by hand on two nodes, and what it may know."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from search_space.errors import DesignError
from search_space.graph_operators import graph_operator
from search_space.graph_operators.correct_and_smooth import CorrectAndSmooth, correct_and_smooth

PAIR = sparse.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
"""Two nodes and an edge: Â has 1/2 everywhere."""


def step(before: np.ndarray, start: np.ndarray) -> np.ndarray:
    """α = 1/2 along Â."""
    return (0.5 * (graph_operator("augmented").matrix(PAIR) @ before) + 0.5 * start).astype(np.float32)


def test_one_step_of_each_by_hand() -> None:
    """Node 0 is of class 0. Its errors (.4, -.4) spread to (.3, -.3) and (.1, -.1); |E(0)| is .4 on average, so node 1
    is corrected by .4 / .2 times the latter, to (.7, .3). From (1, 0) and (.7, .3), whose mean is (.85, .15),
    smoothing gives half of each."""
    predicted = np.array([[[0.6, 0.4]], [[0.5, 0.5]]], dtype=np.float32)
    found = correct_and_smooth(predicted, np.array([0]), np.array([0]), 1, step)
    np.testing.assert_allclose(found[:, 0], [[0.925, 0.075], [0.775, 0.225]], rtol=1e-6)


def test_a_perfect_prediction_of_the_known_nodes_leaves_nothing_to_correct() -> None:
    predicted = np.array([[[1.0, 0.0]], [[0.2, 0.8]]], dtype=np.float32)
    found = correct_and_smooth(predicted, np.array([0]), np.array([0]), 0, step)
    np.testing.assert_array_equal(found, predicted)


def test_repeats_are_corrected_by_their_own_errors() -> None:
    rng = np.random.default_rng(0)
    predicted = rng.random((2, 3, 4), dtype=np.float32)
    known = np.array([1]), np.array([2])
    together = correct_and_smooth(predicted, *known, 3, step)
    for s in range(3):
        np.testing.assert_allclose(together[:, s : s + 1], correct_and_smooth(predicted[:, s : s + 1], *known, 3, step))


def test_the_restart_is_what_does_not_come_from_neighbours() -> None:
    operator = graph_operator("cs0.8_loops0")
    assert isinstance(operator, CorrectAndSmooth)
    assert operator.restart == pytest.approx(0.2)
    assert operator.matrix_key == "augmented_loops0"


def test_a_share_outside_zero_to_one_is_refused() -> None:
    with pytest.raises(DesignError, match=r"Correct & Smooth needs 0 < alpha < 1, got alpha=1\.5"):
        CorrectAndSmooth(1.5)
