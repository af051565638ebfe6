"""MUSAE: three files joined by id, in a folder or in a zip."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pasca.datasets import load
from pasca.datasets.musae import TWITCH_FEATURES
from search_space.errors import DataError

Writer = Callable[..., Path]
TWITCH = "id,days,mature,views,partner,new_id\n77,1,True,1,False,1\n88,2,False,2,False,0\n99,3,True,3,True,2\n"


def test_features_labels_and_edges_meet_by_id(write_musae: Writer) -> None:
    graph = load(write_musae())
    assert graph.features.toarray().tolist() == [
        [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 1], [0, 0, 1, 0, 0],
    ]  # fmt: skip
    assert [graph.class_names[label] for label in graph.labels] == ["a", "a", "b", "b"]
    assert (graph.num_edges, graph.num_self_loops, graph.num_isolated) == (2, 1, 1)
    assert "1 repeated feature number(s) merged" in graph.notes


def test_a_zip_holds_the_same(write_musae: Writer, tmp_path: Path) -> None:
    folder = write_musae()
    plain = load(folder)
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for part in ("edges.csv", "features.json", "target.csv"):
            archive.write(folder / f"musae_tiny_{part}", f"inner/musae_tiny_{part}")
            (folder / f"musae_tiny_{part}").unlink()
    for data in (folder, folder / "set.zip"):
        assert load(data).checksum == plain.checksum


def test_twitch_targets_are_joined_on_the_new_id(write_musae: Writer) -> None:
    graph = load(write_musae(edges="from,to\n0,1\n", features={"0": [0], "2": [3]}, target=TWITCH))
    assert [graph.class_names[label] for label in graph.labels] == ["False", "True", "True"]
    assert graph.num_features == TWITCH_FEATURES


def test_another_label_column_can_be_named(write_musae: Writer) -> None:
    folder = write_musae(edges="from,to\n0,1\n", features={"0": [0]}, target=TWITCH)
    assert load(folder, label_column="partner", for_training=False).labels.tolist() == [0, 0, 1]
    with pytest.raises(DataError, match="none of its columns is colour; name one of id, days"):
        load(folder, label_column="colour")


def test_several_sets_are_chosen_by_name(write_musae: Writer) -> None:
    write_musae("one")
    folder = write_musae("two", edges="id_1,id_2\n0,1\n")
    with pytest.raises(DataError, match=r"several data sets; choose one as .*:NAME, NAME one of one, two"):
        load(folder)
    assert load(f"{folder}:two").num_edges == 1
    assert load(folder / "musae_one_edges.csv").num_edges == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": "id_1,id_2\n0,9\n"}, r"unknown node, the first is '9' in line 2"),
        ({"features": '{"9": [1]}'}, r"key '9' is not among the 4 nodes"),
        ({"features": '{"0": [1.5]}'}, r"key '0' needs a list of feature numbers, got \[1\.5\]"),
        ({"features": '{"0": [-1]}'}, r"key '0' needs a list of feature numbers"),
        ({"features": '{"0": [99999999999]}'}, r"key '0' needs a list of feature numbers"),
        ({"features": '{"0": 3}'}, r"key '0' needs a list of feature numbers, got 3"),
        ({"features": '{"0": []}'}, r"no node has a feature"),
        ({"features": "{}"}, r"no node has a feature"),
        ({"features": "[1, 2]"}, r"expected a json map from node id to feature numbers, got list"),
        ({"features": '{"0": [1, '}, r"not a complete json file"),
        ({"features": "[" * 100_000}, r"not a complete json file"),
        ({"target": "id,page_name,page_type\n0,a,a\n0,b,b\n"}, r"node '0' is listed twice, in line 2 and line 3"),
        ({"target": "key,page_name,page_type\n0,a,a\n"}, r"none of its columns is new_id or id"),
        ({"target": "id,page_name,kind\n0,a,a\n"}, r"none of its columns is mature or .* as label_column"),
    ],
)
def test_faults_are_one_line(write_musae: Writer, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load(write_musae(**changes))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(write_musae: Writer) -> None:
    folder = write_musae()
    (folder / "musae_tiny_target.csv").unlink()
    with pytest.raises(DataError, match=r"musae_tiny_target\.csv is missing"):
        load(folder)
