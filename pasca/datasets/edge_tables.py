"""Edge tables: two columns of node ids, perhaps a weight; every arc is known by its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pasca.datasets.ids import Ids, NodeIndex, ids_of, ids_of_each
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Arcs
from pasca.datasets.sniff import is_number, plain_name
from pasca.datasets.tables import Table, read_table
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError

WEIGHT_NAMES = ("weight", "weights", "w", "edgeweight", "value")


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """An edge table that was read.

    Attributes:
        sources, targets: ids of the arcs.
        weights: (E',) float64 or None.
        skipped_rows: rows of data left out at the beginning.
        notes: lines for the data summary.
    """

    table: Table
    sources: Ids
    targets: Ids
    weights: NDArray[np.float64] | None
    notes: tuple[str, ...]
    skipped_rows: int = 0

    def without_unnoticed_header(self, index: NodeIndex) -> EdgeTable:
        """Take the first row for a header when it names no node and the second does.

        Two texts over columns of texts cannot be told from an edge until the nodes are known.
        """
        if self.table.names is not None or len(self.sources) < 2 or self.sources.integers is not None:
            return self
        firsts = [self.sources[0], self.targets[0], self.sources[1], self.targets[1]]
        import pyarrow as pa

        found = index.find(ids_of(pa.chunked_array([firsts], type=pa.string()))) >= 0
        if found.tolist() != [False, False, True, True]:
            return self
        return replace(
            self,
            sources=self.sources.without_first(),
            targets=self.targets.without_first(),
            weights=None if self.weights is None else self.weights[1:],
            skipped_rows=1,
            notes=(*self.notes, f"first line of the edges, {firsts[0]!r} and {firsts[1]!r}, read as a header"),
        )

    def arcs(self, index: NodeIndex, described: str, unknown_nodes: str) -> tuple[Arcs, list[str]]:
        """Look the ids up.

        Args:
            described: how messages describe the nodes of the index.
            unknown_nodes: `error` or `drop`.
        Raises:
            DataError: an edge names a node that is not in the index, and nobody asked to drop it.
        """
        sources, targets = index.find(self.sources), index.find(self.targets)
        unknown = np.flatnonzero((sources < 0) | (targets < 0))
        notes = list(self.notes)
        if not unknown.size:
            return Arcs(sources, targets, self.weights, where=self._where(None)), notes
        row = int(unknown[0])
        if unknown_nodes == "error":
            ids = self.sources if sources[row] < 0 else self.targets
            raise DataError(
                f"{self.table.file}: {unknown.size} edge(s) name an unknown node, the first is {ids[row]!r} in "
                f"{self.table.where(row + self.skipped_rows)}, not among {described}; add it, or leave such edges out "
                "with --unknown-nodes drop"
            )
        kept = np.flatnonzero((sources >= 0) & (targets >= 0))
        notes.append(f"{unknown.size} edge(s) to unknown nodes dropped")
        weights = None if self.weights is None else self.weights[kept]
        return Arcs(sources[kept], targets[kept], weights, where=self._where(kept)), notes

    def _where(self, kept: NDArray[np.int64] | None) -> Callable[[int], str]:
        def where(i: int) -> str:
            return self.table.where((i if kept is None else int(kept[i])) + self.skipped_rows)

        return where


def read_edge_table(file: TextFile, options: LoadOptions, *, header: bool | None = None) -> EdgeTable:
    """Read an edge list: two columns of ends; a column called weight, or a third one without a name, weighs.

    Args:
        header: whether the first row names the columns, where the format says so.
    Raises:
        DataError: fewer than two columns, an end without an id, a weight that is no number.
    """
    named = options.header if header is None else header
    table = read_table(file, options.encoding, named, lambda name, i: not _is_weight(name, i))
    if len(table.columns) < 2:
        raise DataError(
            f"{file}: an edge list has two columns of node ids, found {len(table.columns)}; is the delimiter one of "
            "comma, semicolon, tab or space?"
        )
    texts = [table.texts(i) for i in (0, 1)]
    _refuse_empty(table, texts)
    weight = _weight_column(table)
    notes = [] if weight is None else [f"{table.name(weight)} of the edges weighs them; --unweighted ignores it"]
    ignored = [table.name(i) for i in range(2, len(table.columns)) if i != weight]
    if ignored:
        notes.append(f"{', '.join(ignored)} of the edges ignored")
    weights = None if weight is None or options.weighted is False else table.numbers(weight)
    sources, targets = ids_of_each(texts[0], texts[1])
    return EdgeTable(table, sources, targets, weights, tuple(notes))


def _is_weight(name: str, number: int) -> bool:
    return plain_name(name) in WEIGHT_NAMES or (number == 2 and not name)


def _weight_column(table: Table) -> int | None:
    if table.names is not None:
        return next((i for i in range(2, len(table.columns)) if plain_name(table.names[i]) in WEIGHT_NAMES), None)
    if len(table.columns) != 3 or table.dialect is None:
        return None
    # NetworkX writes an empty dict after each edge.
    return 2 if all(len(row) > 2 and is_number(row[2]) for row in table.dialect.sample[:1]) else None


def _refuse_empty(table: Table, columns: list[object]) -> None:
    import pyarrow.compute as pc

    for number, values in enumerate(columns):
        row = int(pc.index(values, "").as_py())
        if row >= 0:
            raise DataError(f"{table.file}: {table.name(number)} is empty in {table.where(row)}; an edge has two ends")
