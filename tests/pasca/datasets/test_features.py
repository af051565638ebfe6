"""Features: float32 whatever they come as, or made from the structure."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from pasca.datasets.features import MAX_DEGREE, make, to_single
from search_space.errors import ConfigError, DataError

# Edges 0-1, 0-2, and node 3 alone.
STAR = sparse.csr_array(np.array([[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]], dtype=np.float32))


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint64, np.float16, np.float64, np.float32])
def test_every_number_type_becomes_float32(kind: type) -> None:
    dense = np.array([[1, 0], [0, 1]], dtype=kind)
    assert to_single(dense, "f", str).dtype == np.float32
    wide = sparse.csr_array(dense.astype(np.float64) if kind == np.float16 else dense)
    assert np.array_equal(to_single(wide, "f", str).toarray(), dense.astype(np.float32))


def test_dense_features_become_contiguous_and_sparse_ones_stay_sparse() -> None:
    assert to_single(np.asfortranarray(np.ones((3, 2))), "f", str).flags.c_contiguous
    doubled = sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    assert to_single(doubled, "f", str).data.tolist() == [3]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_values_that_are_not_finite_are_counted_and_located(value: float, as_sparse: bool) -> None:
    matrix = np.array([[1, 2], [0, value], [value, 1]])
    with pytest.raises(DataError, match=r"f: features hold 2 value\(s\) that are NaN.*the first at node x1"):
        to_single(sparse.csr_array(matrix) if as_sparse else matrix, "f", lambda i: f"node x{i}")


@pytest.mark.parametrize("raw", [np.ones(3), np.ones((3, 0)), np.array([["a"]]), np.array([[1j]])])
def test_what_is_no_matrix_of_numbers_is_refused(raw: np.ndarray) -> None:
    with pytest.raises(DataError):
        to_single(raw, "f", str)


def test_degree_features_survive_division_by_the_row_sum() -> None:
    made, names = make("degree", STAR, directed=False)
    assert names == ("one", "log1p_degree")
    assert np.allclose(made, [[1, np.log(3)], [1, np.log(2)], [1, np.log(2)], [1, 0]])
    divided = made / np.abs(made).sum(axis=1, keepdims=True)
    assert len(np.unique(divided, axis=0)) == 3


def test_a_directed_graph_has_degrees_of_both_kinds() -> None:
    arcs = sparse.csr_array(np.array([[0, 1], [0, 0]], dtype=np.float32))  # 1 -> 0
    made, names = make("degree", arcs, directed=True)
    assert names == ("one", "log1p_degree_in", "log1p_degree_out")
    assert np.allclose(made, [[1, np.log(2), 0], [1, 0, np.log(2)]])


def test_one_hot_degrees_have_the_same_columns_for_every_graph() -> None:
    made, names = make("onehot-degree", STAR, directed=False)
    assert made.shape == (4, MAX_DEGREE + 1)
    assert made.toarray().argmax(axis=1).tolist() == [2, 1, 1, 0]
    assert names is not None
    assert names[2] == "degree_2"
    hub = sparse.csr_array(np.ones((1, 300), dtype=np.float32))
    assert make("onehot-degree", hub, directed=False)[0].indices.tolist() == [MAX_DEGREE]


def test_singular_vectors_rebuild_a_small_adjacency() -> None:
    path = sparse.csr_array(np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]], dtype=np.float32))
    made, _ = make("svd", path, directed=False)
    # U S U^T rebuilds A·A^T's root, whose square is A·A.
    assert np.allclose(np.linalg.matrix_power(made @ made.T, 2), (path @ path).toarray(), atol=1e-4)
    assert np.array_equal(made, make("svd", path, directed=False)[0])


def test_identity_and_adjacency_are_sparse_rows() -> None:
    assert np.array_equal(make("identity", STAR, directed=False)[0].toarray(), np.eye(4))
    assert np.array_equal(make("adjacency", STAR, directed=False)[0].toarray(), STAR.toarray())


def test_an_unknown_kind_lists_what_exists() -> None:
    with pytest.raises(ConfigError, match="choose from: degree, onehot-degree, svd, identity, adjacency"):
        make("degrees", STAR, directed=False)
