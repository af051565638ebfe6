"""Several runs in one plot and one table."""

from __future__ import annotations

import math
from typing import Any

from pasca.comparison import ComparedRun, Comparison
from pasca.reporting.parts import SERIES, Block, Figure, Section, axis, plot_text
from pasca.reporting.wording import objective_title, point_text, short_text
from pasca.tables import Cells, value_text

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "x")


def comparison_section(comparison: Comparison | None) -> Section | None:
    """The section; None where there is nothing to compare."""
    if comparison is None:
        return None
    texts = (
        "Hypervolumes are measured against one reference point for all runs: "
        f"{point_text(comparison.reference_point)}. "
        "The share is that of the hypervolume of all these fronts together.",
        *(f"Mind: {note}." for note in comparison.notes),
    )
    blocks = (
        Block(table=comparison.cells()),
        Block(figure=_fronts(comparison), table=_designs(comparison), summary="Fronts as a table", narrow=True),
        Block(figure=_growth(comparison), narrow=True),
    )
    return Section("comparison", "Beside other runs", "Comparison", texts, blocks)


def _fronts(comparison: Comparison) -> Figure:
    up, across = _axes(comparison)
    data = []
    for place, run in enumerate(comparison.runs):
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plot_text(run.name),
                "line": {"shape": "hv", "color": SERIES[place % len(SERIES)], "width": 1},
                "marker": {"size": 8, "symbol": _SYMBOLS[place % len(_SYMBOLS)]},
                "x": [trial.values[across.name] for trial in run.front],
                "y": [trial.values[up.name] for trial in run.front],
                "customdata": [
                    [
                        plot_text(f"{trial.number} {trial.design}"),
                        value_text(up.name, trial.values[up.name]),
                        value_text(across.name, trial.values[across.name]),
                    ]
                    for trial in run.front
                ],
                "hovertemplate": "%{customdata[0]}<br>%{customdata[1]}, %{customdata[2]}"
                "<extra>%{fullData.name}</extra>",
            }
        )
    layout = {
        "xaxis": axis(objective_title(across.name), **_scale(comparison, across.name)),
        "yaxis": axis(objective_title(up.name), **_scale(comparison, up.name)),
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    }
    return Figure("compared-fronts", f"Fronts of {len(comparison.runs)} runs", data, layout, height=380)


def _scale(comparison: Comparison, name: str) -> dict[str, Any]:
    """The kind of an axis and its ticks: percent, or values in handy units at 1, 2 and 5 of every decade."""
    if name == "val_error":
        return {"tickformat": ".0%"}
    known = [trial.values[name] for run in comparison.runs for trial in run.front]
    if not known or min(known) <= 0:
        return {"exponentformat": "SI"}
    decades = range(math.floor(math.log10(min(known))) - 1, math.ceil(math.log10(max(known))) + 1)
    digits = (1,) if len(decades) > 5 else (1, 2, 5)
    ticks = [digit * 10.0**decade for decade in decades for digit in digits]
    return {"type": "log", "tickvals": ticks, "ticktext": [short_text(name, tick) for tick in ticks]}


def _growth(comparison: Comparison) -> Figure:
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": plot_text(run.name),
            "line": {"shape": "hv", "color": SERIES[place % len(SERIES)], "width": 2},
            "x": [step.evaluations for step in kept],
            "y": [step.hypervolume for step in kept],
            "hovertemplate": "%{x} evaluations<br>hypervolume %{y:.5g}<extra>%{fullData.name}</extra>",
        }
        for place, run in enumerate(comparison.runs)
        if (kept := _changes(run))
    ]
    layout = {
        "xaxis": axis("evaluations", rangemode="tozero"),
        "yaxis": axis("hypervolume", rangemode="tozero"),
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    }
    label = f"Hypervolume against evaluations of {len(comparison.runs)} runs"
    return Figure("compared-growth", label, data, layout, height=380)


def _changes(run: ComparedRun) -> list[Any]:
    steps = run.steps
    return [
        step
        for place, step in enumerate(steps)
        if place in (0, len(steps) - 1) or step.hypervolume != steps[place - 1].hypervolume
    ]


def _axes(comparison: Comparison) -> tuple[Any, Any]:
    """The objective drawn upwards, `val_error` where it is one, and the first of the others."""
    up = next((o for o in comparison.objectives if o.name == "val_error"), comparison.objectives[0])
    return up, next(o for o in comparison.objectives if o is not up)


def _designs(comparison: Comparison) -> Cells:
    rows = tuple(
        (
            run.name,
            str(trial.number),
            str(trial.design),
            *(value_text(o.name, trial.values[o.name]) for o in comparison.objectives),
        )
        for run in comparison.runs
        for trial in run.front
    )
    titles = ("run", "id", "design", *(objective_title(o.name) for o in comparison.objectives))
    return Cells(titles, rows, frozenset(range(3, len(titles))))
