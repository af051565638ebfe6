"""Delimiters, comments and headers, found out from the beginning of a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pasca.datasets.sniff import is_number, sniff
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError


def write(tmp_path: Path, content: str, name: str = "t.csv") -> TextFile:
    (tmp_path / name).write_text(content)
    return TextFile(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "delimiter"),
    [
        ("t.csv", "a,b\n", ","),
        ("t.csv", "a;b\n", ";"),
        ("t.csv", "a\tb\n", "\t"),
        ("t.tsv", "a\tb, c\n", "\t"),
        ("t.txt", "a b\n", " "),
        ("t.edgelist", "a,b\n", ","),
    ],
)
def test_the_delimiter_follows_the_suffix_and_the_first_row(
    tmp_path: Path, name: str, content: str, delimiter: str
) -> None:
    assert sniff(write(tmp_path, content, name), "utf-8", None).delimiter == delimiter


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("source,target\na,b\n", ("source", "target")),
        ("From, To\n1,2\n", ("From", "To")),
        ("author,friend\n1,2\n3,4\n", ("author", "friend")),
        ("id,f1,label\nx,y,z\n", ("id", "f1", "label")),
        ("1,2\n3,4\n", None),
        ("a,b\nb,c\n", None),
        ("author,friend\nann,bob\n", None),
    ],
)
def test_a_header_is_known_by_its_names_or_by_numbers_below_it(
    tmp_path: Path, content: str, names: tuple[str, ...] | None
) -> None:
    assert sniff(write(tmp_path, content), "utf-8", None).names == names


def test_a_header_can_be_stated(tmp_path: Path) -> None:
    file = write(tmp_path, "author,friend\nann,bob\n")
    assert sniff(file, "utf-8", True).names == ("author", "friend")
    assert sniff(write(tmp_path, "source,target\n", "u.csv"), "utf-8", False).names is None


def test_leading_comments_are_skipped(tmp_path: Path) -> None:
    text = "# Directed graph: x.txt\n# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n\n1\t2\n2\t3\n"
    found = sniff(write(tmp_path, text, "t.txt"), "utf-8", None)
    assert (found.skip_lines, found.num_comments, found.sample) == (4, 3, (("1", "2"), ("2", "3")))


def test_an_id_with_a_comment_sign_is_no_comment(tmp_path: Path) -> None:
    found = sniff(write(tmp_path, "#1,#2\n#2,#3\n"), "utf-8", None)
    assert found.skip_lines == 0
    assert found.sample == (("#1", "#2"), ("#2", "#3"))


@pytest.mark.parametrize("content", ["", "\n\n", "   \n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(DataError, match="the file is empty"):
        sniff(write(tmp_path, content), "utf-8", None)


@pytest.mark.parametrize(
    ("text", "expected"), [("1", True), (" -2.5e3 ", True), ("nan", True), ("1_0", False), ("", False)]
)
def test_numbers_are_known(text: str, expected: bool) -> None:
    assert is_number(text) is expected
