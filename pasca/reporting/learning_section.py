"""Learning curves of the front's designs."""

from __future__ import annotations

from typing import Any

from engines.trial import Trial
from pasca.reporting.gathered import Gathered
from pasca.reporting.parts import SERIES, Block, Figure, Section, axis, plot_text
from pasca.reporting.wording import METRIC_TITLES
from pasca.tables import Cells

_MOST_SHOWN = 6
"""Curves drawn at first; the others wait in the legend."""


def learning_section(found: Gathered) -> Section | None:
    """The section; None where the evaluator recorded no curves."""
    shown = [trial for trial in found.front_trials if found.trained_here and trial.details.get("curve")]
    if not shown:
        return None
    metric = METRIC_TITLES.get(found.front.metric, found.front.metric)
    texts = (
        "Means over the seeds of the search. The score is that of the transform on the validation nodes, before "
        "post-processing; each seed keeps the weights of its best epoch.",
    )
    at_first = set(_spread_out([trial.number for trial in shown]))
    data: list[dict[str, Any]] = []
    for place, trial in enumerate(shown):
        epochs, losses, scores = zip(*trial.details["curve"], strict=True)
        common = {
            "type": "scatter",
            "mode": "lines",
            "name": plot_text(f"{trial.number}"),
            "legendgroup": str(trial.number),
            "x": list(epochs),
            "line": {
                "color": SERIES[place % len(SERIES)],
                "width": 2,
                "dash": ("solid", "dash", "dot", "dashdot")[place // len(SERIES) % 4],
            },
            "visible": True if trial.number in at_first else "legendonly",
        }
        hover = f"design {trial.number}, epoch %{{x}}<br>"
        score = {
            "y": [100 * value for value in scores],
            "hovertemplate": hover + f"{metric} %{{y:.1f}} %<extra></extra>",
        }
        loss = {"y": list(losses), "hovertemplate": hover + "loss %{y:.4g}<extra></extra>"}
        data.append({**common, **score})
        data.append({**common, **loss, "yaxis": "y2", "showlegend": False})
    layout = {
        "xaxis": axis("epoch", anchor="y2", rangemode="tozero"),
        "yaxis": axis(f"validation {metric} (%)", domain=[0.55, 1.0]),
        "yaxis2": axis("training loss", domain=[0.0, 0.45], rangemode="tozero"),
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "title": {"text": "design "}},
    }
    block = Block(
        figure=Figure(
            "learning",
            f"Validation {metric} and training loss by epoch for the designs of the front",
            data,
            layout,
            height=520,
        ),
        table=_table(shown, metric),
        keys=tuple(f"t{trial.number}" for trial in shown),
    )
    return Section("learning", "Learning curves", "Learning", texts, (block,))


def _spread_out(numbers: list[int]) -> list[int]:
    """At most so many of the designs, from one end of the front to the other."""
    if len(numbers) <= _MOST_SHOWN:
        return numbers
    return [numbers[round(i * (len(numbers) - 1) / (_MOST_SHOWN - 1))] for i in range(_MOST_SHOWN)]


def _table(shown: list[Trial[Any]], metric: str) -> Cells:
    rows = []
    for trial in shown:
        details = trial.details
        best_epochs = details.get("best_epochs", [])
        _, losses, scores = zip(*details["curve"], strict=True)
        rows.append(
            (
                str(trial.number),
                str(trial.design),
                ", ".join(map(str, best_epochs)) or "-",
                str(details.get("num_epochs", "-")),
                f"{losses[-1]:.4g}",
                f"{100 * max(scores):.1f} %",
            )
        )
    titles = ("id", "design", "best epoch of each seed", "epochs", "last training loss", f"best mean {metric}")
    return Cells(titles, tuple(rows), frozenset(range(2, 6)))
