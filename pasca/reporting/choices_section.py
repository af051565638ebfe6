"""What each choice did: how much of an objective's variation each dimension explains, and what each value leads to."""

from __future__ import annotations

from typing import Any

from engines.search.sensitivity import Dimension, Effect
from pasca.effects import Effects, dimension_label
from pasca.reporting.gathered import Gathered
from pasca.reporting.parts import ACCENT, MUTED, SERIES, Block, Figure, Section, axis, plot_text
from pasca.reporting.wording import objective_title
from pasca.tables import Cells, value_text

_UNITS = {"1": (" (%)", 100.0), "s": (" (ms)", 1e3), "B": (" (MB)", 1e-6)}
"""How values of an objective's unit are drawn: what is added to the title, and the factor."""

_SHORT = {"val_error": "error", "inference_seconds": "time", "macs": "MACs", "peak_memory_bytes": "memory"}


def choices_section(found: Gathered) -> Section:
    """The section; where effects are not known it says why."""
    if not found.effects:
        return Section(
            "choices", "What each choice did", "Choices", (f"{found.no_effects[:1].upper()}{found.no_effects[1:]}.",)
        )
    texts = [
        "Averages over every design of the search space, each counting once; bars below them show the best design with "
        "that choice. The share of a dimension is how much of an objective's variation it explains alone; shares need "
        "not add up to 100 %, since choices act together.",
        *(_trust(effects) for effects in found.effects),
    ]
    places = range(len(found.effects[0].dimensions))
    blocks = [_importance(found.effects), *(_values(place, found.effects) for place in places)]
    return Section("choices", "What each choice did", "Choices", tuple(texts), tuple(blocks))


def _trust(effects: Effects) -> str:
    title = objective_title(effects.objective.name).capitalize()
    if effects.explained is None:
        return f"{title} is known for every design, so its figures are exact."
    share = max(effects.explained, 0.0)
    if effects.explained < 0.2:
        how = "which is next to nothing: read these figures as a guess"
    elif effects.explained < 0.6:
        how = "so differences that are small beside the error bars mean little"
    else:
        how = "so the figures are worth reading, within their error bars"
    return (
        f"{title} is predicted from {effects.num_trials} evaluated designs; the prediction explains "
        f"{100 * share:.0f} % of the variation among designs it was not shown, {how}."
    )


def _importance(all_effects: tuple[Effects, ...]) -> Block:
    names = [dimension_label(dimension.name) for dimension in all_effects[0].dimensions]
    data = []
    for place, effects in enumerate(all_effects):
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": objective_title(effects.objective.name),
                "y": [plot_text(name) for name in names],
                "x": [100 * dimension.alone for dimension in effects.dimensions],
                "marker": {"color": SERIES[place % len(SERIES)]},
                "hovertemplate": "%{y}<br>explains %{x:.0f} % alone<extra>%{fullData.name}</extra>",
            }
        )
    layout = {
        "barmode": "group",
        "xaxis": axis("explained alone (%)", rangemode="tozero"),
        "yaxis": axis("", autorange="reversed", ticklabelstandoff=6),
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    }
    titles = ["dimension"]
    for effects in all_effects:
        title = objective_title(effects.objective.name)
        titles += [f"{title}, alone", "with others"]
    rows = tuple(
        (
            name,
            *(
                f"{100 * share:.0f} %"
                for effects in all_effects
                for share in (effects.dimensions[place].alone, effects.dimensions[place].with_others)
            ),
        )
        for place, name in enumerate(names)
    )
    return Block(
        title="Importance",
        figure=Figure("importance", "Bars of the share of variation each dimension explains", data, layout, height=340),
        table=Cells(tuple(titles), rows, frozenset(range(1, len(titles)))),
        summary="Importance as a table",
    )


def _values(place: int, all_effects: tuple[Effects, ...]) -> Block:
    """One dimension: a small plot for each objective, one above the other, over the dimension's values."""
    dimension = all_effects[0].dimensions[place]
    name = dimension_label(dimension.name)
    values = [_value_text(effect) for effect in dimension.effects]
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "xaxis": axis("", type="category", anchor="y" if len(all_effects) == 1 else f"y{len(all_effects)}"),
        "showlegend": False,
    }
    height = 1.0 / len(all_effects)
    for row, effects in enumerate(all_effects):
        yaxis = "y" if row == 0 else f"y{row + 1}"
        data += _traces(effects, effects.dimensions[place], values, yaxis)
        top = 1.0 - row * height
        unit, _ = _UNITS.get(effects.objective.unit, ("", 1.0))
        layout["yaxis" if row == 0 else f"yaxis{row + 1}"] = axis(
            _SHORT.get(effects.objective.name, effects.objective.name) + unit,
            domain=[top - height + (0.08 if row < len(all_effects) - 1 else 0.0), top],
            rangemode="tozero",
        )
    titles = [name]
    for effects in all_effects:
        titles += [f"{objective_title(effects.objective.name)}, average", "best"]
    cells = []
    for at, value in enumerate(values):
        line = [value]
        for effects in all_effects:
            effect = effects.dimensions[place].effects[at]
            spread = "" if effects.exact else f" ± {_spread(effects, effect)}"
            line += [
                value_text(effects.objective.name, effect.mean) + spread,
                value_text(effects.objective.name, effect.best),
            ]
        cells.append(tuple(line))
    what = " and ".join(objective_title(effects.objective.name) for effects in all_effects)
    return Block(
        title=name.capitalize(),
        figure=Figure(
            f"choice-{place}",
            f"Average and best {what} for each value of {name}",
            data,
            layout,
            height=90 + 150 * len(all_effects),
        ),
        table=Cells(tuple(titles), tuple(cells), frozenset(range(1, len(titles)))),
        summary="As a table",
        narrow=True,
    )


def _traces(effects: Effects, dimension: Dimension, values: list[str], yaxis: str) -> list[dict[str, Any]]:
    names = [plot_text(value) for value in values]
    _, scale = _UNITS.get(effects.objective.unit, ("", 1.0))
    texts = [value_text(effects.objective.name, effect.mean) for effect in dimension.effects]
    bests = [value_text(effects.objective.name, effect.best) for effect in dimension.effects]
    average: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "average",
        "x": names,
        "y": [scale * effect.mean for effect in dimension.effects],
        "customdata": texts,
        "yaxis": yaxis,
        "line": {"color": ACCENT, "width": 1},
        "marker": {"color": ACCENT, "size": 8},
        "hovertemplate": "%{x}: average %{customdata}<extra></extra>",
    }
    if not effects.exact:
        average["error_y"] = {
            "type": "data",
            "array": [scale * effect.deviation for effect in dimension.effects],
            "color": ACCENT,
            "thickness": 1.5,
        }
    best = {
        "type": "scatter",
        "mode": "markers",
        "name": "best",
        "x": names,
        "y": [scale * effect.best for effect in dimension.effects],
        "customdata": bests,
        "yaxis": yaxis,
        "marker": {"color": MUTED, "symbol": "line-ew-open", "size": 14, "line": {"width": 2, "color": MUTED}},
        "hovertemplate": "%{x}: best %{customdata}<extra></extra>",
    }
    return [best, average]


def _spread(effects: Effects, effect: Effect) -> str:
    if effects.objective.unit == "1":
        return f"{100 * effect.deviation:.1f}"
    return value_text(effects.objective.name, effect.deviation)


def _value_text(effect: Effect) -> str:
    return "off" if effect.value is None else str(effect.value)
