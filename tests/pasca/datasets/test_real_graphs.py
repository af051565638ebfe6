"""Every real graph gives the counts that are published beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pasca.datasets import convert, load, summary

# data, options, nodes, edges, features, classes, labelled, self-loops, isolated, (train, val, test)
TWITCH = 3170
GRAPHS: list[tuple[Any, ...]] = [
    ("cora", {}, 2708, 5278, 1433, 7, 2708, 0, 0, (140, 500, 1000)),
    ("cora", {"split": "9"}, 2708, 5278, 1433, 7, 2708, 0, 0, (1192, 796, 497)),
    ("cora:cora.npz", {}, 2708, 5278, 1433, 7, 2708, 0, 0, (140, 210, 2358)),
    ("cora:cora_planetoid.npz", {}, 2708, 5278, 1433, 7, 2708, 0, 0, (140, 500, 1000)),
    ("cora:cora.content", {}, 2708, 5278, 1433, 7, 2708, 0, 0, (140, 210, 2358)),
    ("citeseer", {}, 3327, 4552, 3703, 6, 3312, 124, 48, (120, 500, 1000)),
    ("citeseer:citeseer.npz", {}, 3312, 4536, 3703, 6, 3312, 124, None, (120, 180, 3012)),
    ("citeseer:citeseer_planetoid.npz", {}, 3327, 4552, 3703, 6, 3312, None, 48, (120, 500, 1000)),
    ("pubmed", {}, 19717, 44324, 500, 3, 19717, 3, 0, (60, 500, 1000)),
    ("pubmed", {"split": "0"}, 19717, 44324, 500, 3, 19717, 3, 0, (9463, 6310, 3944)),
    ("amazon_computers", {}, 13752, 245861, 767, 10, 13752, 0, 281, (200, 300, 13252)),
    ("amazon_photo", {}, 7650, 119081, 745, 8, 7650, 1, 115, (160, 240, 7250)),
    ("coauthor_cs", {}, 18333, 81894, 6805, 15, 18333, 0, 0, (300, 450, 17583)),
    ("coauthor_physics", {}, 34493, 247962, 8415, 5, 34493, 0, 0, (100, 150, 34243)),
    ("blogcatalog", {}, 5196, 171743, 8189, 6, 5196, 0, 0, (120, 180, 4896)),
    ("flickr_social", {}, 7575, 239738, 12047, 9, 7575, 0, 0, (180, 270, 7125)),
    ("chameleon:chameleon.npz", {"split": "3"}, 2277, 31371, 2325, 5, 2277, 0, 0, (1092, 729, 456)),
    ("chameleon:chameleon_filtered.npz", {}, 890, 8854, 2325, 5, 890, 0, 0, (409, 287, 194)),
    ("squirrel:squirrel.npz", {}, 5201, 198353, 2089, 5, 5201, 0, 0, (2496, 1664, 1041)),
    ("squirrel:squirrel_filtered", {}, 2223, 46998, 2089, 5, 2223, 0, 0, (1053, 718, 452)),
    ("actor:actor.npz", {}, 7600, 26659, 932, 5, 7600, 0, 0, (3648, 2432, 1520)),
    ("actor/out1_graph_edges.txt", {"split": "9"}, 7600, 26659, 932, 5, 7600, 93, 0, (3648, 2432, 1520)),
    ("cornell:cornell.npz", {}, 183, 277, 1703, 5, 183, 0, 0, (87, 59, 37)),
    ("cornell/out1_graph_edges.txt", {}, 183, 277, 1703, 5, 183, 3, 0, (87, 59, 37)),
    ("texas:texas.npz", {}, 183, 279, 1703, 5, 183, 0, 0, (87, 59, 37)),
    ("texas:out1_graph_edges.txt", {}, 183, 279, 1703, 5, 183, 16, 0, (87, 59, 37)),
    ("minesweeper", {}, 10000, 39402, 7, 2, 10000, 0, 0, (5000, 2500, 2500)),
    ("tolokers", {"split": "9"}, 11758, 519000, 10, 2, 11758, 0, 0, (5879, 2939, 2940)),
    ("facebook", {}, 22470, 170823, 4714, 4, 22470, 179, None, (80, 120, 22270)),
    ("twitch:DE", {}, 9498, 153138, TWITCH, 2, 9498, 0, None, (40, 60, 9398)),
    ("twitch:ENGB", {}, 7126, 35324, TWITCH, 2, 7126, 0, None, (40, 60, 7026)),
    ("twitch:PTBR", {}, 1912, 31299, TWITCH, 2, 1912, 0, None, (40, 60, 1812)),
    ("github_social", {}, 37700, 289003, 4005, 2, 37700, 0, None, (40, 60, 37600)),
]


@pytest.mark.slow
@pytest.mark.parametrize("row", GRAPHS, ids=[f"{row[0]} {row[1].get('split', '')}".strip() for row in GRAPHS])
def test_counts_are_the_published_ones(pasca_data: Path, row: tuple[Any, ...]) -> None:
    data, options, nodes, edges, features, classes, labelled, self_loops, isolated, sizes = row
    if not (pasca_data / data.split(":")[0].split("/")[0]).exists():
        pytest.skip(f"needs {data}, which this folder of graphs lacks")
    found = summary(load(f"{pasca_data}/{data}", **options))
    expected = {
        "nodes": nodes, "edges": edges, "features": features, "classes": classes, "labelled": labelled,
        "self_loops": self_loops, "isolated": isolated, "train": sizes[0], "val": sizes[1], "test": sizes[2],
        "directed": False, "weighted": False,
    }  # fmt: skip
    assert {key: found[key] for key, value in expected.items() if value is not None} == {
        key: value for key, value in expected.items() if value is not None
    }


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_two_formats_of_one_graph_are_one_graph(pasca_data: Path, name: str) -> None:
    raw, converted = load(pasca_data / name), load(f"{pasca_data}/{name}:{name}_planetoid.npz")
    assert (raw.adjacency != converted.adjacency).nnz == 0
    assert (raw.features != converted.features).nnz == 0
    assert raw.labels.tolist() == converted.labels.tolist()
    assert raw.split.test.tolist() == converted.split.test.tolist()


def test_the_two_files_of_cornell_agree(pasca_data: Path) -> None:
    arrays, texts = load(f"{pasca_data}/cornell:cornell.npz"), load(f"{pasca_data}/cornell:out1")
    assert (arrays.adjacency != texts.adjacency).nnz == 0
    assert (arrays.features != texts.features.toarray()).sum() == 0
    assert arrays.labels.tolist() == texts.labels.tolist()


def test_a_converted_graph_is_the_same_graph(pasca_data: Path, tmp_path: Path) -> None:
    converted = convert(pasca_data / "citeseer", tmp_path / "out")
    for split in ("public", "4"):
        source, opened = load(pasca_data / "citeseer", split=split), load(tmp_path / "out", split=split)
        assert opened.checksum == source.checksum
    assert load(tmp_path / "out", verify=True).checksum == converted.checksum
