"""Texts as streams: gzip and zip members, encodings, and files that break off."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from pasca.datasets import text_files
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError


def test_plain_gzipped_and_zipped_texts_read_alike(tmp_path: Path) -> None:
    content = b"a,b\n1,2\n"
    (tmp_path / "t.csv").write_bytes(content)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content))
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("inner/t.csv", content)
    files = [TextFile(tmp_path / "t.csv"), TextFile(tmp_path / "t.csv.gz"), TextFile(tmp_path / "t.zip", "inner/t.csv")]
    for file in files:
        assert list(file.lines("utf-8")) == [(1, "a,b"), (2, "1,2")]
        assert file.suffix == ".csv"
        assert file.head(3) == b"a,b"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_other_encodings_are_decoded(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.csv").write_bytes("é,ü\n".encode(encoding))
    assert list(TextFile(tmp_path / "t.csv").lines(encoding)) == [(1, "é,ü")]


@pytest.mark.parametrize("line", [1, 2, 5000])
def test_the_first_undecodable_line_is_named(tmp_path: Path, line: int) -> None:
    (tmp_path / "t.csv").write_bytes(b"abc\n" * (line - 1) + b"caf\xe9\nmore\n")
    with pytest.raises(DataError, match=rf"byte 0xe9 in line {line} is no utf-8 text; .*--encoding"):
        list(TextFile(tmp_path / "t.csv").lines("utf-8"))


def test_a_text_that_ends_inside_a_character_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("aé".encode()[:-1])
    with pytest.raises(DataError, match="utf-8"):
        list(TextFile(tmp_path / "t.csv").lines("utf-8"))


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_a_truncated_gzip_is_one_line(tmp_path: Path, share: float) -> None:
    content = gzip.compress(b"".join(b"%d,%d\n" % (i, i * i) for i in range(5000)))
    (tmp_path / "t.csv.gz").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match=r"t\.csv\.gz is damaged or cut off"):
        list(TextFile(tmp_path / "t.csv.gz").lines("utf-8"))


def test_something_else_under_a_gzip_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(b"0,1\n1,2\n")
    with pytest.raises(DataError, match="damaged or cut off"):
        TextFile(tmp_path / "t.csv.gz").head(10)


def test_a_gzip_bomb_stops_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "HARMLESS_BYTES", 1 << 20)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"0,1 " * (1 << 20)))  # 4 MiB from 4 KB
    with pytest.raises(DataError, match="over 200 times its size"):
        list(TextFile(tmp_path / "t.csv.gz").lines("utf-8"))
