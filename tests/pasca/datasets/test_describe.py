"""The data summary: its keys, and what they count."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pasca.datasets import load, summary, summary_lines

Writer = Callable[..., Path]
Files = Callable[[dict[str, Any]], Path]


def test_the_summary_counts_what_was_read(write_planetoid: Writer) -> None:
    found = summary(load(write_planetoid()))
    expected = {
        "name": "tiny", "nodes": 6, "edges": 4, "features": 4, "classes": 2, "labelled": 5, "train": 2, "val": 1,
        "test": 2, "self_loops": 1, "isolated": 1, "directed": False, "weighted": False, "split": "public",
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    assert json.loads(json.dumps(found)) == found


def test_edges_of_a_directed_graph_are_pairs_beside_its_arcs(write_csr: Writer) -> None:
    found = summary(load(write_csr(), directed=True))
    assert (found["edges"], found["arcs"]) == (2, 3)


def test_the_lines_state_what_was_decided(write_files: Files) -> None:
    files = {
        "edges.csv": "source,target,weight\na,b,1\nb,a,3\na,a,1\nb,c,2\nb,c,2\n",
        "labels.csv": "id,label\na,x\nb,y\nc,y\n",
    }
    text = "\n".join(summary_lines(load(write_files(files))))
    for part in (
        "3 nodes, 2 edges, undirected, weighted; 0 isolated, 1 self-loops dropped",
        "2 dense, degree made from the structure",
        "2 classes, 3 nodes labelled",
        "1 edge(s) had two different weights, averaged",
        "1 repeated arc(s) merged, their weights added up",
        "--directed keeps directions",
        "too few labels, so a smaller share for class 'x' (1 labels) 1/0",
    ):
        assert part in text
