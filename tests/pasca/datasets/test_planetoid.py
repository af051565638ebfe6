"""Planetoid folders: the test block's order, skipped ids, the public split, and files that do not fit together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pasca.datasets import load
from search_space.errors import DataError

Writer = Callable[..., Path]
GRAPH = {node: [] for node in range(6)}


def test_rows_of_the_test_block_follow_the_index(write_planetoid: Writer) -> None:
    graph = load(write_planetoid())
    features = graph.features.toarray()
    assert features[5].tolist() == [0, 0, 0, 5]
    assert features[3].tolist() == [0, 0, 0, 3]
    assert graph.labels.tolist() == [0, 1, 1, 1, -1, 0]


def test_a_skipped_id_is_an_empty_unlabelled_node(write_planetoid: Writer) -> None:
    graph = load(write_planetoid())
    assert graph.num_nodes == 6
    assert graph.features[[4]].nnz == 0
    assert any("1 node(s) are missing from test.index" in note for note in graph.notes)


def test_a_skipped_last_id_is_known_from_the_graph_alone(write_planetoid: Writer) -> None:
    neighbours = {0: [1], 1: [0, 2], 2: [1, 3], 3: [2], 4: [], 5: []}
    graph = load(write_planetoid(graph=neighbours, test_index="4\n3\n"))
    assert graph.num_nodes == 6
    assert graph.labels.tolist() == [0, 1, 1, 1, 0, -1]


def test_edges_are_distinct_pairs_without_loops(write_planetoid: Writer) -> None:
    graph = load(write_planetoid())
    rows, columns = graph.adjacency.nonzero()
    assert {(r, c) for r, c in zip(rows.tolist(), columns.tolist(), strict=True) if r < c} == {
        (0, 1),
        (1, 2),
        (2, 3),
        (0, 5),
    }
    assert graph.num_edges == 4
    assert graph.num_self_loops == 1


def test_validation_does_not_run_into_test(write_planetoid: Writer) -> None:
    split = load(write_planetoid(), split="public").split
    assert [split.train.tolist(), split.validation.tolist(), split.test.tolist()] == [[0, 1], [2], [3, 5]]


def test_an_unlabelled_row_is_left_out_of_the_public_split(write_planetoid: Writer) -> None:
    ally = np.array([[1, 0], [0, 1], [0, 0]])
    graph = load(write_planetoid(ally=ally), for_training=False)
    assert graph.split.validation.size == 0
    assert graph.labels[2] == -1


@pytest.mark.parametrize("part", ["x", "y", "tx", "ty", "allx", "ally", "graph", "test.index"])
def test_a_missing_file_is_named(write_planetoid: Writer, tmp_path: Path, part: str) -> None:
    folder = write_planetoid()
    (folder / f"ind.tiny.{part}").unlink()
    with pytest.raises(DataError, match=rf"ind\.tiny\.{part} is missing"):
        load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_index": "5\n"}, r"test\.index: expected 2 rows, as in tx, got 1"),
        ({"test_index": "5\n5\n"}, r"node 5 is listed again"),
        ({"test_index": "5\nthree\n"}, r"got 'three' at line 2"),
        ({"test_index": "5\n-3\n"}, r"got '-3' at line 2"),
        ({"test_index": "1\n5\n"}, r"node 1 is a row of allx too"),
        ({"test_index": "3\n99\n"}, r"node 99 is outside the 6 nodes"),
        ({"test_index": "3\n" + "9" * 30}, r"expected one node number a line"),
        ({"ty": np.eye(2)}, None),
        ({"ty": np.eye(3)[:2]}, r"equally many columns"),
        ({"ally": np.array([[1, 0], [1, 1], [0, 1]])}, r"row 1 is not"),
        ({"ally": np.array([[1, 0], [2, 0], [0, 1]])}, r"zeros and ones only"),
        ({"ally": np.eye(2)}, r"ally: expected 3 rows, as in allx, got 2"),
        ({"y": np.eye(2)[[0, 1, 0, 1]]}, r"ind\.tiny\.x: expected 4 rows"),
        ({"graph": {**GRAPH, 1: [0, 9]}}, r"node 1 has neighbour '9', but nodes run from 0 to 5"),
        ({"graph": {**GRAPH, 1: [0, -1]}}, r"node 1 has neighbour '-1'"),
        ({"graph": {**GRAPH, 0: ["1"]}}, r"node 0 has neighbour '1'"),
        ({"graph": {**GRAPH, 10**12: [0]}}, r"node 1000000000000 is outside"),
        ({"graph": {"a": [0]}}, r"expected a list of neighbours for each node number"),
        ({"graph": [1, 2]}, r"expected a pickled dict"),
        ({"allx": {"a": 1}}, r"expected a pickled sparse matrix"),
        ({"ally": [1, 2]}, r"expected a pickled matrix of one-hot labels"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_together_are_refused(
    write_planetoid: Writer, changes: dict[str, Any], message: str | None
) -> None:
    folder = write_planetoid(**changes)
    if message is None:
        assert load(folder).num_nodes == 6
        return
    with pytest.raises(DataError, match=message) as caught:
        load(folder)
    assert str(folder) in str(caught.value)


def test_shared_neighbour_lists_cannot_multiply(write_planetoid: Writer) -> None:
    shared = [0] * 5000
    with pytest.raises(DataError, match="cannot list that many neighbours"):
        load(write_planetoid(graph=dict.fromkeys(range(6), shared)))


def test_geom_splits_beside_the_files_are_offered_by_number(write_planetoid: Writer, tmp_path: Path) -> None:
    (tmp_path / "splits").mkdir()
    masks = {"train_mask": [1, 1, 0, 0, 1, 0], "val_mask": [0, 0, 1, 0, 0, 0], "test_mask": [0, 0, 0, 1, 0, 0]}
    np.savez(tmp_path / "splits" / "tiny_split_0.6_0.2_7.npz", **{k: np.array(v, np.uint8) for k, v in masks.items()})
    graph = load(write_planetoid(), split="7")
    assert graph.split.train.tolist() == [0, 1]  # node 4 has no label
    assert any("1 node(s) without a label left out" in note for note in graph.notes)


def test_a_complete_set_is_preferred_to_other_files(write_planetoid: Writer, write_csr: Writer) -> None:
    write_csr()
    assert load(write_planetoid()).num_nodes == 6


def test_dense_feature_matrices_are_taken_too(write_planetoid: Writer) -> None:
    graph = load(write_planetoid(tx=np.array([[0, 0, 0, 5.0], [0, 0, 0, 3.0]])))
    assert sparse.issparse(graph.features)
    assert graph.features[5, 3] == 5
