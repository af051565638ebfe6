"""The front: a plot of every design that can be pointed at, and the front as a table whose rows can be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engines.history import INTERRUPTED
from engines.objectives import OBJECTIVES, Objective
from engines.search.pareto import keeps_bounds
from engines.trial import Status, Trial
from pasca.fronts import Row, Spread
from pasca.plain import plain
from pasca.reporting.gathered import Gathered
from pasca.reporting.parts import Block, Figure, Section
from pasca.reporting.wording import METRIC_TITLES, objective_title, part_keys, part_words, short_text, spread_text
from pasca.tables import Cells, bound_text
from search_space.architecture import Architecture
from search_space.classics import CLASSICS

_DIGITS = 6
"""Significant digits of a value in the page: enough to tell designs apart, few enough for thousands of them."""


def front_section(found: Gathered) -> Section:
    """The section, for a run with or without a front."""
    front = found.front
    blocks = [
        Block(
            figure=Figure("front", _label(found), (), height=440),
            table=designs_table(front.objectives, front.rows or front.nearest, front.metric),
            keys=tuple(f"t{row.id}" for row in (front.rows or front.nearest)),
            marks=marks(front.rows or front.nearest),
            chooser=True,
        )
    ]
    if front.classics:
        blocks.append(
            Block(
                title="Classics",
                texts=(f"Designs from the literature, trained the same way with {front.retraining_seeds} seeds.",),
                table=designs_table(front.objectives, front.classics, front.metric),
                keys=tuple(f"c{row.id}" for row in front.classics),
            )
        )
    return Section("front", "The front", "Front", _texts(found), tuple(blocks))


def designs_table(objectives: Sequence[Objective], rows: Sequence[Row], metric: str) -> Cells:
    """Some designs with all that is known of them; values are of the search, test figures of the retraining."""
    names = dict.fromkeys(("val_error", *(objective.name for objective in objectives)))
    names |= {name: None for name in OBJECTIVES if any(name in row.values for row in rows)}
    tested = any(row.test_score for row in rows)
    noted = any(row.note for row in rows)
    titles = ["id", "design", *(objective_title(name) for name in names)]
    if tested:  # beside the validation error: what is scrolled out of sight on a narrow screen are costs
        titles.insert(3, f"test {METRIC_TITLES.get(metric, metric)}")
    cells = []
    for row in rows:
        error = row.values.get("val_error")
        line = [str(row.id), row.design, spread_text(None if error is None else Spread(error, row.val_error_std))]
        line += [spread_text(row.test_score)] if tested else []
        line += [short_text(name, row.values.get(name)) for name in names if name != "val_error"]
        cells.append((*line, row.note or "") if noted else tuple(line))
    return Cells((*titles, "") if noted else tuple(titles), tuple(cells), frozenset(range(2, len(titles))))


def marks(rows: Sequence[Row]) -> tuple[str, ...]:
    """What is said beside the ids of some designs: which of them is the knee."""
    return tuple("knee" if row.knee else "" for row in rows)


def _texts(found: Gathered) -> tuple[str, ...]:
    front = found.front
    limits = ", ".join(map(bound_text, found.bounds))
    if front.rows:
        said = "No evaluated design is better in one objective without being worse in another."
        return (said + (f" All keep {limits}." if limits else ""),)
    if front.nearest:
        return (f"No design meets the bound {limits}. The nearest are shown instead; all are infeasible.",)
    return ("No design has been evaluated completely, so there is no front yet.",)


def _label(found: Gathered) -> str:
    names = " against ".join(objective_title(objective.name) for objective in found.objectives[:2])
    counts = f"{len(found.history.complete)} evaluated designs, {len(found.front.rows)} on the front"
    return f"Scatter plot of {names}: {counts}"


def front_payload(found: Gathered) -> dict[str, Any]:
    """The designs as the page's script reads them: one list a quantity, all of the same length."""
    trials = [trial for trial in found.history if trial.finished and trial.reason != INTERRUPTED]
    row_of = {trial.number: place for place, trial in enumerate(trials)}
    names = _value_names(trials, found.objectives)
    words: dict[str, str] = {}
    for design in dict.fromkeys((*(trial.design for trial in trials), *CLASSICS.values())):
        if isinstance(design, Architecture) and not words.keys() >= part_keys(design):
            words |= part_words(design)
    rows = found.front.rows
    content: dict[str, Any] = plain(
        {
            "objectives": [
                {"name": o.name, "title": objective_title(o.name), "unit": o.unit}
                for o in _axes(found.objectives, names)
            ],
            "searched": [objective.name for objective in found.objectives],
            "ids": [trial.number for trial in trials],
            "designs": [str(trial.design) for trial in trials],
            "statuses": [trial.status.value for trial in trials],
            "feasible": [bool(trial.values) and keeps_bounds(trial, found.bounds) for trial in trials],
            "values": {name: [_short(trial.values.get(name)) for trial in trials] for name in names},
            "seeds": [len(trial.seeds) for trial in trials],
            "seconds": [_short(trial.seconds) for trial in trials],
            "methods": [_method(trial) for trial in trials],
            "reasons": {trial.number: trial.reason for trial in trials if trial.status is Status.FAILED},
            "front": [row_of[int(row.id)] for row in rows],
            "deviations": [_short(row.val_error_std) for row in rows],
            "tested": [None if row.test_score is None else [row.test_score.mean, row.test_score.std] for row in rows],
            "knee": next((row_of[int(row.id)] for row in rows if row.knee), None),
            "classics": [
                {"name": row.id, "design": row.design, "values": {n: _short(v) for n, v in row.values.items()},
                 "tested": None if row.test_score is None else [row.test_score.mean, row.test_score.std]}
                for row in found.front.classics
            ],
            "metric": METRIC_TITLES.get(found.front.metric, found.front.metric),
            "bounds": {bound.objective.name: bound.at_most for bound in found.bounds},
            "words": words,
            "run": found.argument,
        }
    )  # fmt: skip
    return content


def _value_names(trials: list[Trial[Any]], objectives: tuple[Objective, ...]) -> list[str]:
    """Names of all values that some trial has, the searched ones first."""
    names = dict.fromkeys(objective.name for objective in objectives)
    for trial in trials:
        names |= dict.fromkeys(trial.values)
    return list(names)


def _axes(searched: tuple[Objective, ...], names: list[str]) -> list[Objective]:
    """What the plot's axes can show: the searched objectives, then other recorded values that are objectives."""
    others = [OBJECTIVES[name] for name in names if name in OBJECTIVES]
    return list({objective.name: objective for objective in (*others, *searched)}.values())


def _method(trial: Trial[Any]) -> str:
    suggestion: Mapping[str, Any] = trial.details.get("suggestion", {})
    return str(suggestion.get("method", ""))


def _short(value: float | None) -> float | None:
    if value is None or value.is_integer():
        return value if value is None else int(value)
    return float(f"{value:.{_DIGITS}g}")
