"""What the front's designs cost to run: time by stage, memory, parameters."""

from __future__ import annotations

from typing import Any

from engines.trial import Trial
from pasca.reporting.gathered import Gathered
from pasca.reporting.parts import ACCENT, SERIES, Block, Figure, Section, axis, plot_text
from pasca.reporting.wording import short_text
from pasca.run_costs import STAGE_GROUPS, RunCosts
from pasca.tables import Cells, value_text
from search_space.architecture import Architecture


def costs_section(found: Gathered) -> Section | None:
    """The section; None where pasca's own evaluator did not score the run, or nothing was evaluated."""
    costs = found.costs
    if costs is None:
        return None
    shown = [
        trial for trial in found.front_trials if isinstance(trial.design, Architecture) and costs.covers(trial.design)
    ]
    if not shown:
        return None
    hardware = found.manifest.get("hardware", {})
    texts = (
        "Time to classify all nodes from the raw graph, put together from measured stage times: "
        f"{hardware.get('processor', 'unknown processor')}, {_threads(found)}.",
    )
    return Section("costs", "What inference costs", "Costs", texts, (_times(shown, costs), _sizes(shown, costs)))


def _threads(found: Gathered) -> str:
    count = found.manifest.get("threads")
    return "unknown threads" if not count else "one thread" if count == 1 else f"{count} threads"


def _times(shown: list[Trial[Any]], costs: RunCosts) -> Block:
    names = [plot_text(f"{trial.number}") for trial in shown]
    parts = [costs.seconds_by_group(trial.design) for trial in shown]
    groups = [group for group in STAGE_GROUPS if any(part[group] > 0 for part in parts)]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": group,
            "y": names,
            "x": [1e3 * part[group] for part in parts],
            "marker": {"color": SERIES[STAGE_GROUPS.index(group) % len(SERIES)]},
            "hovertemplate": f"design %{{y}}<br>{group} %{{x:.3g}} ms<extra></extra>",
        }
        for group in groups
    ]
    layout = {
        "barmode": "stack",
        "xaxis": axis("inference time (ms)", rangemode="tozero"),
        "yaxis": axis("design", type="category", autorange="reversed", ticklabelstandoff=6),
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
    }
    rows = tuple(
        (
            str(trial.number),
            str(trial.design),
            *(value_text("inference_seconds", part[group]) if part[group] > 0 else "-" for group in groups),
            value_text("inference_seconds", sum(part.values())),
        )
        for trial, part in zip(shown, parts, strict=True)
    )
    titles = ("id", "design", *groups, "in all")
    return Block(
        title="Time by stage",
        figure=Figure(
            "stages",
            "Stacked bars of inference time by stage for each design of the front",
            data,
            layout,
            height=max(240, 130 + 26 * len(shown)),
        ),
        table=Cells(titles, rows, frozenset(range(2, len(titles)))),
        summary="Stage times as a table",
        keys=tuple(f"t{trial.number}" for trial in shown),
    )


def _sizes(shown: list[Trial[Any]], costs: RunCosts) -> Block:
    known = [costs.of_design(trial.design) for trial in shown]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "y": [plot_text(str(trial.number)) for trial in shown],
            "x": [values["peak_memory_bytes"] / 1e6 for values in known],
            "marker": {"color": ACCENT},
            "hovertemplate": "design %{y}<br>%{x:.3g} MB<extra></extra>",
        }
    ]
    layout = {
        "xaxis": axis("peak memory (MB)", rangemode="tozero"),
        "yaxis": axis("design", type="category", autorange="reversed", ticklabelstandoff=6),
    }
    rows = tuple(
        (
            str(trial.number),
            str(trial.design),
            *(short_text(name, values[name]) for name in ("peak_memory_bytes", "parameters", "macs")),
        )
        for trial, values in zip(shown, known, strict=True)
    )
    return Block(
        title="Memory and size",
        figure=Figure(
            "memory",
            "Bars of peak memory for each design of the front",
            data,
            layout,
            height=max(200, 90 + 26 * len(shown)),
        ),
        table=Cells(("id", "design", "peak memory", "parameters", "MACs"), rows, frozenset((2, 3, 4))),
        summary="Memory and size as a table",
        keys=tuple(f"t{trial.number}" for trial in shown),
    )
