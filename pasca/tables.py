"""Fronts, lists of runs and summaries as text that lines up; the same cells fill a rich table in a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engines.objectives import Bound, Objective
from pasca.fronts import Front, Row, Spread
from pasca.plain import visible

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table

_TITLES = {
    "inference_seconds": "time",
    "parameters": "params",
    "macs": "MACs",
    "peak_memory_bytes": "memory",
}
_METRICS = {"accuracy": "test acc", "macro-f1": "test F1", "roc-auc": "test AUC"}
_KNEE = "*"
_GAP, _NARROWEST = 2, 10
"""Characters between two columns, and what a column of text is not made narrower than."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A table as texts: one title a column, one text a cell; `numbers` are the columns that are set to the right."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()

    def text(self) -> str:
        """The table as plain lines of equal columns."""
        table = [tuple(map(visible, row)) for row in (self.titles, *self.rows)]
        widths = [max(len(row[j]) for row in table) for j in range(len(self.titles))]
        lines = [
            "  ".join(
                cell.rjust(width) if j in self.numbers else cell.ljust(width)
                for j, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        return "\n".join((lines[0], "  ".join("-" * width for width in widths), *lines[1:]))

    def rich(self, width: int) -> Table:
        """The same as a rich table, with every cell taken literally.

        Args:
            width: columns of the terminal. Where the table needs more, the longest texts go over several lines,
                designs after a `/`, others after a space, a comma or a hyphen.
        """
        from rich import box
        from rich.table import Table
        from rich.text import Text

        fitted = self._fitted(width)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, _GAP - 1, 0, 0))
        for j, title in enumerate(fitted.titles):
            justify: JustifyMethod = "right" if j in self.numbers else "left"
            table.add_column(Text(title, justify=justify), justify=justify, overflow="fold")
        for row in fitted.rows:
            table.add_row(*map(Text, row), style="bold" if row[0].endswith(_KNEE) else None)
        return table

    def _fitted(self, width: int) -> Cells:
        """The cells with line breaks where the table would be wider than `width`, the widest columns first."""
        table = [[visible(cell) for cell in row] for row in (self.titles, *self.rows)]
        columns = range(len(self.titles))
        for signs in ("/, ", "-_"):
            for j in sorted(columns, key=lambda j: -_width(table, j)):
                excess = sum(_width(table, i) for i in columns) + _GAP * (len(columns) - 1) - width
                if excess > 0:
                    narrower = max(_width(table, j) - excess, _NARROWEST)
                    for row in table:
                        row[j] = _broken(row[j], narrower, signs)
        return Cells(tuple(table[0]), tuple(map(tuple, table[1:])), self.numbers)


def _width(table: Sequence[Sequence[str]], column: int) -> int:
    """Of a column, in characters."""
    return max(len(line) for row in table for line in row[column].split("\n"))


def _broken(text: str, width: int, signs: str) -> str:
    """The text with lines of more than `width` characters broken after one of the signs where they have any."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append("")
        for piece in re.findall(f"[^{signs}]*[{signs}]?", line) if len(line) > width else [line]:
            if lines[-1] and len(lines[-1] + piece.rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def short_title(name: str) -> str:
    """An objective's name at the head of a narrow column."""
    return "err" if name == "val_error" else _TITLES.get(name, name)


def front_cells(front: Front, rows: Sequence[Row]) -> Cells:
    """The cells of some rows of a front."""
    costs = dict.fromkeys(o.name for o in front.objectives if o.name != "val_error")
    costs.update(dict.fromkeys(("parameters",)) if any("parameters" in row.values for row in rows) else {})
    tested = any(row.test_score for row in rows)
    titles = ["id", "design", "val err %", *([f"{_METRICS.get(front.metric, 'score')} %"] if tested else [])]
    titles += [_TITLES.get(name, name) for name in costs]
    cells = []
    for row in rows:
        error = row.values.get("val_error")
        # Percent signs and the word for the knee are left to titles and legend, so that a usual front fits 80 columns.
        line = [f"{row.id}{_KNEE if row.knee else ''}", row.design]
        line.append(percent(None if error is None else Spread(error, row.val_error_std)))
        line += [percent(row.test_score)] if tested else []
        line += [value_text(name, row.values.get(name)) for name in costs]
        cells.append((*line, row.note or ""))
    numbers = frozenset(range(2, len(titles)))
    if not any(row.note for row in rows):
        return Cells(tuple(titles), tuple(line[:-1] for line in cells), numbers)
    return Cells((*titles, ""), tuple(cells), numbers)


def front_lines(front: Front) -> list[str | Cells]:
    """What there is to say of a front, in order: lines and tables."""
    said: list[str | Cells] = []
    trials = ", ".join(f"{count} {status}" for status, count in front.counts.items() if count) or "no trials"
    said.append(f"run {front.run}: {trials}" + (f"; {front.ending}" if front.ending else ""))
    if front.rows:
        said += ["", "Pareto front", front_cells(front, front.rows)]
    elif front.nearest:
        limits = ", ".join(bound_text(bound) for bound in front.bounds)
        said += [
            "",
            f"no design meets the bound {limits}; the nearest, all infeasible:",
            front_cells(front, front.nearest),
        ]
    else:
        said += ["", "no design has been evaluated completely"]
    if front.classics:
        said += [
            "",
            f"Classics, trained the same way with {front.retraining_seeds} seeds",
            front_cells(front, front.classics),
        ]
    said.append("")
    if front.hypervolume is not None and front.reference_point is not None:
        point = ", ".join(f"{name} {value_text(name, value)}" for name, value in front.reference_point.items())
        said.append(f"hypervolume {front.hypervolume:.6g} against the reference point {point}")
    said += _protocol(front)
    return said


def front_text(front: Front) -> str:
    """A front as plain text."""
    return "\n".join(part if isinstance(part, str) else part.text() for part in front_lines(front)).rstrip()


def evaluation_lines(found: Mapping[str, Any]) -> list[str | Cells]:
    """What there is to say of one evaluated design; see `pasca.evaluation`."""

    def spread(value: Mapping[str, Any] | None) -> str:
        return percent(None if value is None else Spread(value["mean"], value["std"]))

    rows = [("val err %", spread(found["val_error"]))]
    if found["test_score"] is not None:
        rows.append((f"{_METRICS.get(found['metric'], 'score')} %", spread(found["test_score"])))
    known = ("inference_seconds", "parameters", "macs", "peak_memory_bytes")
    rows += [(_TITLES[name], value_text(name, found[name])) for name in known if name in found]
    return [f"{found['design']} on {found['data']}, {len(found['seeds'])} seeds", Cells(("", ""), tuple(rows))]


def _protocol(front: Front) -> list[str]:
    """How the figures came about."""
    seeds = {row.num_seeds for row in front.rows}
    if not seeds:
        return []
    count = " or ".join(map(str, sorted(seeds)))
    lines = [f"{_KNEE} the knee of the front"] if any(row.knee for row in front.rows) else []
    bests = (f"{name} {value_text(name, row.values[name])} (id {row.id})" for name, row in front.best.items())
    lines.append(f"best: {', '.join(bests)}")
    lines.append(f"val err of front designs: mean ± deviation over the {count} seeds of the search, which chose by it")
    if front.num_test_readings:
        read = "once" if front.num_test_readings == 1 else f"on {front.num_test_readings} occasions"
        lines.append(
            f"test figures: mean ± deviation over {front.retraining_seeds} fresh seeds; test labels read {read}"
        )
    return lines


def percent(spread: Spread | None) -> str:
    """A fraction in percent, with its deviation: `18.2 ± 0.3`."""
    if spread is None:
        return "-"
    deviation = "" if spread.std is None else f" ± {100 * spread.std:.1f}"
    return f"{100 * spread.mean:.1f}{deviation}"


def value_text(name: str, value: float | None) -> str:
    """A measured value of an objective in a handy unit."""
    if value is None:
        return "-"
    if name == "val_error":
        return f"{100 * value:.1f} %"
    if name.endswith("seconds"):
        return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"
    if name.endswith("bytes"):
        return f"{value / 1e6:.3g} MB" if value < 1e9 else f"{value / 1e9:.3g} GB"
    if name in ("parameters", "macs"):
        return f"{value:,.0f}"
    return f"{value:.4g}"


def bound_text(bound: Bound) -> str:
    """A bound as it is read back: `inference_seconds=0.005s`."""
    return f"{bound.objective.name}={bound.at_most:g}{_unit(bound.objective)}"


def _unit(objective: Objective) -> str:
    return "" if objective.unit in ("1", "count") else objective.unit
