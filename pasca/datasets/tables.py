"""Tables of any size from delimited text and parquet, read by pyarrow; faults are named by line."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pasca.datasets.sniff import Dialect, sniff
from pasca.datasets.text_files import DAMAGE, TextFile, damaged, undecodable
from search_space.errors import DataError

if TYPE_CHECKING:
    pass

# Parquet stores a repeated value once, so the number of cells, not the file's size, bounds the memory.
_MAX_PARQUET_CELLS_PER_BYTE = 200
_HARMLESS_CELLS = 100_000_000
MAX_TEXT = 512


@dataclass(frozen=True, eq=False)
class Table:
    """A table of a file.

    Attributes:
        file: for messages.
        names: of the columns; distinct only where `unique` was asked for. None without a header.
        columns: one pyarrow ChunkedArray a column.
        dialect: of a delimited text, None for parquet.
    """

    file: TextFile
    names: tuple[str, ...] | None
    columns: tuple[Any, ...]
    dialect: Dialect | None

    @property
    def num_rows(self) -> int:
        """Rows of data."""
        return len(self.columns[0])

    def name(self, column: int) -> str:
        """How messages name a column."""
        return f"column {column + 1}" if self.names is None else f"column {self.names[column]!r}"

    def where(self, row: int) -> str:
        """The place of a row of data in the file: its line, blank lines counted."""
        if self.dialect is None:
            return f"row {row}"
        with self.file.open() as stream:
            filled = -1
            for number, line in enumerate(stream, start=1):
                filled += number > self.dialect.skip_lines and bool(line.strip(b"\r\n"))
                if filled == row:
                    return f"line {number}"
        return f"row {row}"

    def texts(self, column: int, *, missing_ok: bool = False) -> Any:
        """A column as a ChunkedArray of strings, without nulls.

        Raises:
            DataError: a value is null, or longer than a name should be.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self.columns[column]
        if missing_ok:
            values = values.cast(pa.string()).fill_null("")
        if values.null_count:
            row = int(pc.index(values.is_null(), True).as_py())
            raise DataError(f"{self.file}: {self.name(column)} has no value in {self.where(row)}; fill it in")
        if not pa.types.is_string(values.type):
            values = values.cast(pa.string())
        longest = pc.max(pc.binary_length(values)).as_py() if len(values) else 0
        if longest and longest > MAX_TEXT:
            row = int(pc.index(pc.equal(pc.binary_length(values), longest), True).as_py())
            raise DataError(
                f"{self.file}: names have at most {MAX_TEXT} bytes, but {self.name(column)} has {longest} in "
                f"{self.where(row)}; is it the right column?"
            )
        return values

    def text_array(self, column: int, *, missing_ok: bool = False) -> NDArray[np.str_]:
        """A column as (rows,) text; with `missing_ok` a missing value is an empty text."""
        texts = self.texts(column, missing_ok=missing_ok)
        return np.array(texts.to_pylist(), dtype=np.str_)

    def numbers(self, column: int) -> NDArray[np.float64]:
        """A column as (rows,) float64; an empty field is NaN.

        Raises:
            DataError: names the first field that is no number.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self.columns[column]
        if pa.types.is_null(values.type):
            return np.full(len(values), np.nan)
        if pa.types.is_string(values.type):
            trimmed = pc.utf8_trim_whitespace(values)
            values = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
        try:
            # Not the safe cast, which refuses integers that float64 rounds.
            return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        except pa.ArrowException:
            texts = values.cast(pa.string()).to_pylist()
            row = next((i for i, text in enumerate(texts) if text is not None and not _is_float(text)), None)
            if row is None:
                raise DataError(f"{self.file}: {self.name(column)} holds {values.type}, expected numbers") from None
            raise DataError(
                f"{self.file}: {self.name(column)} holds numbers, got {texts[row][:40]!r} in {self.where(row)}"
            ) from None


def read_table(
    file: TextFile, encoding: str, header: bool | None, is_text: Callable[[str, int], bool] = lambda name, i: True
) -> Table:
    """Read a whole table.

    Args:
        header: whether the first row names the columns; None decides by its content.
        is_text: given name and number of a column, whether its fields are text whatever they look like; the others
            become numbers where all their fields are numbers.
    Raises:
        DataError: ragged rows, an unreadable encoding, a damaged file, nothing in it.
    """
    if file.suffix in (".parquet", ".pq"):
        return _read_parquet(file)
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    dialect = sniff(file, encoding, header)
    labels = [f"{i}" for i in range(dialect.num_columns)]
    names = dialect.names or ("",) * dialect.num_columns
    types = {label: pa.string() for i, label in enumerate(labels) if is_text(names[i], i)}
    try:
        with file.open() as stream:
            table = arrow_csv.read_csv(
                pa.PythonFile(stream, mode="r") if file.member or file.path.suffix.lower() == ".gz" else str(file.path),
                arrow_csv.ReadOptions(
                    skip_rows=dialect.skip_lines, column_names=labels, encoding=encoding, block_size=1 << 23
                ),
                arrow_csv.ParseOptions(delimiter=dialect.delimiter),
                arrow_csv.ConvertOptions(column_types=types, strings_can_be_null=False, timestamp_parsers=[]),
            )
    except DAMAGE as error:
        raise damaged(file, error) from None
    except UnicodeDecodeError:
        raise undecodable(file, encoding) from None
    except (pa.ArrowException, OSError) as error:
        raise _explain(file, encoding, dialect, error) from None
    if any(pa.types.is_binary(column.type) for column in table.columns):
        # What looks like text but does not decode comes back as bytes where the type was left open.
        raise undecodable(file, encoding)
    return Table(file, dialect.names, tuple(table.columns), dialect)


def columns_of(file: TextFile, encoding: str, header: bool | None) -> tuple[str, ...] | None:
    """The column names of a table, without reading its rows; None without a header."""
    if file.suffix in (".parquet", ".pq"):
        return _parquet_file(file)[1]
    return sniff(file, encoding, header).names


def _explain(file: TextFile, encoding: str, dialect: Dialect, error: Exception) -> DataError:
    """Find the line that the fast reader stumbled over, which it does not name itself."""
    import pyarrow as pa

    if isinstance(error, pa.ArrowNotImplementedError):
        return DataError(f"{file}: cannot be read ({_first_line(error)})")
    skipped = dialect.skip_lines
    rows = (line for number, line in file.lines(encoding) if number > skipped)
    reader = csv.reader(rows, delimiter=dialect.delimiter, strict=True)
    try:
        for fields in reader:
            if fields and len(fields) != dialect.num_columns:
                return DataError(
                    f"{file}: expected {dialect.num_columns} fields in every row, got {len(fields)} in line "
                    f"{skipped + reader.line_num}; mend the row, or quote fields that contain {dialect.delimiter!r}"
                )
    except csv.Error as fault:
        return DataError(f"{file}: line {skipped + reader.line_num} cannot be read ({fault})")
    return DataError(f"{file}: cannot be read as a table ({_first_line(error)})")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _parquet_file(file: TextFile) -> tuple[Any, tuple[str, ...]]:
    """An opened parquet file and its column names, which may be damaged too."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(file.path)
        names = tuple(map(str, opened.schema_arrow.names))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: not a complete parquet file ({_first_line(error)}); fetch it again") from None
    return opened, names


def _read_parquet(file: TextFile) -> Table:
    import pyarrow as pa

    opened, names = _parquet_file(file)
    cells, size = opened.metadata.num_rows * opened.metadata.num_columns, Path(file.path).stat().st_size
    if cells > _HARMLESS_CELLS and cells > _MAX_PARQUET_CELLS_PER_BYTE * size:
        raise DataError(f"{file}: {size} bytes claim to hold {cells} cells; inspect the file yourself if you trust it")
    try:
        table = opened.read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: not a complete parquet file ({_first_line(error)}); fetch it again") from None
    if not table.num_columns:
        raise DataError(f"{file}: the table has no columns")
    return Table(file, names, tuple(_plain(column, file) for column in table.columns), None)


def _plain(column: Any, file: TextFile) -> Any:
    """A parquet column without dictionaries, its texts as strings."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_nested(kind):
        raise DataError(f"{file}: a column holds {kind}, but a cell of a table is one value; spread it over columns")
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        try:
            return column.cast(pa.string())
        except pa.ArrowException as error:
            raise DataError(f"{file}: a column holds bytes that are no utf-8 text ({_first_line(error)})") from None
    return column
