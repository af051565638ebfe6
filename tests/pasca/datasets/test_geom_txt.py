"""geom-txt: rows in any order, dense or listed features, splits beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pasca.datasets import load
from search_space.errors import DataError

Files = Callable[[dict[str, Any]], Path]
EDGES = "node_id\tnode_id\n0\t2\n2\t0\n0\t2\n1\t1\n"
DENSE = "node_id\tfeature\tlabel\n2\t1,0,0\t0\n0\t0,1,1\t1\n1\t0,0,0\t0\n"
LISTED = "node_id\tfeature(feature_amount:4)\tlabel\n2\t0,3\t0\n0\t1\t1\n1\t3,3,2\t0\n"


def write(write_files: Files, nodes: str = DENSE, edges: str = EDGES) -> Path:
    return write_files({"out1_graph_edges.txt": edges, "out1_node_feature_label.txt": nodes})


def test_rows_are_put_in_node_order(write_files: Files) -> None:
    graph = load(write(write_files))
    assert graph.features.toarray().tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]
    assert graph.labels.tolist() == [1, 0, 0]
    assert (graph.num_edges, graph.num_self_loops, graph.num_isolated) == (1, 1, 1)


def test_listed_features_are_columns_and_repeats_count_once(write_files: Files) -> None:
    graph = load(write(write_files, LISTED))
    assert graph.features.toarray().tolist() == [[0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1]]
    assert "1 feature(s) listed twice by a node" in graph.notes


def test_splits_are_taken_by_number(write_files: Files, tmp_path: Path) -> None:
    (tmp_path / "splits").mkdir()
    for number in range(2):
        masks = {key: np.roll([1, 0, 0], i + number) for i, key in enumerate(("train_mask", "val_mask", "test_mask"))}
        np.savez(tmp_path / "splits" / f"film_split_0.6_0.2_{number}.npz", **masks)
    folder = write(write_files)
    assert load(folder).split.train.tolist() == [0]
    assert load(folder, split="1").split.train.tolist() == [1]


def test_a_mask_of_the_wrong_length_names_its_file(write_files: Files, tmp_path: Path) -> None:
    (tmp_path / "splits").mkdir()
    np.savez(tmp_path / "splits" / "film_split_0.6_0.2_0.npz", train_mask=[1], val_mask=[1], test_mask=[1])
    with pytest.raises(DataError, match=r"film_split_0\.6_0\.2_0\.npz: train_mask: expected a mask of shape \(3,\)"):
        load(write(write_files))


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (DENSE, "node_id\tnode_id\n0\t9\n", r"unknown node, the first is '9' in line 2"),
        ("node_id\tfeature\tlabel\n0\t1,x\t0\n", EDGES, r"got '1,x' in line 2"),
        ("node_id\tfeature\tlabel\n0\t1,-2\t0\n", EDGES, r"-2 in line 2 is neither"),
        ("node_id\tfeature\tlabel\n0\t99999999999\t0\n", EDGES, r"99999999999 in line 2 is neither"),
        ("node_id\tfeature\tlabel\n0\t1\t0\n0\t1\t0\n", EDGES, r"node '0' is listed twice, in line 2 and line 3"),
        ("node_id\tfeature\n0\t1\n", EDGES, r"expected 3 tab-separated columns"),
        ("node_id\tfeature\tlabel\n0\t1\n", EDGES, r"expected 3 fields in every row, got 2 in line 2"),
    ],
)
def test_faults_name_their_line(write_files: Files, nodes: str, edges: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(write(write_files, nodes, edges))


def test_a_missing_half_is_named(write_files: Files) -> None:
    with pytest.raises(DataError, match=r"out1_node_feature_label\.txt is missing"):
        load(write_files({"out1_graph_edges.txt": EDGES}))
