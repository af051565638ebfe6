"""Tables: exact texts, numbers, and faults named by their line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pasca.datasets.tables import Table, read_table
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError


def read(tmp_path: Path, content: str | bytes, name: str = "t.csv", **options: object) -> Table:
    data = content.encode() if isinstance(content, str) else content
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return read_table(TextFile(tmp_path / name), str(options.get("encoding", "utf-8")), None)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_texts_are_what_the_file_says(tmp_path: Path, name: str) -> None:
    table = read(tmp_path, 'id,label\n007,NA\nnull,"a,b"\n1e5, x\n', name)
    assert table.text_array(0).tolist() == ["007", "null", "1e5"]
    assert table.text_array(1).tolist() == ["NA", "a,b", " x"]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    table = read(tmp_path, b"\xef\xbb\xbfid,label\n1,a\n")
    assert table.names == ("id", "label")
    assert table.text_array(0).tolist() == ["1"]


def test_other_encodings_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, "id,label\né,ü\n".encode("latin-1"), encoding="latin-1").text_array(0).tolist() == ["é"]


def test_an_unreadable_encoding_names_line_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"t\.csv: byte 0xe9 in line 3 is no utf-8 text.*--encoding"):
        read(tmp_path, b"id,label\na,b\n\xe9,c\n")


@pytest.mark.parametrize(
    ("content", "line", "got"), [("id,label\n1,a\n2\n3,c\n", 3, 1), ("id,label\n\n1,a\n2,b,c\n", 4, 3)]
)
def test_a_ragged_row_is_named(tmp_path: Path, content: str, line: int, got: int) -> None:
    with pytest.raises(DataError, match=rf"expected 2 fields in every row, got {got} in line {line}"):
        read(tmp_path, content)


def test_lines_are_counted_with_blank_ones_and_header(tmp_path: Path) -> None:
    table = read(tmp_path, "# a comment\nsource,target\n1,2\n\n3,4\n")
    assert [table.where(0), table.where(1)] == ["line 3", "line 5"]


def test_a_field_that_is_no_number_names_its_line(tmp_path: Path) -> None:
    table = read(tmp_path, "source,target,w\n1,2,0.5\n1,3,\n2,3,much\n")
    with pytest.raises(DataError, match=r"column 'w' holds numbers, got 'much' in line 4"):
        table.numbers(2)


def test_empty_fields_are_nan_as_numbers(tmp_path: Path) -> None:
    numbers = read(tmp_path, "source,target,w\n1,2,0.5\n1,3,\n").numbers(2)
    assert numbers[0] == 0.5
    assert np.isnan(numbers[1])


@pytest.mark.parametrize("share", [0.3, 0.95])
def test_a_truncated_gzip_is_one_line(tmp_path: Path, share: float) -> None:
    content = gzip.compress(b"source,target\n" + b"".join(b"%d,%d\n" % (i, i * 7 % 1000) for i in range(3000)))
    (tmp_path / "t.csv.gz").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match="damaged or cut off"):
        read_table(TextFile(tmp_path / "t.csv.gz"), "utf-8", None)


def test_parquet_columns_keep_types_and_names(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": ["x", "y"], "f": [1.5, 2.5], "k": pa.array(["u", "u"]).dictionary_encode()}),
                        tmp_path / "t.parquet")  # fmt: skip
    table = read_table(TextFile(tmp_path / "t.parquet"), "utf-8", None)
    assert table.names == ("id", "f", "k")
    assert table.numbers(1).tolist() == [1.5, 2.5]
    assert table.text_array(2).tolist() == ["u", "u"]


def test_a_parquet_null_id_names_its_row(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": ["x", None]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"column 'id' has no value in row 1"):
        read_table(TextFile(tmp_path / "t.parquet"), "utf-8", None).texts(0)


def test_a_truncated_parquet_is_one_line(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": list(range(1000))}), tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"t\.parquet: not a complete parquet file"):
        read_table(TextFile(tmp_path / "t.parquet"), "utf-8", None)


def test_an_endless_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"at most 512 bytes, but column 'label' has 600 in line 3"):
        read(tmp_path, "id,label\n1,a\n2," + "b" * 600 + "\n").texts(1)


def test_bytes_in_a_column_of_open_type_are_an_encoding_fault(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"id,f\n1,2\n2,\xe9\n")
    with pytest.raises(DataError, match=r"byte 0xe9 in line 3 is no utf-8 text"):
        read_table(TextFile(tmp_path / "t.csv"), "utf-8", None, lambda name, i: i == 0)


def test_parquet_texts_of_other_types_are_strings(tmp_path: Path) -> None:
    texts = pa.table({"a": pa.array([b"x"]), "b": pa.array(["y"], type=pa.large_string())})
    parquet.write_table(texts, tmp_path / "t.parquet")
    table = read_table(TextFile(tmp_path / "t.parquet"), "utf-8", None)
    assert [table.text_array(0).tolist(), table.text_array(1).tolist()] == [["x"], ["y"]]
    parquet.write_table(pa.table({"a": pa.array([b"\xff"])}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"bytes that are no utf-8 text"):
        read_table(TextFile(tmp_path / "t.parquet"), "utf-8", None)


@pytest.mark.parametrize("nested", [pa.array([[1], [2, 3]]), pa.array([{"a": 1}, {"a": 2}])])
def test_a_parquet_cell_is_one_value(tmp_path: Path, nested: pa.Array) -> None:
    parquet.write_table(pa.table({"id": ["x", "y"], "f": nested}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet: a column holds (list|struct)<.*a cell of a table is one value"):
        read_table(TextFile(tmp_path / "t.parquet"), "utf-8", None)


def test_integers_past_what_float64_holds_are_rounded(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"f": [2**53 + 1, 10**18]}), tmp_path / "t.parquet")
    assert read_table(TextFile(tmp_path / "t.parquet"), "utf-8", None).numbers(0).tolist() == [2.0**53, 1e18]


def test_durations_are_no_numbers(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"f": pa.array([1, 2], pa.duration("s"))}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"column 'f' holds duration"):
        read_table(TextFile(tmp_path / "t.parquet"), "utf-8", None).numbers(0)
