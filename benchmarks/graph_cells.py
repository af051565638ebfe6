"""The cells of NAS-Bench-Graph as a space of the search engine, with their measured tables.

A cell has four operations out of nine and one of nine link patterns, which say for each operation whether it reads the
cell's input (0) or what an earlier operation gives (1 to 3). What no operation reads is the cell's output. Many pairs
of pattern and operations are the same cell; the package `nas-bench-graph` gives equal cells an equal hash, and a space
lists each hash once: 26,206 cells.

Source: Qin, Zhang, Wang, Zhang & Zhu 2022, NAS-Bench-Graph: Benchmarking Graph Neural Architecture Search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from nas_bench_graph import Arch, light_read
from nas_bench_graph.architecture import gnn_list, link_list
from numpy.typing import NDArray

from engines.search.pareto import hypervolume, non_dominated
from search_space.errors import SpaceError
from search_space.space import Choice, Codes

LINKS = tuple("".join(map(str, pattern)) for pattern in link_list)
OPERATIONS = tuple(gnn_list)
DATA_SETS = ("cora", "citeseer", "pubmed", "cs", "physics", "photo", "computers", "arxiv")
DEVELOPMENT = ("cora", "photo", "cs")
"""Data sets that design decisions may look at; the other five are run once."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cell:
    """A link pattern such as `0012` and the four operations."""

    link: str
    operations: tuple[str, str, str, str]

    def __str__(self) -> str:
        return f"{self.link}:{'-'.join(self.operations)}"

    def key(self) -> int:
        """The hash that equal cells share."""
        return int(Arch([int(digit) for digit in self.link], list(self.operations)).valid_hash())


class CellSpace:
    """The distinct cells with a measurement, in the order of their hashes; any space of the search engine.

    Args:
        keys: hashes, as `Cell.key` gives them.
    """

    choices = (
        Choice("link", "categorical", LINKS),
        *(Choice(f"operation_{i}", "categorical", OPERATIONS) for i in range(4)),
    )

    def __init__(self, keys: Sequence[int]) -> None:
        self._cells = [_cell(key) for key in sorted(keys)]
        self._rows = {cell: row for row, cell in enumerate(self._cells)}

    def __len__(self) -> int:
        return len(self._cells)

    def __contains__(self, design: object) -> bool:
        return design in self._rows

    def codes(self) -> Codes:
        """Positions in `choices` of every cell, shape (len(self), 5)."""
        return self.encode(self._cells)

    def descriptors(self) -> dict[str, Floats]:
        """What a cell is whichever way it is written down, a matrix of shape (len(self), columns) a group.

        `operations`: how often each of the nine occurs, and the length of the longest chain that is no skip.
        `pairs`: how often each operation reads the cell's input, gives its output, and reads each other
        operation; a skip hands on what it reads.
        """
        found = [_describe(cell) for cell in self._cells]
        return {
            "operations": np.array([one for one, _ in found], dtype=np.float64),
            "pairs": np.array([other for _, other in found], dtype=np.float64),
        }

    def design(self, index: int) -> Cell:
        """The cell in row `index`. Raises SpaceError when there is no such row."""
        if not 0 <= index < len(self):
            raise SpaceError(f"the space has designs 0 to {len(self) - 1}, got index {index}")
        return self._cells[index]

    def index(self, design: Cell) -> int:
        """Row of a cell. Raises SpaceError when it is not listed."""
        if design not in self._rows:
            raise SpaceError(f"the space has no design {design}")
        return self._rows[design]

    def encode(self, designs: Sequence[Cell]) -> Codes:
        """Codes of the cells, shape (n, 5)."""
        return np.array(
            [[LINKS.index(cell.link), *map(OPERATIONS.index, cell.operations)] for cell in designs], dtype=np.int16
        )

    def sample(self, count: int, rng: np.random.Generator) -> list[Cell]:
        """Distinct cells drawn uniformly."""
        rows = rng.choice(len(self), size=min(count, len(self)), replace=False)
        return [self._cells[int(row)] for row in rows]

    def neighbours(self, design: Cell) -> list[Cell]:
        """Cells that differ in one choice as written."""
        self.index(design)
        found = {Cell(link, design.operations) for link in LINKS}
        for i in range(4):
            for operation in OPERATIONS:
                changed = (*design.operations[:i], operation, *design.operations[i + 1 :])
                found.add(Cell(design.link, changed))
        return sorted((cell for cell in found if cell in self and cell != design), key=self.index)

    def starting_designs(self) -> list[Cell]:
        """None: a search starts without knowledge."""
        return []


@dataclass(frozen=True)
class Table:
    """Measurements of every cell on one data set.

    Attributes:
        space: the cells.
        accuracy: (N',) validation accuracy.
        log_latency: (N',) natural logarithm of the seconds.
    """

    space: CellSpace
    accuracy: Floats
    log_latency: Floats

    def scaled(self) -> Floats:
        """Both as losses, (N', 2): 0 is the best, 1 the 5 % quantile of accuracy or the 95 % quantile of latency."""
        top, low = self.accuracy.max(), np.quantile(self.accuracy, 0.05)
        fast, slow = self.log_latency.min(), np.quantile(self.log_latency, 0.95)
        return np.column_stack(((top - self.accuracy) / (top - low), (self.log_latency - fast) / (slow - fast)))


class Share:
    """Share of the exact front's hypervolume that some cells reach."""

    def __init__(self, table: Table) -> None:
        self._gains = -table.scaled()
        self._reference = np.array([-1.0, -1.0])
        self.whole = hypervolume(self._gains, self._reference)
        self.front = np.flatnonzero(non_dominated(self._gains))

    def of(self, rows: Sequence[int]) -> float:
        """For the cells in these rows of the space."""
        return hypervolume(self._gains[list(rows)], self._reference) / self.whole


def read_table(name: str) -> Table:
    """The table of a data set, from the installed package."""
    measured: Mapping[int, Mapping[str, float]] = light_read(name)
    space = CellSpace(list(measured))
    rows = [measured[space.design(row).key()] for row in range(len(space))]
    return Table(
        space,
        np.array([row["valid_perf"] for row in rows], dtype=np.float64),
        np.log(np.array([row["latency"] for row in rows], dtype=np.float64)),
    )


def _cell(key: int) -> Cell:
    digits = []
    for _ in range(4):
        key, digit = divmod(key, len(OPERATIONS) + 1)
        digits.append(OPERATIONS[digit])
    return Cell(LINKS[key], (digits[3], digits[2], digits[1], digits[0]))


def _describe(cell: Cell) -> tuple[list[float], list[float]]:
    size = len(OPERATIONS)
    operations = [OPERATIONS.index(operation) for operation in cell.operations]
    counts, reads_input, gives_output = [0.0] * size, [0.0] * size, [0.0] * size
    pairs = [0.0] * (size * size)
    depths = [0]
    origins: list[int | None] = [None]  # the operation whose result arrives, behind any skips; None is the input
    for i, operation in enumerate(operations, start=1):
        source = int(cell.link[i - 1])
        origin = origins[source]
        skips = OPERATIONS[operation] == "skip"
        counts[operation] += 1.0
        depths.append(depths[source] + (not skips))
        origins.append(origin if skips else operation)
        if not skips and origin is None:
            reads_input[operation] += 1.0
        elif not skips and origin is not None:
            pairs[origin * size + operation] += 1.0
        if str(i) not in cell.link:
            gives_output[operation] += 1.0
    return [*counts, float(max(depths))], [*reads_input, *gives_output, *pairs]
