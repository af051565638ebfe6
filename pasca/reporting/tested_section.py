"""After the search: the front and the classics trained again with fresh seeds, and tested."""

from __future__ import annotations

from typing import Any

from pasca.fronts import Row, Spread
from pasca.reporting.front_section import marks
from pasca.reporting.gathered import Gathered
from pasca.reporting.parts import ACCENT, SERIES, Block, Figure, Section, axis, plot_text
from pasca.reporting.wording import METRIC_TITLES, spread_text, time_text
from pasca.tables import Cells


def tested_section(found: Gathered) -> Section | None:
    """The section; None for a run of which nothing was trained again."""
    front = found.front
    rows = [*front.rows, *front.classics]
    if not any(row.retrained_val_error or (row.note and row.id in _classic_names(found)) for row in rows):
        return None
    metric = METRIC_TITLES.get(front.metric, front.metric)
    tested = any(row.test_score for row in rows)
    texts = [
        f"After the search these designs were trained again with {front.retraining_seeds} fresh seeds. "
        "Shown are means and standard deviations over those seeds."
    ]
    if tested:
        times = "once" if len(found.readings) == 1 else f"on {len(found.readings)} occasions"
        texts.append(f"Test labels were read {times}{_dates(found)}, after the designs had been chosen by validation.")
    else:
        texts.append("Test labels were not read.")
    noted = any(row.note for row in rows)
    titles = ["id", "design", *([f"test {metric}"] if tested else []), f"validation {metric}"]
    cells = []
    for row in rows:
        line = [str(row.id), row.design, *([spread_text(row.test_score)] if tested else [])]
        line.append(spread_text(_score(row.retrained_val_error)))
        cells.append((*line, row.note or "") if noted else tuple(line))
    block = Block(
        figure=_figure(rows, metric, tested),
        table=Cells((*titles, "") if noted else tuple(titles), tuple(cells), frozenset(range(2, len(titles)))),
        marks=marks(rows),
        keys=tuple(f"{'c' if isinstance(row.id, str) else 't'}{row.id}" for row in rows),
    )
    return Section(
        "tested", "Trained again with fresh seeds", "Test" if tested else "Retrained", tuple(texts), (block,)
    )


def _classic_names(found: Gathered) -> set[int | str]:
    return {row.id for row in found.front.classics}


def _dates(found: Gathered) -> str:
    stamps = [time_text(str(reading.get("time"))) for reading in found.readings if reading.get("time")]
    return f" ({', '.join(stamps)})" if stamps else ""


def _score(error: Spread | None) -> Spread | None:
    return None if error is None else Spread(1.0 - error.mean, error.std)


def _figure(rows: list[Row], metric: str, tested: bool) -> Figure | None:
    """Means with deviations, one line a design, the best on top."""

    def spread(row: Row) -> Spread | None:
        return row.test_score if tested else _score(row.retrained_val_error)

    shown = sorted((row for row in rows if spread(row)), key=lambda row: spread(row).mean)  # type: ignore[union-attr]
    if not shown:
        return None
    names = [plot_text(_name(row)) for row in shown]
    data: list[dict[str, Any]] = []
    for label, colour, symbol, wanted in (
        ("front", ACCENT, "circle", [not isinstance(row.id, str) for row in shown]),
        ("classic", SERIES[1], "diamond", [isinstance(row.id, str) for row in shown]),
    ):
        points = [(name, spread(row)) for name, row, keep in zip(names, shown, wanted, strict=True) if keep]
        if points:
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": label,
                    "x": [100 * value.mean for _, value in points if value],
                    "y": [name for name, _ in points],
                    "error_x": {
                        "type": "data",
                        "array": [100 * (value.std or 0.0) for _, value in points if value],
                        "color": colour,
                        "thickness": 1.5,
                    },
                    "marker": {"color": colour, "symbol": symbol, "size": 9},
                    "hovertemplate": "%{y}<br>%{x:.2f} ± %{error_x.array:.2f} %<extra></extra>",
                }
            )
    part = "test" if tested else "validation"
    layout = {
        "xaxis": axis(f"{part} {metric} (%)"),
        "yaxis": axis("", type="category", categoryorder="array", categoryarray=names, ticklabelstandoff=6),
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    }
    label = f"{part} {metric} of {len(shown)} designs with standard deviations"
    return Figure("tested-scores", label.capitalize(), data, layout, height=max(260, 70 + 26 * len(shown)))


def _name(row: Row) -> str:
    return row.id if isinstance(row.id, str) else f"design {row.id}{' (knee)' if row.knee else ''}"
