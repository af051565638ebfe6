"""How the search went: hypervolume against evaluations and against time, failures, and where the time went."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from engines.trial import Status
from pasca.quantities import seconds_text
from pasca.reporting.gathered import Gathered
from pasca.reporting.parts import ACCENT, SERIES, Block, Figure, Section, axis
from pasca.reporting.wording import point_text
from pasca.tables import Cells

_MOST_ROWS = 12


def progress_section(found: Gathered) -> Section:
    """The section; without a reference point it has no plots."""
    blocks = []
    if found.steps:
        blocks += _growth(found)
    spent = _time_spent(found)
    if spent is not None:
        blocks.append(spent)
    failures = _failures(found)
    if failures is not None:
        blocks.append(failures)
    point = found.front.reference_point
    texts = ["Hypervolume is the volume of trade-offs that the front beats: it grows as the front gets better."]
    if point is None:
        texts = ["No trial has values yet, so there is nothing to draw."]
    else:
        texts.append(
            f"It is measured against the fixed reference point {point_text(point)}. Working time leaves out pauses "
            "between an interruption and its resumption."
        )
    return Section("progress", "How the search went", "Progress", tuple(texts), tuple(blocks))


def _growth(found: Gathered) -> list[Block]:
    """Two plots of the same steps, and one table."""
    # Only where it changed, and at both ends: a step line needs no other points.
    kept = [
        step
        for place, step in enumerate(found.steps)
        if place in (0, len(found.steps) - 1) or step.hypervolume != found.steps[place - 1].hypervolume
    ]
    volumes = [step.hypervolume for step in kept]
    by_count = _line("growth-evaluations", "evaluations", [step.evaluations for step in kept], volumes)
    seconds = [found.seconds.get(step.trial) for step in kept]
    table = Cells(
        ("evaluations", "working time", "front", "hypervolume"),
        tuple(
            (
                str(step.evaluations),
                seconds_text(found.seconds[step.trial]) if step.trial in found.seconds else "-",
                str(step.front_size),
                f"{step.hypervolume:.6g}",
            )
            for step in _thinned(kept)
        ),
        frozenset(range(4)),
    )
    blocks = [Block(figure=by_count, table=table, summary="Hypervolume as a table", narrow=True)]
    if all(value is not None for value in seconds):
        blocks.append(
            Block(
                figure=_line("growth-time", "working time (s)", seconds, volumes),
                narrow=True,
            )
        )
    return blocks


def _thinned(steps: list[Any]) -> list[Any]:
    """At most a dozen of the steps, the first and the last among them."""
    if len(steps) <= _MOST_ROWS:
        return steps
    places = {round(i * (len(steps) - 1) / (_MOST_ROWS - 1)) for i in range(_MOST_ROWS)}
    return [steps[place] for place in sorted(places)]


def _line(name: str, title: str, x: list[Any], y: list[float]) -> Figure:
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "line": {"shape": "hv", "color": ACCENT, "width": 2},
            "x": x,
            "y": y,
            "hovertemplate": f"%{{x}} {title}<br>hypervolume %{{y:.5g}}<extra></extra>",
        }
    ]
    layout = {"xaxis": axis(title, rangemode="tozero"), "yaxis": axis("hypervolume", rangemode="tozero")}
    return Figure(name, f"Step line of hypervolume against {title}", data, layout, height=300)


def _time_spent(found: Gathered) -> Block | None:
    """Where the time of the evaluations went."""
    spent: dict[str, float] = defaultdict(float)
    for trial in found.history:
        known = 0.0
        for stage, seconds in (trial.details.get("seconds", {}) if found.trained_here else {}).items():
            spent[{"propagate": "propagating", "train": "training", "infer": "scoring"}.get(stage, stage)] += seconds
            known += seconds
        spent["choosing designs"] += float(trial.details.get("suggestion", {}).get("seconds", 0.0))
        spent["other"] += max(trial.seconds - known, 0.0)
    spent["retraining and testing"] += sum(again.seconds for again in found.retrained.values())
    total = sum(spent.values())
    parts = [(name, seconds) for name, seconds in sorted(spent.items(), key=lambda part: -part[1]) if seconds > 0]
    if not parts:
        return None
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "x": [seconds],
            "y": [""],
            "marker": {"color": SERIES[place % len(SERIES)]},
            "hovertemplate": f"{name}<br>%{{x:.3g}} s<extra></extra>",
        }
        for place, (name, seconds) in enumerate(parts)
    ]
    layout = {
        "barmode": "stack",
        "xaxis": axis("seconds"),
        "yaxis": {"visible": False, "fixedrange": True},
        "legend": {"orientation": "h", "y": 1.1, "yanchor": "bottom", "traceorder": "normal"},
    }
    table = Cells(
        ("", "time", "share"),
        tuple((name, seconds_text(seconds), f"{100 * seconds / total:.0f} %") for name, seconds in parts),
        frozenset((1, 2)),
    )
    return Block(
        title="Where the time went",
        figure=Figure("time-spent", "Bar of the time of the run by what it was spent on", data, layout, height=190),
        table=table,
    )


def _failures(found: Gathered) -> Block | None:
    reasons = Counter(trial.reason or "" for trial in found.history.with_status(Status.FAILED))
    if not reasons:
        return None
    examples = {trial.reason or "": trial for trial in found.history.with_status(Status.FAILED)}
    rows = tuple(
        (str(count), reason, f"{examples[reason].number} ({examples[reason].design})")
        for reason, count in reasons.most_common()
    )
    return Block(title="Failed trials", table=Cells(("trials", "reason", "the last one"), rows, frozenset((0,))))
