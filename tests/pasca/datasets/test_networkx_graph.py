"""NetworkX graphs: attributes become features, label, split and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pasca.datasets import load
from search_space.errors import DataError

nx = pytest.importorskip("networkx")


def triangle(**changes: dict[str, Any]) -> Any:
    graph = nx.Graph([("b", 7), (7, "a#1"), ("a#1", "b")])
    rows = {
        "b": {"f1": 1, "f2": 2.5, "label": "x", "split": "train", "colour": "red"},
        7: {"f1": 3, "f2": 4, "label": "y", "split": "val", "colour": "blue"},
        "a#1": {"f1": 5, "f2": 6, "label": None, "split": None},
    }
    for node, row in rows.items():
        graph.nodes[node].update({**row, **changes.get(str(node), {})})
    return graph


def test_attributes_become_parts_in_node_order() -> None:
    graph = load(triangle())
    assert graph.original_ids().tolist() == ["b", "7", "a#1"]
    assert (graph.feature_names, graph.features.tolist()) == (("f1", "f2"), [[1, 2.5], [3, 4], [5, 6]])
    assert (graph.class_names, graph.labels.tolist()) == (("x", "y"), [0, 1, -1])
    assert [graph.split.train.tolist(), graph.split.validation.tolist()] == [[0], [1]]
    assert "attribute(s) colour hold no numbers: no features" in graph.notes


def test_a_vector_attribute_is_the_features() -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {i: np.array([i, 1.0]) for i in range(3)}, "x")
    assert load(graph).features.tolist() == [[0, 1], [1, 1], [2, 1]]


def test_edge_weights_count_and_a_missing_one_is_1() -> None:
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=2.5)
    graph.add_edge(1, 2)
    assert load(graph).adjacency.toarray().tolist() == [[0, 2.5, 0], [2.5, 0, 1], [0, 1, 0]]
    assert load(graph, weighted=False).adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_a_digraph_is_symmetrised_unless_asked() -> None:
    graph = nx.DiGraph([(0, 1), (1, 0), (1, 2)])
    assert load(graph).num_edges == 2
    assert load(graph, directed=True).adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]


def test_parallel_edges_of_a_multigraph_add_up() -> None:
    graph = nx.MultiGraph()
    graph.add_edge(0, 1, weight=1.0)
    graph.add_edge(0, 1, weight=2.0)
    assert load(graph).adjacency[0, 1] == 3


def test_isolated_nodes_and_self_loops_are_kept_and_counted() -> None:
    graph = nx.Graph([(0, 0)])
    graph.add_node(1)
    assert (load(graph).num_isolated, load(graph).num_self_loops) == (2, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"7": {"f1": "many"}}, r"attribute 'f1' of node 7 is no number, got 'many'"),
        ({"7": {"f1": None}}, r"NaN.* the first at node 7"),
        ({"7": {"split": "holdout"}}, r"a split is train, val or test, got 'holdout' at node 7"),
    ],
)
def test_faults_name_the_node(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(triangle(**changes))


def test_vectors_of_different_lengths_are_refused() -> None:
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, {0: [1.0, 2.0], 1: [1.0]}, "x")
    with pytest.raises(DataError, match=r"attribute 'x' of node 1 has 1 numbers, expected 2"):
        load(graph)


def test_a_bad_weight_names_the_edge() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=-1)
    with pytest.raises(DataError, match=r"edge 'a' - 'b' has -1\.0"):
        load(graph)


def test_two_nodes_with_one_text_are_refused() -> None:
    with pytest.raises(DataError, match="two nodes are written '1'"):
        load(nx.Graph([(1, "1")]))
