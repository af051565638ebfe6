"""Scores of predicted class probabilities, larger is better, and whether a split defines them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score, roc_auc_score

from engines.evaluation.recipe import METRICS
from engines.graph import Graph, class_counts
from search_space.errors import GraphError, ObjectiveError, ShapeError


def score(metric: str, probabilities: NDArray[np.floating[Any]], labels: NDArray[np.int64]) -> float:
    """Score predictions for n nodes.

    - `accuracy`: share of nodes whose most probable class is the true one.
    - `macro-f1`: F1 averaged over the classes seen in the truth or among the predictions.
    - `roc-auc`: area under the ROC curve; with more than two classes, one-against-rest averaged over the classes
      present in the truth.

    Args:
        probabilities: (n, C), rows need not sum to one.
        labels: (n,) in 0..C-1.
    Raises:
        ShapeError: the arrays do not belong together, or are empty.
        ObjectiveError: the metric is unknown, or is `roc-auc` and the labels hold one class only.
    """
    if probabilities.ndim != 2 or labels.shape != (probabilities.shape[0],) or labels.size == 0:
        raise ShapeError(
            f"scores need probabilities (n, C) and labels (n,), got {probabilities.shape} and {labels.shape}"
        )
    predicted = probabilities.argmax(axis=1)
    if metric == "accuracy":
        return float((predicted == labels).mean())
    if metric == "macro-f1":
        seen = np.union1d(labels, predicted)
        return float(f1_score(labels, predicted, labels=seen, average="macro", zero_division=0.0))
    if metric == "roc-auc":
        return _roc_auc(probabilities, labels)
    raise ObjectiveError(f"unknown metric {metric!r}; choose from: {', '.join(METRICS)}")


def confusion(probabilities: NDArray[np.floating[Any]], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often nodes of each class were taken for each class.

    Args:
        probabilities: (S, n, C), one prediction a repeat.
        labels: (n,) in 0..C-1.
    Returns:
        (C, C) counts over all repeats; row i holds the nodes of class i, column j those taken for j.
    """
    S, _, C = probabilities.shape
    predicted = probabilities.argmax(axis=2)
    cells = (labels[None, :] * C + predicted).reshape(-1)
    counts: NDArray[np.int64] = np.bincount(cells, minlength=C * C).reshape(C, C)
    assert counts.sum() == S * labels.size
    return counts


def _roc_auc(probabilities: NDArray[np.floating[Any]], labels: NDArray[np.int64]) -> float:
    present = np.unique(labels)
    if present.size < 2:
        raise ObjectiveError(f"roc-auc needs nodes of at least two classes, got class {present[0]} only")
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(labels == 1, probabilities[:, 1]))
    return float(np.mean([roc_auc_score(labels == c, probabilities[:, c]) for c in present]))


def check_metric(graph: Graph, metric: str) -> None:
    """Check before any training that the graph's split can train a model and defines the metric.

    Raises:
        GraphError: the training or validation part is empty, or training nodes are of one class only.
        ObjectiveError: the metric is unknown, or the validation part does not define it.
    """
    if metric not in METRICS:
        raise ObjectiveError(f"unknown metric {metric!r}; choose from: {', '.join(METRICS)}")
    for part in ("train", "validation"):
        if getattr(graph.split, part).size == 0:
            raise GraphError(
                f"the {part} part of split {graph.split.name!r} of {graph.name} is empty; "
                "give labels and a split that fills it"
            )
    trained = np.flatnonzero(class_counts(graph, graph.split.train))
    if trained.size < 2:
        raise GraphError(
            f"the training part of {graph.name} holds class {graph.class_names[trained[0]]} only; "
            "classification needs labelled nodes of at least two classes"
        )
    validated = np.flatnonzero(class_counts(graph, graph.split.validation))
    if metric == "roc-auc" and validated.size < 2:
        raise ObjectiveError(
            f"roc-auc is not defined: the validation part of {graph.name} holds class "
            f"{graph.class_names[validated[0]]} only; choose another split or --metric accuracy"
        )
