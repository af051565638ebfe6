"""The high-pass step worked by hand."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from search_space.graph_operators import HighPass, graph_operator

PAIR = sparse.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
"""Two nodes and an edge: Â has 1/2 everywhere."""


def test_a_step_by_hand() -> None:
    np.testing.assert_allclose(HighPass().matrix(PAIR).toarray(), [[0.5, -0.5], [-0.5, 0.5]])


def test_what_all_nodes_share_vanishes_where_degrees_are_equal() -> None:
    ring = sparse.csr_array(np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1))
    np.testing.assert_allclose(HighPass().matrix(ring) @ np.ones(4), 0.0, atol=1e-7)


def test_a_node_without_edges_has_nobody_to_differ_from() -> None:
    assert HighPass().matrix(sparse.csr_array((3, 3), dtype=np.float32)).toarray().tolist() == np.zeros((3, 3)).tolist()


def test_the_normalisation_is_that_of_the_low_pass() -> None:
    M = graph_operator("highpass_r0_loops2").matrix(PAIR)
    np.testing.assert_allclose(M.toarray(), [[1 / 3, -1 / 3], [-1 / 3, 1 / 3]], rtol=1e-6)
