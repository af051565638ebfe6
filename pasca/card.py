"""The card of an exported model: its README, written from its description."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pasca.model_folder import CARD_FILE, DESCRIPTION_FILE, ONNX_FILE, WEIGHTS_FILE

MOST_NAMES = 30
"""Class names listed one by one; a card is for reading."""


def card(description: Mapping[str, Any]) -> str:
    """Markdown for people: what the model is, how good, on what terms, and how to run it.

    Names come from users' data and are shown as text, whatever markup they hold.
    """
    data, features, repeats = description["trained_on"], description["features"], description["repeats"]
    ensemble = f"an ensemble of {repeats['count']} networks" if repeats["count"] > 1 else "one network"
    normalisation, stack = description["normalisation"]["kind"], description["hop_stack"]
    lines = [
        f"# {_text(data['name'])}: `{description['design']}`",
        "",
        f"A decoupled graph neural network that classifies nodes, {ensemble}, made by pasca "
        f"{_text(description['versions']['pasca'])}.",
        "",
        f"- trained on: {_text(data['name'])}, {data['num_nodes']} nodes, {data['num_edges']} edges, "
        f"split {_text(data['split'])}",
        f"- features: {features['count']}, {_columns(features['names'])}; normalisation: {normalisation}, "
        "included in the model",
        f"- edges: {_edges(description['adjacency'])}",
        f"- {len(description['classes'])} classes: {_listed(description['classes'])}",
        "",
        "## How good it is",
        "",
        f"Validation error of {_validated(description)}. Figures of the run that it comes from:",
        "",
        *_table("figure", description["metrics"]),
        "",
        "How these figures came about:",
        "",
        *_table("", description["protocol"]),
        "",
        "## Use",
        "",
        _which_graphs(description),
        "",
        "```sh",
        "pasca predict THIS_FOLDER DATA --out labels.csv",
        "```",
        "",
        "```python",
        "import pasca",
        'predictions = pasca.load_model("THIS_FOLDER").predict(pasca.load("DATA"))',
        "```",
        "",
        "Without torch, from a sparse adjacency and a feature matrix (needs numpy, scipy and onnxruntime):",
        "",
        "```python",
        "from pasca.runtime import RuntimeModel",
        'probabilities = RuntimeModel.load("THIS_FOLDER").predict_proba(adjacency, features)',
        "```",
        "",
        "## Files",
        "",
        "| file | what it holds |",
        "| --- | --- |",
        f"| `{DESCRIPTION_FILE}` | design, class names, features, normalisation, recipe, figures, checksums |",
        f"| `{WEIGHTS_FILE}` | the weights |",
        f"| `{ONNX_FILE}` | the network: `hops` ({stack['hops']}, n, {stack['columns']}), normalised and "
        f"propagated{_further_inputs(description)}, to `probabilities` before post-processing |",
        f"| `{CARD_FILE}` | this card; it may be edited, the other files are checked against their checksums |",
        "",
    ]
    return "\n".join(lines)


def _which_graphs(description: Mapping[str, Any]) -> str:
    if description.get("belongs_to") is None:
        return "On the graph of the training, on one that grew, or on another with the same features:"
    known = description["known"]
    held = (
        "a weight for each of its nodes" if known is None else f"the labels of its {len(known['nodes'])} training nodes"
    )
    return f"On the graph of the training and no other, since this model holds {held}:"


def _further_inputs(description: Mapping[str, Any]) -> str:
    found = ["labels"] if description.get("label_steps") is not None else []
    found += ["neighbour_rows", "neighbours", "neighbour_weights"] if description.get("adjacency_rows") else []
    found += ["structure"] if description.get("structure") is not None else []
    return "".join(f", `{name}`" for name in found)


def _validated(description: Mapping[str, Any]) -> str:
    repeats, metric = description["repeats"], description["recipe"]["metric"]
    error = f"{_figure(repeats['val_error'])} (1 - {metric})"
    if repeats["count"] == 1:
        return f"this network: {error}"
    return f"the ensemble: {error}; of its best member alone: {_figure(min(repeats['val_errors']))}"


def _columns(names: list[str] | None) -> str:
    return "known by position" if names is None else "matched by name where the data has names"


def _edges(adjacency: Mapping[str, bool]) -> str:
    direction = "directed" if adjacency["directed"] else "undirected"
    return f"{direction}, {'weighted' if adjacency['weighted'] else 'unweighted'}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(_text(name) for name in names[:MOST_NAMES])
    return shown if len(names) <= MOST_NAMES else f"{shown} and {len(names) - MOST_NAMES} more"


def _table(heading: str, values: Mapping[str, Any]) -> list[str]:
    if not values:
        return ["none were given"]
    rows = [f"| {_text(name)} | {_text(value)} |" for name, value in _flat("", values)]
    return [f"| {heading} | |", "| --- | --- |", *rows]


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(dotted name, text) of every figure in nested mappings."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(f"{name}.", value)
        elif isinstance(value, list):
            yield name, ", ".join(_figure(item) for item in value)
        else:
            yield name, _figure(value)


def _figure(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _text(value: Any) -> str:
    """One line of text without effect as Markdown or HTML."""
    line = " ".join(str(value).split())
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", html.escape(line, quote=False))
