"""Finding the data set that a name, a path or PATH:NAME means; refusing to guess."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pasca.datasets import load
from search_space.errors import DataError

Writer = Callable[..., Path]
Files = Callable[[dict[str, Any]], Path]
NODES = "id,f1,f2\n0,1,2\n1,3,4\n2,5,6\n"
PATH3 = "source,target\n0,1\n1,2\n"


def test_digits_are_always_there() -> None:
    graph = load("digits")
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (1797, 64, 10)
    assert (graph.split.train.size, graph.split.validation.size, graph.split.test.size) == (50, 200, 1547)
    # Every node has at least its 10 nearest neighbours.
    assert np.diff(graph.adjacency.indptr).min() >= 10


def test_equally_near_digits_are_chosen_by_number_whatever_the_threads() -> None:
    """Whole pixels give many ties; distances here are sums of integers, row by row, in no library's hands."""
    graph = load("digits")
    pixels = graph.features.astype(np.int64)
    edges = set()
    for i, image in enumerate(pixels):
        distances = ((pixels - image) ** 2).sum(axis=1)
        distances[i] = np.iinfo(np.int64).max
        edges |= {(min(i, j), max(i, j)) for j in np.lexsort((np.arange(len(pixels)), distances))[:10].tolist()}
    rows, columns = graph.adjacency.nonzero()
    assert edges == {(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True) if i < j}


def test_nothing_there_is_said() -> None:
    with pytest.raises(DataError, match=r"no such folder or file; .* digits"):
        load("no/such/place")


def test_an_empty_folder_lists_what_could_be_in_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no data set found; pasca reads a Planetoid set"):
        load(tmp_path)


def test_a_name_that_is_not_there_lists_what_is(write_csr: Writer, tmp_path: Path) -> None:
    write_csr()
    with pytest.raises(DataError, match=r"no single data set is called 'other'; choose from: tiny\.npz"):
        load(f"{tmp_path}:other")
    with pytest.raises(DataError, match=r"is a file; PATH:NAME takes a folder"):
        load(f"{tmp_path / 'tiny.npz'}:tiny")


def test_several_sets_are_refused_with_the_list(write_csr: Writer, tmp_path: Path) -> None:
    write_csr()
    write_csr(tmp_path / "other.npz")
    with pytest.raises(DataError, match=rf"choose one as {tmp_path}:NAME, NAME one of other\.npz, tiny\.npz"):
        load(tmp_path)
    assert load(f"{tmp_path}:tiny").name == load(f"{tmp_path}:tiny.npz").name == "tiny"


def test_an_incomplete_planetoid_set_is_not_preferred(write_planetoid: Writer, write_csr: Writer) -> None:
    folder = write_planetoid(test_index=None)
    write_csr()
    with pytest.raises(DataError, match=r"several data sets"):
        load(folder)
    with pytest.raises(DataError, match=r"ind\.tiny\.test\.index is missing"):
        load(f"{folder}:tiny")


def test_two_complete_planetoid_sets_are_a_choice(write_planetoid: Writer) -> None:
    write_planetoid("one")
    folder = write_planetoid("two")
    with pytest.raises(DataError, match=r"NAME one of one, two"):
        load(folder)
    assert load(f"{folder}:two").name == "two"
    assert load(folder / "ind.one.graph").name == "one"


@pytest.mark.parametrize("name", ["swapped", "swapped.csv"])
def test_node_tables_with_features_are_alternatives(write_files: Files, name: str) -> None:
    swapped = "id,f2,f1\n0,2,1\n1,4,3\n2,6,5\n"
    folder = write_files(
        {"edges.csv": PATH3, "train.csv": NODES, "swapped.csv": swapped, "narrow.npy": np.ones((3, 2))}
    )
    with pytest.raises(DataError, match=r"NAME one of swapped\.csv, train\.csv, narrow\.npy"):
        load(folder)
    assert load(f"{folder}:{name}").feature_names == ("f2", "f1")
    assert load(folder / "train.csv").feature_names == ("f1", "f2")
    assert load(folder / "narrow.npy").feature_names is None


def test_names_tie_files_together(write_files: Files) -> None:
    more = NODES + "3,7,8\n"
    folder = write_files(
        {"train_edges.csv": PATH3, "train_nodes.csv": NODES, "new_edges.csv": PATH3, "new_nodes.csv": more}
    )
    assert load(f"{folder}:train").num_nodes == 3
    assert load(f"{folder}:new_edges.csv").num_nodes == 4
    assert load(folder / "new_nodes.csv").num_nodes == 4


def test_files_can_be_named_by_option(write_files: Files, tmp_path: Path) -> None:
    folder = write_files(
        {"links.csv": PATH3, "people.csv": NODES, "kinds.csv": "id,label\n0,a\n1,b\n", "more.npy": np.eye(3)}
    )
    graph = load(folder, edges="links.csv", nodes="people.csv", labels="kinds.csv", features="more.npy")
    assert (graph.num_features, graph.class_names) == (3, ("a", "b"))
    assert load(folder / "links.csv", nodes=tmp_path / "people.csv").feature_names == ("f1", "f2")
    with pytest.raises(DataError, match=r"nobody.csv: no such file, neither in"):
        load(folder, edges="links.csv", nodes="nobody.csv")


def test_a_named_feature_file_keeps_the_other_companions(write_files: Files) -> None:
    files = {
        "edges.csv": PATH3,
        "labels.csv": "id,label\n0,a\n1,b\n",
        "features_a.npy": np.eye(3),
        "features_b.npy": np.ones((3, 1)),
    }
    graph = load(write_files(files), features="features_b.npy")
    assert (graph.num_features, graph.class_names) == (1, ("a", "b"))


def test_unrelated_files_are_left_alone(write_files: Files) -> None:
    files = {
        "edges.csv": PATH3, "README.txt": "Two words\nand more of them here\n", "notes.md": "x",
        "old_to_new.csv": "old,new\n0,1\n", "weird.npz": b"no zip at all", "empty.csv": "",
    }  # fmt: skip
    with pytest.raises(DataError, match=r"NAME one of weird\.npz, edges\.csv"):
        load(write_files(files))
    (write_files({}) / "weird.npz").unlink()
    assert load(write_files({})).num_edges == 2


def test_any_text_can_be_named_as_an_edge_list(write_files: Files) -> None:
    folder = write_files({"friends.csv": "ann,bob\nbob,cy\n"})
    assert load(folder / "friends.csv").num_edges == 2


def test_an_npz_of_another_kind_lists_its_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", one=np.ones(1), two=np.ones(1))
    with pytest.raises(DataError, match=r"expected the arrays adj_data, .*; got one, two"):
        load(tmp_path / "a.npz")


def test_an_object_of_another_kind_is_refused() -> None:
    with pytest.raises(DataError, match=r"a graph is a name, a path, .* got list"):
        load([1, 2])


def test_features_can_be_made_anew(write_csr: Writer) -> None:
    graph = load(write_csr(), features="identity")
    assert np.array_equal(graph.features.toarray(), np.eye(3))
    assert graph.made_features == "identity"
    assert any("features replaced, as asked" in note for note in graph.notes)


def test_weights_that_do_not_exist_cannot_be_asked_for(write_files: Files) -> None:
    with pytest.raises(DataError, match=r"weights were asked for, but its edges have no values"):
        load(write_files({"edges.csv": PATH3}), weighted=True)
