"""Predictions on disk spell ids and labels as their sources do, and lists of nodes name them."""

from __future__ import annotations

import csv
import os
import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engines.graph import Graph
from pasca.predictions import Predictions, read_nodes, write_predictions
from search_space.errors import DataError, StorageError

IDS = [
    "a#1",
    "007",
    "7",
    "NA",
    "null",
    "1e5",
    "100000",
    'say "x", y',
    "two\nlines",
    "re\rturn",
    "tail\r\n",
    " spaced ",
    "=1+1",
    "",
]


def predictions(ids: list[str]) -> Predictions:
    n = len(ids)
    raw = np.random.default_rng(0).random((n, 2), dtype=np.float32)
    raw[0] = (1.0, 1e-30)
    probabilities = raw / raw.sum(axis=1, keepdims=True)
    names = ("x,1", "label")
    labels = np.asarray(names)[probabilities.argmax(axis=1)]
    return Predictions(np.asarray(ids), labels, probabilities, names)


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_ids_labels_and_probabilities_come_back_exactly(tmp_path: Path) -> None:
    made = predictions(IDS)
    header, *rows = read(write_predictions(made, tmp_path / "labels.csv"))
    assert header == ["id", "label", "p_x,1", "p_label"]
    assert [row[0] for row in rows] == IDS
    assert [row[1] for row in rows] == made.labels.tolist()
    np.testing.assert_array_equal(np.asarray([row[2:] for row in rows]).astype(np.float32), made.probabilities)


def test_plain_ids_stand_unquoted_and_probabilities_are_short(tmp_path: Path) -> None:
    made = Predictions(np.asarray(["007"]), np.asarray(["x"]), np.asarray([[0.75, 0.25]], np.float32), ("x", "y"))
    path = write_predictions(made, tmp_path / "labels.csv")
    assert path.read_bytes() == b"id,label,p_x,p_y\n007,x,0.75,0.25\n"


def test_probabilities_can_be_left_out(tmp_path: Path) -> None:
    made = predictions(["u", "v"])
    rows = read(write_predictions(made, tmp_path / "labels.csv", probabilities=False))
    assert rows == [["id", "label"], ["u", made.labels[0]], ["v", made.labels[1]]]


def test_many_rows_are_written_in_order(tmp_path: Path) -> None:
    made = predictions([f"n{i}" for i in range(20_001)])
    rows = read(write_predictions(made, tmp_path / "labels.csv"))
    assert [row[0] for row in rows[1:]] == made.node_ids.tolist()


def test_a_full_disk_keeps_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("before")
    _, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StorageError, match=r"cannot write .*labels.csv: File too large"):
            write_predictions(predictions(IDS * 10), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["labels.csv"]


def test_nodes_are_listed_one_id_a_line_in_any_order(tmp_path: Path, named_graph: Graph) -> None:
    path = tmp_path / "nodes.txt"
    path.write_bytes(b"\xef\xbb\xbfid\r\nn007\r\n\r\nn059\r\nn007\r\n")
    assert read_nodes(path, named_graph).tolist() == [7, 59, 7]


def test_nodes_without_ids_are_listed_by_number(tmp_path: Path, named_graph: Graph) -> None:
    path = tmp_path / "nodes.txt"
    path.write_text("3\n0")
    assert read_nodes(path, replace(named_graph, node_ids=None)).tolist() == [3, 0]


def test_ids_are_compared_as_text(tmp_path: Path, named_graph: Graph) -> None:
    ids = np.asarray(["007", "7", "id", " x", *(f"n{i}" for i in range(56))])
    path = tmp_path / "nodes.txt"
    path.write_text("id\n7\n007\n x\n")
    assert read_nodes(path, replace(named_graph, node_ids=ids)).tolist() == [2, 1, 0, 3]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"n001\n\nn060\n", "nodes.txt, line 3: small has no node 'n060'"),
        (b"id\n", "lists no node; give one node id a line"),
        (b"\xff", "cannot read .*nodes.txt: it is not UTF-8 text"),
        (None, "cannot read .*nodes.txt: No such file"),
    ],
)
def test_a_list_that_names_no_node_is_refused(
    tmp_path: Path, named_graph: Graph, content: bytes | None, message: str
) -> None:
    path = tmp_path / "nodes.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_nodes(path, named_graph)
