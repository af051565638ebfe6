"""Predictions of a model, written as CSV; and lists of the nodes to predict."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from engines.graph import Graph, Nodes
from search_space.errors import DataError

_ROWS_WRITTEN = 8192
"""Rows of a CSV that are text in memory at a time."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of n nodes; row i of every part belongs to one node.

    Attributes:
        node_ids: (n,) original ids as the source spells them; node numbers where it has none.
        labels: (n,) the most probable class as text, ties to the class listed first.
        probabilities: (n, C) float32; rows sum to one.
        class_names: the C classes, in the order of the columns.
    """

    node_ids: NDArray[np.str_]
    labels: NDArray[np.str_]
    probabilities: NDArray[np.float32]
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)


def write_predictions(predictions: Predictions, path: str | Path, *, probabilities: bool = True) -> Path:
    """Write predictions as CSV: `id`, `label`, and unless left out one column `p_CLASS` for each class.

    Ids and labels stand as the source spells them, quoted where they hold a comma, a quote or a line break.
    Probabilities have the fewest digits that give back the same float32.

    Raises:
        StorageError: it could not be written; an earlier file of that name is untouched.
    """
    from pasca.atomic import new_file

    header = ["id", "label", *(f"p_{name}" for name in predictions.class_names if probabilities)]
    target = Path(path)
    with new_file(target) as file:
        file.write(f"{_csv_lines([header])[0]}\n".encode())
        for first in range(0, len(predictions), _ROWS_WRITTEN):
            rows = slice(first, first + _ROWS_WRITTEN)
            pairs = zip(predictions.node_ids[rows].tolist(), predictions.labels[rows].tolist(), strict=True)
            lines = _csv_lines(pairs)
            if probabilities:
                numbers = _number_lines(predictions.probabilities[rows])
                lines = [f"{line},{number}" for line, number in zip(lines, numbers, strict=True)]
            file.write(("\n".join(lines) + "\n").encode())
    return target


def _csv_lines(rows: Iterable[Sequence[str]]) -> list[str]:
    """Each row as CSV, quoted where it must be; a line may hold line breaks within quotes."""
    lines: list[str] = []
    # what the writer takes for a line's end is what it quotes within one
    csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n").writerows(rows)
    return [line.removesuffix("\r\n") for line in lines]


def _number_lines(numbers: NDArray[np.float32]) -> list[str]:
    """Each row of (n, C) numbers as CSV with the fewest digits, written by a compiled loop."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    columns = [pa.array(column) for column in np.ascontiguousarray(numbers.T)]
    table = pa.table(columns, names=[str(c) for c in range(len(columns))])
    written = io.BytesIO()
    arrow_csv.write_csv(table, written, arrow_csv.WriteOptions(include_header=False))
    return written.getvalue().decode().splitlines()


def read_nodes(path: str | Path, graph: Graph) -> Nodes:
    """Read which nodes to predict: one original id a line, spelled as in the graph's source; empty lines are skipped.

    A first line `id` is a heading, unless a node is called that.

    Returns:
        (n,) node numbers in the order of the file; an id that is listed twice is there twice.
    Raises:
        DataError: the file cannot be read, lists nothing, or names a node that the graph does not have.
    """
    source = Path(path)
    try:
        lines = source.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DataError(f"cannot read {source}: {reason or error}") from None
    places = {str(node_id): number for number, node_id in enumerate(graph.original_ids())}
    asked = [(number, line.removesuffix("\r")) for number, line in enumerate(lines, start=1)]
    asked = [(number, node_id) for number, node_id in asked if node_id]
    if asked and asked[0][1] == "id" and "id" not in places:
        asked = asked[1:]
    if not asked:
        raise DataError(f"{source} lists no node; give one node id a line")
    for number, node_id in asked:
        if node_id not in places:
            raise DataError(f"{source}, line {number}: {graph.name} has no node {node_id!r}")
    return np.asarray([places[node_id] for _, node_id in asked], dtype=np.int64)
