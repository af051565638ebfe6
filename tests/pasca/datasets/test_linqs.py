"""linqs: content and cites, ids of any kind, an arc from the citing paper."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pasca.datasets import load
from search_space.errors import DataError

Files = Callable[[dict[str, Any]], Path]
CONTENT = "35\t1\t0\tAI\nx1\t0\t1\tDB\n007\t0\t0\tAI\n"
CITES = "35\tx1\n007\t35\n35\tx1\n"


@pytest.mark.parametrize("zipped", [False, True])
def test_papers_and_citations_are_read(write_files: Files, zipped: bool) -> None:
    content: Any = gzip.compress(CONTENT.encode()) if zipped else CONTENT
    graph = load(write_files({f"set.content{'.gz' if zipped else ''}": content, "set.cites": CITES}))
    assert graph.original_ids().tolist() == ["35", "x1", "007"]
    assert graph.features.toarray().tolist() == [[1, 0], [0, 1], [0, 0]]
    assert (graph.class_names, graph.labels.tolist()) == (("AI", "DB"), [0, 1, 0])
    assert graph.num_edges == 2


def test_the_cited_paper_gathers_from_the_citing_one(write_files: Files) -> None:
    graph = load(write_files({"set.content": CONTENT, "set.cites": "35\tx1\n"}), directed=True)
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("content", "cites", "message"),
    [
        (CONTENT, "35\tghost\n", r"set\.cites: 1 edge\(s\) name an unknown node, the first is 'ghost' in line 1"),
        (CONTENT + "9\t1\tAI\n", CITES, r"expected 4 fields in every row, got 3 in line 4"),
        (CONTENT + "35\t1\t0\tAI\n", CITES, r"node '35' is listed twice, in line 1 and line 4"),
        ("a\t1\tz\tAI\nb\t0\t1\tAI\n", CITES, r"column 3 holds numbers, got 'z' in line 1"),
        ("a\tAI\n", CITES, r"expected an id, features and a label in every row"),
    ],
)
def test_faults_name_their_line(write_files: Files, content: str, cites: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(write_files({"set.content": content, "set.cites": cites}))


def test_citations_of_unknown_papers_can_be_dropped(write_files: Files) -> None:
    folder = write_files({"set.content": CONTENT, "set.cites": CITES + "ghost\t35\n"})
    assert load(folder, unknown_nodes="drop").num_edges == 2


def test_a_missing_half_is_named(write_files: Files) -> None:
    with pytest.raises(DataError, match=r"set\.cites is missing"):
        load(write_files({"set.content": CONTENT}))
