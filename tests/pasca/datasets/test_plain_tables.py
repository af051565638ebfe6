"""Plain tables: who the nodes are, and that everything follows the node and not the row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from scipy.io import mmwrite

from engines.graph import Graph
from pasca.datasets import load
from search_space.errors import DataError

Files = Callable[[dict[str, Any]], Path]
Hop = Callable[[Graph], np.ndarray]
GAPS = {
    "edges.csv": "source,target\n10,20\n20,30\n30,20\n30,30\n10,20\n40,30\n",
    "nodes.csv": "id,f1,label\n50,5,0\n30,3,1\n10,1,0\n40,4,1\n20,2,0\n",
}
PATH3 = "source,target\n0,1\n1,2\n"


def by_id(graph: Graph, values: np.ndarray) -> dict[str, Any]:
    return dict(zip(graph.original_ids().tolist(), values.tolist(), strict=True))


def test_ids_with_gaps_are_mapped_and_mapped_back(write_files: Files, hop: Hop) -> None:
    graph = load(write_files(GAPS))
    assert (graph.num_nodes, graph.num_edges, graph.num_isolated) == (5, 3, 1)
    hops = by_id(graph, hop(graph)[:, 0])
    expected = {"10": 1.316497, "20": 2.074915, "30": 3.299660, "40": 3.224745, "50": 5.0}
    assert hops == pytest.approx(expected, rel=1e-5)
    labels = {"50": "0", "30": "1", "10": "0", "40": "1", "20": "0"}
    assert {node: graph.class_names[label] for node, label in by_id(graph, graph.labels).items()} == labels


def test_ids_that_look_like_something_else_stay_apart(write_files: Files) -> None:
    folder = write_files(
        {
            "edges.csv": "source,target\na#1,007\n7,NA\nNA,null\n1e5,100000\nnull,a#1\n",
            "nodes.csv": "id,f1,label\n007,1,x\n7,2,y\nNA,3,x\nnull,4,y\na#1,5,x\n1e5,6,y\n100000,7,x\n",
        }
    )
    graph = load(folder)
    assert (graph.num_nodes, graph.num_edges) == (7, 5)
    assert sparse.csgraph.connected_components(graph.adjacency)[0] == 2
    assert graph.original_ids().tolist() == ["007", "7", "NA", "null", "a#1", "1e5", "100000"]


def test_the_node_table_sets_the_size(write_files: Files, hop: Hop) -> None:
    graph = load(write_files({"edges.csv": PATH3, "nodes.csv": "id,f1,label\n0,1,0\n1,2,1\n2,3,0\n3,4,1\n"}))
    assert graph.num_nodes == 4
    assert hop(graph)[:, 0] == pytest.approx([1.316497, 2.299660, 2.316497, 4], rel=1e-5)


def test_labels_with_holes_and_an_extra_axis(write_files: Files) -> None:
    labels = np.array([[0.0], [1.0], [np.nan], [-100.0], [1.0], [0.0]])
    edges = "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(5))
    graph = load(write_files({"edges.csv": edges, "features.npy": np.arange(12.0).reshape(6, 2), "labels.npy": labels}))
    assert graph.labels.tolist() == [0, 1, -1, -1, 1, 0]
    assert graph.num_labelled == 4
    split = graph.split
    assert not {2, 3} & {*split.train.tolist(), *split.validation.tolist(), *split.test.tolist()}


@pytest.mark.parametrize("kind", [np.float16, np.int64, np.float64, np.uint16, ">f4"])
def test_features_of_any_number_type_are_computed_in_float32(write_files: Files, hop: Hop, kind: Any) -> None:
    matrix = np.array([[60000, 60000], [0, 0], [1, 3]]).astype(kind)
    folder = write_files(
        {"edges.csv": "source,target\n0,2\n", "features.npy": matrix, "labels.csv": "id,label\n0,0\n1,1\n"}
    )
    graph = load(folder)
    assert graph.features.dtype == np.float32
    assert np.allclose(hop(graph), [[30000.5, 30001.5], [0, 0], [30000.5, 30001.5]], rtol=1e-5)


def test_renumbered_nodes_are_the_same_graph(write_files: Files, hop: Hop) -> None:
    rows = ["1,0,a,train", "0,1,b,train", "1,1,a,val", "2,0,b,val", "0,2,a,test", "3,1,b,test"]
    edges, new = [(0, 1), (1, 2), (2, 3), (3, 4), (1, 4)], [3, 5, 0, 4, 1, 2]
    shuffled = [5, 4, 3, 2, 1, 0]
    folder = write_files(
        {
            "edges.csv": "source,target\n" + "".join(f"{i},{j}\n" for i, j in edges),
            "nodes.csv": "id,f1,f2,label,split\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows)),
            "edges_renumbered.csv": "source,target\n" + "".join(f"{new[j]},{new[i]}\n" for i, j in reversed(edges)),
            "nodes_renumbered.csv": "id,f1,f2,label,split\n" + "".join(f"{new[i]},{rows[i]}\n" for i in shuffled),
        }
    )
    one, other = load(f"{folder}:edges.csv"), load(f"{folder}:renumbered")
    old_hops, new_hops = by_id(one, hop(one)), by_id(other, hop(other))
    for i in range(6):
        assert new_hops[str(new[i])] == pytest.approx(old_hops[str(i)], rel=1e-6)
        assert by_id(other, other.labels)[str(new[i])] == one.labels[i]
    assert {other.original_ids()[i] for i in other.split.train} == {str(new[i]) for i in one.split.train}


def test_an_edge_list_alone_has_the_nodes_it_names(write_files: Files) -> None:
    graph = load(write_files({"edges.txt": "# a comment\n10\t9\n100\t9\n"}))
    assert graph.original_ids().tolist() == ["9", "10", "100"]
    assert (graph.num_labelled, graph.split.num_nodes, graph.made_features) == (0, 0, "degree")


def test_text_ids_alone_are_sorted(write_files: Files) -> None:
    assert load(write_files({"edges.csv": "b,a\nc,b\n"})).original_ids().tolist() == ["a", "b", "c"]


def test_features_are_known_by_column_name(write_files: Files) -> None:
    graph = load(write_files({"edges.csv": PATH3, "nodes.csv": "id,f3,name,f1\n0,1,x,2\n1,3,y,4\n2,5,z,6\n"}))
    assert graph.feature_names == ("f3", "f1")
    assert graph.features.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert "column(s) name hold text: no features" in graph.notes


@pytest.mark.parametrize("suffix", ["csv", "npy", "npz", "mtx", "sparse.npz", "csv.gz"])
def test_features_come_in_files_of_their_own(write_files: Files, suffix: str, tmp_path: Path) -> None:
    matrix = np.array([[1.0, 0, 2], [0, 0, 0], [0, 4, 0]])
    write_files({"edges.csv": PATH3})
    if suffix == "csv" or suffix == "csv.gz":
        np.savetxt(tmp_path / f"features.{suffix}", matrix, delimiter=",")
    elif suffix == "npy":
        np.save(tmp_path / "features.npy", matrix)
    elif suffix == "npz":
        np.savez(tmp_path / "features.npz", x=matrix)
    elif suffix == "mtx":
        mmwrite(tmp_path / "features.mtx", sparse.coo_array(matrix))
    else:
        sparse.save_npz(tmp_path / "features.npz", sparse.csc_array(matrix))
    features = load(tmp_path).features
    assert sparse.issparse(features) == (suffix in ("mtx", "sparse.npz"))
    assert np.array_equal(features.toarray() if sparse.issparse(features) else features, matrix)


def test_rows_of_a_feature_array_are_node_numbers(write_files: Files) -> None:
    files = {"edges.csv": PATH3, "nodes.csv": "id,label\n2,c\n0,a\n1,b\n", "features.npy": np.array([[0.0], [1], [2]])}
    graph = load(write_files(files))
    assert by_id(graph, graph.features[:, 0]) == {"2": 2, "0": 0, "1": 1}


def test_rows_of_a_feature_array_follow_the_table_where_ids_are_names(write_files: Files) -> None:
    files = {"edges.csv": "x,y\n", "nodes.csv": "id,label\ny,c\nx,a\n", "features.npy": np.array([[0.0], [1]])}
    graph = load(write_files(files))
    assert by_id(graph, graph.features[:, 0]) == {"y": 0, "x": 1}
    assert "rows of the features are in the node table's order" in graph.notes


def test_labels_are_joined_by_id_and_may_miss_some(write_files: Files) -> None:
    files = {"edges.csv": PATH3, "labels.csv": "id,label\n2,b\n0,a\n"}
    graph = load(write_files(files), for_training=False)
    assert [graph.labels.tolist(), graph.class_names] == [[0, -1, 1], ("a", "b")]


def test_a_labelled_node_without_an_edge_is_a_node(write_files: Files) -> None:
    graph = load(write_files({"edges.csv": PATH3, "labels.csv": "id,label\n9,b\n0,a\n"}), for_training=False)
    assert graph.original_ids().tolist() == ["0", "1", "2", "9"]
    assert graph.num_isolated == 1


def test_parquet_tables_are_read(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"source": ["a", "b"], "target": ["b", "c"]}), tmp_path / "edges.parquet")
    parquet.write_table(pa.table({"id": ["c", "b", "a"], "f": [3.0, 2.0, 1.0]}), tmp_path / "nodes.parquet")
    graph = load(tmp_path)
    assert (graph.num_edges, by_id(graph, graph.features[:, 0])) == (2, {"c": 3, "b": 2, "a": 1})


def test_integer_and_text_ids_meet_as_text(tmp_path: Path, write_files: Files) -> None:
    write_files({"nodes.csv": "id,f\n7,1\n007,2\n"})
    parquet.write_table(pa.table({"source": [7], "target": [7]}), tmp_path / "edges.parquet")
    assert load(tmp_path).num_self_loops == 1


@pytest.mark.parametrize(
    "files",
    [
        {"train_idx.npy": np.array([0]), "val_idx.npy": np.array([2]), "test_idx.npy": np.array([1])},
        {"train_mask.npy": np.array([1, 0, 0], np.uint8), "val_mask.npy": np.array([0, 0, 1], bool),
         "test_mask.npy": np.array([False, True, False])},
        {"train.txt": "0\n", "val.txt": "2\n", "test.txt": "1\n"},
        {"train_idx.csv": "id\n0\n", "valid_idx.csv": "id\n2\n", "test_idx.csv": "id\n1\n"},
    ],
)  # fmt: skip
def test_index_and_mask_files_are_the_split(write_files: Files, files: dict[str, Any]) -> None:
    graph = load(write_files({"edges.csv": PATH3, "labels.csv": "id,label\n0,a\n1,b\n2,b\n", **files}))
    assert [graph.split.train.tolist(), graph.split.validation.tolist(), graph.split.test.tolist()] == [[0], [2], [1]]


def test_mask_columns_are_the_split(write_files: Files) -> None:
    nodes = "id,label,train_mask,val_mask,test_mask\n0,a,1,0,0\n1,b,True,0,0\n2,b,false,1,0\n"
    graph = load(write_files({"edges.csv": PATH3, "nodes.csv": nodes}))
    assert [graph.split.train.tolist(), graph.split.validation.tolist()] == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"edges.csv": "source,target\n0,1\n1,8\n"}, r"1 edge\(s\) name an unknown node, the first is '8' in line 3"),
        ({"nodes.csv": "id,f,label\n0,1,a\n1,2,b\n0,3,a\n"}, r"node '0' is listed twice, in line 2 and line 4"),
        ({"nodes.csv": "id,f,label\n0,1,a\nx,2,b\n,3,a\n"}, r"the node in line 4 has no id"),
        ({"nodes.csv": "id,f,label\n0,1,a\n1,x,b\n2,3,a\n"}, r"column 'f' holds numbers, got 'x' in line 3"),
        ({"nodes.csv": "id,f,label\n0,1,a\n1,,b\n2,inf,a\n"}, r"2 value\(s\) that are NaN, .* first at node 1"),
        ({"nodes.csv": "id,f,label\n0,1,a\n1,2\n2,3,a\n"}, r"expected 3 fields in every row, got 2 in line 3"),
        ({"nodes.csv": "id,f,f\n0,1,1\n1,2,1\n2,2,1\n"}, r"column 'f' appears 2 times"),
        ({"nodes.csv": "id,f,label,split\n0,1,a,train\n1,2,b,vla\n2,2,b,\n"}, r"got 'vla' in line 3"),
        ({"nodes.csv": "id,f,label\n0,1,a\n1,2,a\n2,2,a\n"}, r"at least two classes, found only 'a'"),
        ({"nodes.csv": "id,f,label\n0,1,-1\n1,2,\n2,2,nan\n"}, r"at least two classes, found none"),
        ({"nodes.csv": "id,f,label,split\n0,1,a,val\n1,2,b,test\n2,2,b,\n"}, r"no labelled training node"),
        ({"edges.csv": "source,target\n0,\n"}, r"column 'target' is empty in line 2"),
        ({"edges.csv": "source\n0\n"}, r"an edge list has two columns of node ids, found 1"),
        ({"edges.csv": ""}, r"edges\.csv: the file is empty"),
        ({"edges.csv": "source,target,weight\n0,1,0.5\n1,2,0\n"}, r"line 3 has 0\.0 \(1 such\).*--unweighted"),
        ({"edges.csv": "source,target,weight\n0,1,0.5\n1,2,-2\n"}, r"line 3 has -2\.0"),
        ({"edges.csv": "source,target,weight\n0,1,\n1,2,1\n"}, r"line 2 has nan"),
        ({"edges.csv": "source,target,weight\n0,1,x\n1,2,1\n"}, r"column 'weight' holds numbers, got 'x' in line 2"),
        ({"labels.csv": "id,label\n0,a\n9,b\n"}, r"1 label\(s\) are of unknown nodes, the first is '9' in line 3"),
        ({"labels.csv": "id,label\n0,a\n0,b\n"}, r"node '0' is listed twice"),
        ({"labels.npy": np.array([0, 1])}, r"one label for each of 3 nodes, got labels of shape \(2,\)"),
        ({"features.npy": np.zeros((2, 2))}, None),
        ({"train_idx.npy": np.array([0]), "val_idx.npy": np.array([5])}, r"entry 0 is 5, but .* from 0 to 2"),
        ({"train_mask.npy": np.ones(2), "val_mask.npy": np.ones(3)}, r"a mask of shape \(3,\), .* got \(2,\)"),
        ({"train_mask.npy": np.array([0, 1, 2]), "val_mask.npy": np.ones(3)}, r"got 2 at node 2; is it a list"),
        ({"train.txt": "0\n", "val.txt": "7\n"}, r"'7' in line 1 is not among the 3 nodes"),
    ],
)  # fmt: skip
def test_faults_are_one_line_with_file_place_and_value(
    write_files: Files, files: dict[str, Any], message: str | None
) -> None:
    nodes = "id,f,label\n0,1,a\n1,2,b\n2,3,a\n"
    folder = write_files({"edges.csv": PATH3, "nodes.csv": nodes, **files})
    data = f"{folder}:features.npy" if message is None else str(folder)
    message = message or r"name an unknown node, the first is '2' in line 3, not among the 2 rows of .*features\.npy"
    with pytest.raises(DataError, match=message) as caught:
        load(data)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_edges_to_unknown_nodes_can_be_dropped(write_files: Files) -> None:
    files = {"edges.csv": "source,target,weight\n0,9,-1\n0,1,2\n", "nodes.csv": "id,f\n0,1\n1,2\n"}
    graph = load(write_files(files), unknown_nodes="drop")
    assert graph.num_edges == 1
    assert "1 edge(s) to unknown nodes dropped" in graph.notes


def test_the_line_of_a_weight_is_right_after_dropping_edges(write_files: Files) -> None:
    files = {"edges.csv": "source,target,weight\n0,9,1\n0,1,-2\n", "nodes.csv": "id,f\n0,1\n1,2\n"}
    with pytest.raises(DataError, match=r"line 3 has -2\.0"):
        load(write_files(files), unknown_nodes="drop")


def test_a_header_of_plain_words_is_noticed_once_the_nodes_are_known(write_files: Files) -> None:
    graph = load(write_files({"edges.csv": "author,friend\nann,bob\n", "nodes.csv": "id,f\nann,1\nbob,2\n"}))
    assert graph.num_edges == 1
    assert any("'author' and 'friend', read as a header" in note for note in graph.notes)
