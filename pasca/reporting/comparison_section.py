"""Several runs in one plot and one table."""

from __future__ import annotations

from typing import Any

from engines.objectives import Objective
from pasca.comparison import ComparedRun, Comparison
from pasca.reporting.parts import SERIES, Block, Figure, Section, axis, plot_text
from pasca.reporting.wording import objective_title, point_text
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
        "xaxis": axis(_title(across), type="log" if _all_positive(comparison, across.name) else "linear"),
        "yaxis": axis(_title(up), **({"tickformat": ".0%"} if up.unit == "1" else {})),
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    }
    return Figure("compared-fronts", f"Fronts of {len(comparison.runs)} runs", data, layout, height=380)


def _title(objective: Objective) -> str:
    unit = "" if objective.unit in ("1", "count") else f" ({objective.unit})"
    return objective_title(objective.name) + unit


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


def _all_positive(comparison: Comparison, name: str) -> bool:
    return all(trial.values[name] > 0 for run in comparison.runs for trial in run.front)


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
    titles = ("run", "id", "design", *(o.name for o in comparison.objectives))
    return Cells(titles, rows, frozenset(range(3, len(titles))))
