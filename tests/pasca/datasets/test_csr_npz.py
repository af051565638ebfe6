"""csr-npz: directions, values and loops of the adjacency; attributes sparse, dense or absent; damaged parts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from engines.graph import Graph
from pasca.datasets import load
from search_space.errors import DataError

Writer = Callable[..., Path]


def test_directions_values_and_loops_are_settled_and_said(
    write_csr: Writer, hop: Callable[[Graph], np.ndarray]
) -> None:
    graph = load(write_csr())
    s = 1 / np.sqrt(6)
    assert graph.num_edges == 2
    assert np.allclose(hop(graph), [[1 / 3, s, s], [s, 0.5, 0], [s, 0, 0.5]], rtol=1e-5)
    assert "2 edges of weight 1" in " ".join(graph.notes)
    assert "counts, read as 1" in " ".join(graph.notes)
    assert graph.num_self_loops == 1


def test_values_weigh_when_asked_and_opposite_arcs_are_averaged(write_csr: Writer) -> None:
    graph = load(write_csr(), weighted=True)
    assert graph.adjacency.toarray().tolist() == [[0, 1.5, 1], [1.5, 0, 0], [1, 0, 0]]
    assert "1 edge(s) had two different weights, averaged" in graph.notes


def test_directed_rows_gather_from_the_sources_of_arcs(write_csr: Writer) -> None:
    graph = load(write_csr(), directed=True)
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert graph.num_edges == 3


@pytest.mark.parametrize("prefix", ["adj_matrix.", "adj_matrix_"])
def test_other_spellings_of_the_keys_are_read(write_csr: Writer, tmp_path: Path, prefix: str) -> None:
    with np.load(write_csr()) as npz:
        renamed = {key.replace("adj_", prefix).replace("attr_", prefix.replace("adj", "attr")): npz[key] for key in npz}
    np.savez(tmp_path / "other.npz", **renamed)
    graph = load(tmp_path / "other.npz")
    assert (graph.num_edges, graph.num_features) == (2, 3)
    assert graph.made_features is None


def test_dense_attributes_stay_dense(write_csr: Writer) -> None:
    without = ("attr_data", "attr_indices", "attr_indptr", "attr_shape")
    graph = load(write_csr(without=without, attr_matrix=np.array([[1, 2], [3, 4], [5, 6]])))
    assert graph.features.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert graph.features.dtype == np.float32


def test_without_attributes_degrees_are_the_features(write_csr: Writer) -> None:
    graph = load(write_csr(without=("attr_data", "attr_indices", "attr_indptr", "attr_shape")))
    assert np.allclose(graph.features, np.stack([np.ones(3), np.log1p([2, 1, 1])], axis=1))
    assert graph.made_features == "degree"


def test_class_and_node_names_are_kept(write_csr: Writer) -> None:
    names = {"class_names": np.array(["cat", "dog"]), "node_names": np.array(["a#1", "007", "7"])}
    graph = load(write_csr(**names))
    assert graph.class_names == ("cat", "dog")
    assert graph.original_ids().tolist() == ["a#1", "007", "7"]


def test_index_arrays_are_a_given_split(write_csr: Writer) -> None:
    graph = load(write_csr(train_idx=np.array([1]), val_idx=np.array([0]), test_idx=np.array([2])))
    assert [graph.split.train.tolist(), graph.split.validation.tolist(), graph.split.test.tolist()] == [[1], [0], [2]]


def test_an_object_array_is_refused_by_name(write_csr: Writer) -> None:
    path = write_csr(attr_data=np.array([print], dtype=object))
    with pytest.raises(DataError, match=r"'attr_data' holds pickled objects") as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_an_object_array_of_the_attributes_is_refused_without_its_companions(write_csr: Writer) -> None:
    path = write_csr(without=("attr_indices", "attr_indptr", "attr_shape"), attr_data=np.array([print], dtype=object))
    with pytest.raises(DataError, match=r"holds pickled objects"):
        load(path)


def test_pickled_names_are_passed_over_with_a_note(write_csr: Writer) -> None:
    graph = load(write_csr(attr_names=np.array(["a", "b", "c"], dtype=object)))
    assert graph.feature_names is None
    assert "attr_names holds pickled objects: not read" in graph.notes


@pytest.mark.parametrize(
    ("changes", "without", "message"),
    [
        ({"adj_indices": np.array([1, 9, 0, 2])}, (), r"index 9 in row 0 is outside 0\.\.2"),
        ({"adj_indices": np.array([1, -1, 0, 2])}, (), r"index -1 in row 0"),
        ({"adj_indptr": np.array([0, 2, 1, 4])}, (), r"indptr must rise"),
        ({"adj_indptr": np.array([0, 2, 4])}, (), r"indptr of 3 rows has 4 entries, got 3"),
        ({"adj_shape": np.array([3, 4])}, (), r"must be square, got shape \(3, 4\)"),
        ({"adj_shape": np.array([10**15, 10**15])}, (), r"indptr of"),
        ({"adj_data": np.ones(2, np.float32)}, (), r"got 2 and 4"),
        ({"adj_indices": np.array([1.0, 2, 0, 2])}, (), r"indices of a sparse matrix"),
        ({}, ("adj_data",), r"'adj_data' is missing; the file holds"),
        ({"labels": np.array([0, 1])}, (), r"one label for each of 3 nodes, got labels of shape \(2,\)"),
        ({"labels": np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1]])}, (), r"one-hot, but row 0 is not"),
        ({"labels": np.array([0, 0, 0])}, (), r"at least two classes, found only '0'"),
        ({"attr_shape": np.array([2, 3]), "attr_indptr": np.array([0, 1, 3])}, (), r"row of features for each of 3"),
        ({"attr_data": np.array([1, np.nan, np.inf])}, (), r"2 value\(s\) that are NaN.*the first at node 1"),
        ({"class_names": np.array(["cat"])}, (), r"there are 1 class names but a label is 1"),
        ({"node_names": np.array(["a", "b"])}, (), r"one of node_names for each of 3 nodes, got 2"),
        ({"train_idx": [0], "val_idx": [1], "test_idx": [0]}, (), r"share 1 node\(s\), the first is node 0"),
        ({"train_idx": [0], "val_idx": [1], "test_idx": [7]}, (), r"test_idx: entry 0 is 7, but .* from 0 to 2"),
        ({"train_idx": [0, 0], "val_idx": [1], "test_idx": [2]}, (), r"node 0 is listed 2 times"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused(
    write_csr: Writer, changes: dict[str, Any], without: tuple[str, ...], message: str
) -> None:
    path = write_csr(without=without, **changes)
    with pytest.raises(DataError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-60])
def test_a_weight_that_is_not_positive_is_refused(write_csr: Writer, value: float) -> None:
    path = write_csr(adj_data=np.array([1, value, 2, 1]))
    with pytest.raises(DataError, match=r"entry 1 has .* \(1 such\)"):
        load(path, weighted=True)
    assert load(path).num_edges == 2  # as counts, values do not matter


def test_a_million_sparse_columns_stay_sparse(tmp_path: Path) -> None:
    N, F = 2000, 1_000_000
    node = np.arange(N)
    ring = sparse.csr_array((np.ones(N), (node, (node + 1) % N)), shape=(N, N))
    columns = np.stack([499 * node % F, (499 * node + 250_000) % F], axis=1).reshape(-1)
    attributes = sparse.csr_array((np.ones(2 * N), columns, 2 * np.arange(N + 1)), shape=(N, F))
    parts = {
        f"{name}_{part}": getattr(matrix, part)
        for name, matrix in (("adj", ring), ("attr", attributes))
        for part in ("data", "indices", "indptr", "shape")
    }
    np.savez(tmp_path / "wide.npz", labels=node % 2, **parts)
    tracemalloc.start()
    graph = load(tmp_path / "wide.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert graph.features.shape == (N, F)
    assert graph.features.nnz == 4000
    assert peak < 20e6
