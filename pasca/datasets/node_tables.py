"""Tables with a row a node: which column is the id, the label, the split, and which are features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.graph import Nodes
from pasca.datasets.ids import Ids, ids_of, repeated
from pasca.datasets.options import LoadOptions
from pasca.datasets.sniff import is_number, plain_name
from pasca.datasets.tables import Table, read_table
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError

ID_NAMES = ("id", "nodeid", "node")
LABEL_NAMES = ("label", "labels", "class", "classlabel", "target", "y", "category")
SPLIT_NAMES = ("split",)
MASK_NAMES = ("trainmask", "valmask", "testmask")
_PARTS = {"train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "test": 2, "testing": 2}


@dataclass(frozen=True)
class Columns:
    """The roles of a node table's columns, by number; None where there is none.

    Attributes:
        masks: the three mask columns, or empty.
        features: all other columns.
    """

    id: int | None
    label: int | None
    split: int | None
    masks: tuple[int, ...]
    features: tuple[int, ...]


def assign_columns(names: tuple[str, ...], file: TextFile, id_column: str | None, label_column: str | None) -> Columns:
    """Give every column of a node table its role by its name.

    Raises:
        DataError: a name appears twice, or a column that was asked for does not exist.
    """
    plain = [plain_name(name) for name in names]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{file}: column {name!r} appears {names.count(name)} times; columns need different names")
    for asked in (id_column, label_column):
        if asked is not None and asked not in names:
            raise DataError(f"{file}: there is no column {asked!r}; choose from: {', '.join(names)}")

    def first(wanted: tuple[str, ...]) -> int | None:
        return next((plain.index(name) for name in wanted if name in plain), None)

    id_number = names.index(id_column) if id_column is not None else first(ID_NAMES)
    if id_number is None and (plain[0].endswith("id") or plain[0] in ("", "index")):
        id_number = 0
    label = names.index(label_column) if label_column is not None else first(LABEL_NAMES)
    masks = tuple(plain.index(name) for name in MASK_NAMES) if set(MASK_NAMES) <= set(plain) else ()
    taken = {id_number, label, first(SPLIT_NAMES), *masks}
    features = tuple(i for i in range(len(names)) if i not in taken)
    return Columns(id_number, label, first(SPLIT_NAMES), masks, features)


@dataclass(frozen=True, eq=False)
class NodeTable:
    """A node table that was read; row i may describe any node."""

    table: Table
    columns: Columns
    ids: Ids | None

    @property
    def num_rows(self) -> int:
        """Rows of the table."""
        return self.table.num_rows

    def labels(self) -> NDArray[np.str_] | None:
        """(rows,) text labels, or None without a label column."""
        return None if self.columns.label is None else self.table.text_array(self.columns.label, missing_ok=True)

    def split_rows(self) -> tuple[Nodes, Nodes, Nodes] | None:
        """The rows that train, validate and test by the split column or the mask columns; None without either."""
        if self.columns.split is not None:
            return self._by_names(self.columns.split)
        if not self.columns.masks:
            return None
        parts = [self._by_mask(column) for column in self.columns.masks]
        return parts[0], parts[1], parts[2]

    def _by_names(self, column: int) -> tuple[Nodes, Nodes, Nodes]:
        texts = np.char.lower(np.char.strip(self.table.text_array(column, missing_ok=True)))
        values, numbers = np.unique(texts, return_inverse=True)
        unknown = [str(value) for value in values if value not in _PARTS and value not in ("", "none", "unlabelled")]
        if unknown:
            row = int(np.flatnonzero(texts == unknown[0])[0])
            raise DataError(
                f"{self.table.file}: a split is train, val, test or empty, got {unknown[0]!r} in "
                f"{self.table.where(row)}"
            )
        part = np.array([_PARTS.get(str(value), -1) for value in values])[numbers.reshape(-1)]
        return np.flatnonzero(part == 0), np.flatnonzero(part == 1), np.flatnonzero(part == 2)

    def _by_mask(self, column: int) -> Nodes:
        texts = np.char.lower(np.char.strip(self.table.text_array(column, missing_ok=True)))
        marked = np.isin(texts, ("1", "true", "1.0", "t", "yes"))
        bad = np.flatnonzero(~marked & ~np.isin(texts, ("0", "false", "0.0", "f", "no", "")))
        if bad.size:
            raise DataError(
                f"{self.table.file}: a mask holds 0 and 1, or true and false, got {str(texts[bad[0]])!r} in "
                f"{self.table.where(int(bad[0]))}"
            )
        return np.flatnonzero(marked)

    def features(self) -> tuple[NDArray[np.float32] | None, tuple[str, ...], list[str]]:
        """(rows, F) features with their names, None where no column holds numbers; and a note on what was left out.

        Raises:
            DataError: a column mixes numbers and other text.
        """
        names = self.table.names or tuple(f"column {i + 1}" for i in range(len(self.table.columns)))
        kept = [i for i in self.columns.features if not self._is_words(i)]
        dropped = [names[i] for i in self.columns.features if i not in kept]
        notes = [f"column(s) {', '.join(dropped)} hold text: no features"] if dropped else []
        if not kept:
            return None, (), notes
        matrix = np.empty((self.num_rows, len(kept)), dtype=np.float32)
        with np.errstate(over="ignore"):
            for place, column in enumerate(kept):
                matrix[:, place] = self.table.numbers(column)
        return matrix, tuple(names[i] for i in kept), notes

    def _is_words(self, column: int) -> bool:
        """Whether a column holds text only; one that mixes text and numbers is left to fail with its line."""
        import pyarrow as pa

        values = self.table.columns[column]
        kind = values.type
        if (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_null(kind)
        ):
            return False
        if not pa.types.is_string(kind) and not pa.types.is_large_string(kind):
            return True
        return not any(is_number(text) for chunk in values.chunks for text in chunk.to_pylist() if text)


def read_node_table(file: TextFile, options: LoadOptions, role: str = "nodes") -> NodeTable:
    """Read a table with a row a node.

    Args:
        role: `nodes`, `labels` or `features`: what the columns of a table without a header are.
    Raises:
        DataError: no header, an id twice, and what reading a table and assigning its columns raise.
    """
    roles: dict[int, bool] = {}

    def is_text(name: str, number: int) -> bool:
        plain = plain_name(name)
        named = (*ID_NAMES, *LABEL_NAMES, *SPLIT_NAMES, *MASK_NAMES)
        roles[number] = plain in named or name in (options.id_column, options.label_column)
        return roles[number] or (number == 0 and (plain.endswith("id") or plain in ("", "index")))

    table = read_table(file, options.encoding, options.header, is_text)
    if table.names is None:
        table = _with_header(table, role)
    columns = assign_columns(table.names or (), file, options.id_column, options.label_column)
    ids = None if columns.id is None else ids_of(table.texts(columns.id))
    if ids is not None:
        check_ids(ids, table)
    return NodeTable(table, columns, ids)


def check_ids(ids: Ids, table: Table) -> None:
    """Refuse an empty id and one that appears twice.

    Raises:
        DataError: names the id and its lines.
    """
    twice = repeated(ids)
    if twice is not None:
        first, again = twice
        raise DataError(
            f"{table.file}: node {ids[first]!r} is listed twice, in {table.where(first)} and {table.where(again)}; "
            "every node has one row"
        )
    if ids.names is not None:
        import pyarrow.compute as pc

        empty = int(pc.index(ids.names, "").as_py())
        if empty >= 0:
            row = int(np.flatnonzero(ids.values == empty)[0])
            raise DataError(f"{table.file}: the node in {table.where(row)} has no id; give it one")


def _with_header(table: Table, role: str) -> Table:
    """Name the columns of a table without a header."""
    width = len(table.columns)
    if role == "features":
        names: tuple[str, ...] = tuple(f"feature_{i}" for i in range(width))
    elif role == "labels" and width <= 2:
        names = ("id", "label")[-width:]
    else:
        raise DataError(f"{table.file}: expected a first line with column names (id, features, label), found none")
    return Table(table.file, names, table.columns, table.dialect)
