"""How the chosen design does on each class: confusion matrix, precision, recall and F1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pasca.reporting.gathered import Gathered
from pasca.reporting.parts import ACCENT, Block, Figure, Section, axis, plot_text
from pasca.tables import Cells

_MOST_WITH_NUMBERS = 12
"""Classes up to which the numbers are written into the matrix."""

_MOST_DRAWN = 60
"""Classes up to which a matrix is drawn; beyond it only the table is readable."""


def classes_section(found: Gathered) -> Section:
    """The section; where there is nothing to show it says why and how to get it."""
    title, menu = "The chosen design by class", "Classes"
    if found.chosen is None:
        return Section("classes", title, menu, (f"No design is chosen: {found.not_chosen}.",))
    design = str(found.chosen.design)
    again = found.retrained.get(design)
    matrices = {} if again is None else again.details.get("confusion", {})
    if again is None or not matrices:
        text = (
            f"Predictions are recorded when a design is trained again after the search, which design "
            f"{found.chosen.number} ({design}) was not."
        )
        return Section("classes", title, menu, (text,))
    names = [str(name) for name in found.manifest["data"].get("class_names", [])]
    texts = (
        f"Design {found.chosen.number} ({design}), trained with {len(again.seeds)} fresh seeds. Counts are summed over "
        "the seeds, so that a node counts once for each.",
    )
    blocks: list[Block] = []
    for part in ("validation", "test"):
        if part in matrices:
            counts = np.asarray(matrices[part], dtype=np.int64)
            labels = names if len(names) == len(counts) else [str(place) for place in range(len(counts))]
            blocks += _blocks(part, counts, labels)
    return Section("classes", title, menu, texts, tuple(blocks))


def _blocks(part: str, counts: NDArray[np.int64], names: list[str]) -> list[Block]:
    figure = _figure(part, counts, names) if len(names) <= _MOST_DRAWN else None
    return [
        Block(
            title=f"{part.capitalize()} nodes",
            figure=figure,
            table=_matrix(counts, names) if len(names) <= _MOST_WITH_NUMBERS else None,
            summary="Matrix as a table",
            narrow=True,
        ),
        Block(title=f"By class, {part} nodes", table=_scores(counts, names), narrow=True),
    ]


def _figure(part: str, counts: NDArray[np.int64], names: list[str]) -> Figure:
    totals = counts.sum(axis=1, keepdims=True)
    shares = 100.0 * counts / np.maximum(totals, 1)
    # Numbered ticks: class names may be equal when shortened, and Plotly would merge equal categories.
    places = list(range(len(names)))
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": [plot_text(_brief(name)) for name in names]}
    hover = [[[plot_text(names[i]), plot_text(names[j]), int(counts[i, j])] for j in places] for i in places]
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": places,
        "y": places,
        "z": shares.round(2).tolist(),
        "zmin": 0,
        "zmax": 100,
        "colorscale": [[0, "var(--card)"], [1, ACCENT]],
        "customdata": hover,
        "hovertemplate": "%{customdata[0]} taken for %{customdata[1]}<br>%{customdata[2]} (%{z:.1f} %)<extra></extra>",
        "showscale": False,
    }
    if len(names) <= _MOST_WITH_NUMBERS:
        trace |= {"text": counts.tolist(), "texttemplate": "%{text}"}
    layout = {
        "xaxis": axis("taken for", side="bottom", showgrid=False, constrain="domain", **ticks),
        "yaxis": axis("class", autorange="reversed", showgrid=False, **ticks),
    }
    label = f"Confusion matrix of {len(names)} classes on the {part} nodes"
    return Figure(f"confusion-{part}", label, [trace], layout, height=min(640, 240 + 24 * len(names)))


def _brief(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"


def _matrix(counts: NDArray[np.int64], names: list[str]) -> Cells:
    rows = tuple((name, *(str(value) for value in row)) for name, row in zip(names, counts.tolist(), strict=True))
    return Cells(("class \\ taken for", *names), rows, frozenset(range(1, len(names) + 1)))


def _scores(counts: NDArray[np.int64], names: list[str]) -> Cells:
    """Precision, recall and F1 of each class, over all seeds; `-` where a class was never there or never predicted."""
    right, truth, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    rows = []
    for place, name in enumerate(names):
        wrong = counts[place].copy()
        wrong[place] = 0
        mistaken = f"{names[int(wrong.argmax())]} ({wrong.max()})" if wrong.any() else "-"
        rows.append(
            (
                name,
                str(truth[place]),
                _share(right[place], predicted[place]),
                _share(right[place], truth[place]),
                _share(2 * right[place], truth[place] + predicted[place]),
                mistaken,
            )
        )
    titles = ("class", "nodes × seeds", "precision", "recall", "F1", "mistaken for")
    return Cells(titles, tuple(rows), frozenset(range(1, 5)))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
