"""Find out how a delimited text is laid out: delimiter, leading comments, header."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from pasca.datasets.text_files import TextFile
from search_space.errors import DataError

# Pairs of column names that edge tables use, in lower case without anything but letters and digits.
# No single letters: in a small list without a header, `a,b` is an edge.
EDGE_HEADERS = {
    ("source", "target"), ("src", "dst"), ("from", "to"), ("src", "dest"), ("source", "destination"), ("start", "end"),
    ("id1", "id2"), ("node1", "node2"), ("nodeid", "nodeid"), ("head", "tail"), ("fromnodeid", "tonodeid"),
    ("sourceid", "targetid"), ("srcid", "dstid"), ("nodeid1", "nodeid2"), ("row", "col"), ("user1", "user2"),
    ("fromid", "toid"), ("citing", "cited"), ("cited", "citing"), ("node", "neighbor"), ("node", "neighbour"),
    ("sourcenode", "targetnode"), ("startid", "endid"), ("follower", "followee"),
}  # fmt: skip
_HEAD_BYTES = 1 << 18
_DELIMITERS = {".csv": ",;\t", ".tsv": "\t,;"}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(nan|inf(inity)?)", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How a delimited text is laid out.

    Attributes:
        delimiter: one character.
        skip_lines: lines before the first row of data: comments, blank lines, the header.
        names: column names from the header, or None without one.
        num_columns: fields of the first row.
        num_comments: comment lines skipped.
        sample: the first rows of data.
    """

    delimiter: str
    skip_lines: int
    names: tuple[str, ...] | None
    num_columns: int
    num_comments: int
    sample: tuple[tuple[str, ...], ...]


def plain_name(name: str) -> str:
    """A column name in lower case without anything but letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def is_number(text: str) -> bool:
    """Whether a field spells a number."""
    return _NUMBER.fullmatch(text.strip()) is not None


def sniff(file: TextFile, encoding: str, header: bool | None) -> Dialect:
    """Look at the beginning of a text.

    Args:
        header: whether the first row names the columns; None decides by its content.
    Raises:
        DataError: there is no line, or the beginning cannot be read.
    """
    head = file.head(_HEAD_BYTES).decode(encoding, errors="replace").removeprefix("\ufeff")
    lines = head.splitlines() if len(head) < _HEAD_BYTES else head.splitlines()[:-1] or [head]
    numbered = [(number, line) for number, line in enumerate(lines[:1000]) if line.strip()]
    first = next((i for i, (_, line) in enumerate(numbered) if not line.startswith(("#", "%"))), len(numbered))
    if not numbered:
        raise DataError(f"{file}: the file is empty; expected rows of a table")
    if first == len(numbered):
        first = 0
    delimiter = _delimiter(file.suffix, numbered[first][1])
    # A line that starts with # or % is a comment unless it looks like the rows: ids may start with such a sign.
    while first and _looks_like_a_row(numbered[first - 1][1], numbered[first][1], delimiter):
        first -= 1
    rows = [
        tuple(fields) for fields in csv.reader((line for _, line in numbered[first : first + 100]), delimiter=delimiter)
    ]
    named = _is_header(rows) if header is None else header
    start = first + 1 if named else first
    skip = numbered[start][0] if start < len(numbered) else numbered[-1][0] + 1
    return Dialect(
        delimiter=delimiter,
        skip_lines=skip,
        names=tuple(name.strip() for name in rows[0]) if named else None,
        num_columns=len(rows[0]),
        num_comments=first,
        sample=tuple(rows[1:] if named else rows),
    )


def _delimiter(suffix: str, line: str) -> str:
    return next((sign for sign in _DELIMITERS.get(suffix, "\t,; ") if sign in line), ",")


def _looks_like_a_row(line: str, row: str, delimiter: str) -> bool:
    """Whether a line that starts with a comment sign is data: as many fields, and no header behind the sign."""
    fields = line.split(delimiter)
    names = tuple(plain_name(name) for name in fields[:2])
    return len(fields) == len(row.split(delimiter)) and names not in EDGE_HEADERS


def _is_header(rows: list[tuple[str, ...]]) -> bool:
    names = [plain_name(name) for name in rows[0]]
    if tuple(names[:2]) in EDGE_HEADERS or any(name in ("id", "nodeid", "label", "split") for name in names):
        return True
    if any(is_number(field) or not field.strip() for field in rows[0]):
        return False
    others = [row for row in rows[1:] if len(row) == len(names)]
    return any(all(is_number(row[i]) for row in others) for i in range(len(names))) if others else False
