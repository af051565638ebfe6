"""One contract for every graph operator."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from search_space.architecture import PAPER_AGGREGATORS
from search_space.errors import DesignError
from search_space.graph_operators import graph_operator


@pytest.fixture
def adjacency() -> sparse.csr_array:
    A = np.zeros((5, 5), dtype=np.float32)
    for i, j in [(0, 1), (0, 2), (1, 2), (2, 3)]:
        A[i, j] = A[j, i] = 1
    return sparse.csr_array(A)


@pytest.mark.parametrize("name", [*PAPER_AGGREGATORS, "augmented_loops2", "ppr0.1_loops0", "heat0.25", "cs0.8_loops0"])
def test_operator_keeps_its_contract(name: str, adjacency: sparse.csr_array) -> None:
    operator = graph_operator(name)
    before = adjacency.copy()
    M = operator.matrix(adjacency)
    assert operator.name == name
    assert M.shape == (5, 5)
    assert M.dtype == np.float32
    assert M.has_sorted_indices
    assert 0.0 <= operator.restart < 1.0
    np.testing.assert_allclose(M.toarray(), M.toarray().T, rtol=1e-6)
    assert M[4, 4] == 1.0, "an isolated node keeps its own features"
    assert np.abs(np.linalg.eigvalsh(M.toarray())).max() <= 1 + 1e-6, "a low-pass operator never amplifies"
    np.testing.assert_array_equal(adjacency.toarray(), before.toarray())


@pytest.mark.parametrize(("exponent", "axis"), [(0.0, 1), (1.0, 0)])
@pytest.mark.parametrize("loops", [0.0, 1.0, 3.0])
def test_an_exponent_at_an_end_makes_rows_or_columns_sum_to_one(
    exponent: float, axis: int, loops: float, adjacency: sparse.csr_array
) -> None:
    for kind in ("augmented", "triangle"):
        M = graph_operator(f"{kind}_r{exponent:g}_loops{loops:g}").matrix(adjacency)
        np.testing.assert_allclose(M.sum(axis=axis), 1.0, rtol=1e-6)


def test_self_loops_weigh_what_they_are_said_to() -> None:
    """Two nodes and an edge: 2 of 3 parts of a node's degree are its own."""
    pair = sparse.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
    np.testing.assert_allclose(
        graph_operator("augmented_loops2").matrix(pair).toarray(), [[2 / 3, 1 / 3], [1 / 3, 2 / 3]], rtol=1e-6
    )
    assert graph_operator("augmented_loops0").matrix(pair).toarray().tolist() == [[0, 1], [1, 0]]


def test_an_unknown_name_lists_what_exists() -> None:
    with pytest.raises(DesignError, match=r"unknown graph aggregator 'gcn'; choose from: augmented"):
        graph_operator("gcn")
