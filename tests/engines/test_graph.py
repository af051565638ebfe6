"""Graph: what it refuses, and what it takes on trust without reading it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from engines.graph import Graph, Split
from search_space.errors import GraphError, ShapeError

PATH = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
SPLIT = Split(np.array([0]), np.array([1]), np.array([], dtype=np.int64))


def parts(**changes: Any) -> dict[str, Any]:
    own: dict[str, Any] = {
        "name": "path",
        "adjacency": PATH,
        "features": np.eye(3, 2, dtype=np.float32),
        "labels": np.array([0, 1, -1]),
        "class_names": ("a", "b"),
        "split": SPLIT,
    }
    return {**own, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.eye(2, dtype=np.float32)}, "3 nodes but features has 2 rows"),
        ({"labels": np.array([0, 1])}, "3 nodes but labels has 2 rows"),
        ({"labels": np.array([0, 1, -1], dtype=np.int32)}, "labels must be int64"),
        ({"features": np.eye(3)}, "are float32 in a Graph"),
        ({"node_ids": np.array(["x"])}, "there are 1 node ids"),
        ({"feature_names": ("f",)}, "2 columns but 1 names"),
    ],
)
def test_shapes_and_types_are_checked_even_on_trust(changes: dict[str, Any], message: str) -> None:
    for make in (Graph, Graph.trusted):
        with pytest.raises((GraphError, ShapeError), match=message):
            make(**parts(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.full((3, 2), np.nan, dtype=np.float32)}, "6 value.* NaN or infinite, the first at node 0"),
        ({"labels": np.array([0, 1, 2])}, "node 2 has label 2, but labels run from 0 to 1"),
        ({"adjacency": sparse.csr_array(np.eye(3, dtype=np.float32))}, "no self-loops"),
        ({"split": Split(np.array([0]), np.array([2]), np.array([], int))}, "validation part .* without a label"),
        ({"split": Split(np.array([0]), np.array([7]), np.array([], int))}, "names node 7"),
    ],
)
def test_values_are_checked_unless_trusted(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Graph(**parts(**changes))
    assert Graph.trusted(**parts(**changes)).num_nodes == 3


def test_a_trusted_graph_is_the_same_graph() -> None:
    checked, trusted = Graph(**parts()), Graph.trusted(**parts())
    assert trusted.checksum == checked.checksum
    assert (trusted.num_edges, trusted.notes, trusted.made_features) == (2, (), None)


def test_stored_checksums_are_taken_without_reading() -> None:
    trusted = Graph.trusted(checksums=("structure", "all"), **parts())
    assert (trusted.structure_checksum, trusted.checksum) == ("structure", "all")


def test_another_split_is_checked_and_the_structure_is_not_read_again() -> None:
    trusted = Graph.trusted(checksums=("structure", "all"), **parts())
    other = trusted.with_split(Split(np.array([1]), np.array([0]), np.array([], int)))
    assert other.structure_checksum == "structure"
    assert other.checksum != "all"
    with pytest.raises(GraphError, match="without a label"):
        trusted.with_split(Split(np.array([2]), np.array([0]), np.array([], int)))
