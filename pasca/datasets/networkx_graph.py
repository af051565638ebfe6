"""NetworkX graphs: node attributes are features, label and split; the edge attribute `weight` weighs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.graph import Nodes
from pasca.datasets.node_tables import LABEL_NAMES, MASK_NAMES, SPLIT_NAMES
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Arcs, GivenSplit, Parts
from pasca.datasets.sniff import plain_name
from search_space.errors import DataError

_VECTOR_NAMES = ("x", "features", "feature", "feat")
_SOURCE = "the NetworkX graph"
_PART = {"train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}


def is_networkx(data: object) -> bool:
    """Whether an object is a NetworkX graph; NetworkX is not imported for the question."""
    return any(kind.__module__.split(".")[0] == "networkx" for kind in type(data).__mro__)


def read_networkx(graph: Any, options: LoadOptions) -> Parts:
    """Read a NetworkX graph of any kind; nodes keep its order, their text is their id.

    Features are the node attribute `x` or `features` (a list of numbers), else every attribute that holds numbers; the
    label is `label`, `y` or the like, the split `split` or three masks.

    Raises:
        DataError: two nodes with one text, an attribute that some nodes lack, values of the wrong kind.
    """
    nodes = list(graph.nodes)
    texts = [str(node) for node in nodes]
    number = {node: i for i, node in enumerate(nodes)}
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise DataError(f"{_SOURCE}: two nodes are written {twice!r}; rename one, so that ids are distinct as text")
    values = _attributes(graph, nodes)
    label = options.label_column or next((name for name in values if plain_name(name) in LABEL_NAMES), None)
    if label is not None and label not in values:
        raise DataError(f"{_SOURCE}: no node has an attribute {label!r}; there are: {', '.join(values) or 'none'}")
    features, names, notes = _features({name: values[name] for name in values if name != label}, texts)
    given = _split(values, texts)
    plain = texts == [str(i) for i in range(len(texts))]
    return Parts(
        name=str(graph.name) if getattr(graph, "name", "") else "networkx",
        source=_SOURCE,
        num_nodes=len(nodes),
        arcs=_arcs(graph, number, texts),
        features=features,
        labels=None if label is None else _labels(values[label]),
        splits=given,
        default_split="given" if given else None,
        node_ids=None if plain else np.array(texts, dtype=np.str_),
        feature_names=names,
        notes=tuple(notes),
    )


def _attributes(graph: Any, nodes: list[Any]) -> dict[str, list[Any]]:
    """Every node attribute as a list in node order, None where a node lacks it."""
    names = dict.fromkeys(str(name) for _, data in graph.nodes(data=True) for name in data)
    rows = [{str(name): value for name, value in graph.nodes[node].items()} for node in nodes]
    return {name: [row.get(name) for row in rows] for name in names}


def _arcs(graph: Any, number: dict[Any, int], texts: list[str]) -> Arcs:
    ends = [(number[u], number[v], data.get("weight")) for u, v, data in graph.edges(data=True)]
    sources = np.array([u for u, _, _ in ends], dtype=np.int64)
    targets = np.array([v for _, v, _ in ends], dtype=np.int64)

    def where(i: int) -> str:
        return f"edge {texts[sources[i]]!r} - {texts[targets[i]]!r}"

    if all(weight is None for _, _, weight in ends):
        return Arcs(sources, targets, where=where)
    weights = np.ones(len(ends), dtype=np.float64)
    for i, (_, _, weight) in enumerate(ends):
        if weight is not None:  # NetworkX itself reads a missing weight as 1
            weights[i] = _number(weight, lambda i=i: f"the weight of {where(i)}")  # type: ignore[misc]
    return Arcs(sources, targets, weights, where=where)


def _features(
    values: dict[str, list[Any]], texts: list[str]
) -> tuple[NDArray[np.float64] | None, tuple[str, ...] | None, list[str]]:
    for name in _VECTOR_NAMES:
        if name in values and any(isinstance(value, (list, tuple, np.ndarray)) for value in values[name]):
            return _vectors(name, values[name], texts), None, []
    taken = (*LABEL_NAMES, *SPLIT_NAMES, *MASK_NAMES)
    columns = {name: column for name, column in values.items() if plain_name(name) not in taken}
    kept = [name for name, column in columns.items() if any(_is_number(value) for value in column)]
    dropped = [name for name in columns if name not in kept]
    notes = [f"attribute(s) {', '.join(dropped)} hold no numbers: no features"] if dropped else []
    if not kept:
        return None, None, notes
    matrix = np.empty((len(texts), len(kept)), dtype=np.float64)
    for place, name in enumerate(kept):
        for i, value in enumerate(columns[name]):
            matrix[i, place] = _number(value, lambda i=i, name=name: f"attribute {name!r} of node {texts[i]}")  # type: ignore[misc]
    return matrix, tuple(kept), notes


def _vectors(name: str, column: list[Any], texts: list[str]) -> NDArray[np.float64]:
    rows = []
    for text, value in zip(texts, column, strict=True):
        try:
            rows.append(np.asarray(value, dtype=np.float64).reshape(-1))
        except (TypeError, ValueError):
            raise DataError(f"{_SOURCE}: attribute {name!r} of node {text} is no list of numbers") from None
        if value is None or rows[-1].size != rows[0].size:
            raise DataError(
                f"{_SOURCE}: attribute {name!r} of node {text} has {0 if value is None else rows[-1].size} numbers, "
                f"expected {rows[0].size} as for node {texts[0]}"
            )
    return np.stack(rows)


def _labels(column: list[Any]) -> NDArray[Any]:
    if all(value is None or _is_number(value) for value in column):
        return np.array([np.nan if value is None else value for value in column], dtype=np.float64)
    return np.array(["" if value is None else str(value) for value in column], dtype=np.str_)


def _split(values: dict[str, list[Any]], texts: list[str]) -> dict[str, GivenSplit]:
    parts: list[list[int]] = [[], [], []]
    named = next((column for name, column in values.items() if plain_name(name) in SPLIT_NAMES), None)
    masks = [next((c for name, c in values.items() if plain_name(name) == wanted), None) for wanted in MASK_NAMES]
    if named is not None:
        for i, value in enumerate(named):
            if value is None or value == "":
                continue
            if str(value).lower() not in _PART:
                raise DataError(f"{_SOURCE}: a split is train, val or test, got {value!r} at node {texts[i]}")
            parts[_PART[str(value).lower()]].append(i)
    elif all(mask is not None for mask in masks):
        parts = [[i for i, value in enumerate(mask or []) if value] for mask in masks]
    else:
        return {}
    arrays: list[Nodes] = [np.array(part, dtype=np.int64) for part in parts]
    return {"given": lambda: (arrays[0], arrays[1], arrays[2])}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) and not isinstance(value, complex)


def _number(value: Any, what: Callable[[], str]) -> float:
    if value is None:
        return float("nan")
    if not _is_number(value):
        raise DataError(f"{_SOURCE}: {what()} is no number, got {str(value)[:40]!r}")
    return float(value)
