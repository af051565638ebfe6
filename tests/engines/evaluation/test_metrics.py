"""Metrics against values worked out by hand, and splits that do not define them."""

from __future__ import annotations

import numpy as np
import pytest

from engines.evaluation.metrics import check_metric, confusion, score
from engines.graph import Graph, Split, undirected
from search_space.errors import GraphError, ObjectiveError, ShapeError


def sure(predicted: list[int], num_classes: int) -> np.ndarray:
    """Probabilities that predict the given classes."""
    return np.eye(num_classes, dtype=np.float32)[predicted]


def graph(labels: list[int], train: list[int], validation: list[int], classes: int = 2) -> Graph:
    N = len(labels)
    adjacency, _, _ = undirected(np.arange(N - 1), np.arange(1, N), N)
    return Graph(
        "tiny",
        adjacency,
        np.ones((N, 1), dtype=np.float32),
        np.asarray(labels, dtype=np.int64),
        tuple("abcdef"[:classes]),
        Split(np.asarray(train, dtype=np.int64), np.asarray(validation, dtype=np.int64), np.asarray([], np.int64)),
    )


@pytest.mark.parametrize(
    ("truth", "predicted", "expected"),
    [
        ([2, 1, 0, 0], [2, 1, 0, 1], 7 / 9),  # F1 2/3, 2/3, 1
        ([2, 1, 0, 4], [2, 1, 0, 1], 2 / 3),  # F1 1, 2/3, 1, and 0 for the class seen in the truth only
        ([0] * 400 + [1], [0] * 401, 400 / 801),  # F1 800/801 and 0
    ],
)
def test_macro_f1_averages_over_classes_seen_in_truth_or_prediction(
    truth: list[int], predicted: list[int], expected: float
) -> None:
    assert score("macro-f1", sure(predicted, 5), np.asarray(truth)) == pytest.approx(expected, abs=1e-9)


def test_macro_f1_does_not_change_with_classes_nobody_has() -> None:
    truth = np.asarray([2, 1, 0, 0])
    assert score("macro-f1", sure([2, 1, 0, 1], 3), truth) == score("macro-f1", sure([2, 1, 0, 1], 9), truth)


def test_accuracy_beside_a_rare_class() -> None:
    assert score("accuracy", sure([0] * 401, 2), np.asarray([0] * 400 + [1])) == pytest.approx(0.997506, abs=1e-6)


def test_roc_auc_of_two_classes() -> None:
    scores = np.asarray([0.1, 0.4, 0.35, 0.8])
    probabilities = np.column_stack((1 - scores, scores))
    assert score("roc-auc", probabilities, np.asarray([0, 0, 1, 1])) == 0.75


def test_roc_auc_of_many_classes_averages_over_those_present() -> None:
    probabilities = np.asarray([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    # class 0 against the rest: .6 .7 above .2 .1 in three of the pairs of truth 0,1,1,0; class 2 is absent
    assert score("roc-auc", probabilities, np.asarray([0, 1, 1, 0])) == pytest.approx(0.25)


def test_a_perfect_predictor_has_score_one_and_shapes_are_not_broadcast() -> None:
    labels = np.asarray([0, 1, 1, 0])
    assert score("accuracy", sure([0, 1, 1, 0], 2), labels) == 1.0
    with pytest.raises(ShapeError, match=r"probabilities \(n, C\) and labels \(n,\)"):
        score("accuracy", sure([0, 1, 1, 0], 2), labels[:, None])


def test_confusion_counts_rows_by_truth_and_columns_by_prediction_over_all_repeats() -> None:
    labels = np.asarray([0, 0, 1, 2])
    repeats = np.stack((sure([0, 1, 1, 2], 4), sure([0, 0, 1, 3], 4)))
    assert confusion(repeats, labels).tolist() == [[3, 1, 0, 0], [0, 2, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]]


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(ShapeError):
        score("accuracy", np.empty((0, 2)), np.empty(0, dtype=np.int64))


def test_roc_auc_of_a_one_class_validation_part_is_refused_before_training() -> None:
    with pytest.raises(ObjectiveError, match="roc-auc is not defined: the validation part of tiny holds class a only"):
        check_metric(graph([0, 1, 0, 0], [0, 1], [2, 3]), "roc-auc")
    check_metric(graph([0, 1, 0, 0], [0, 1], [2, 3]), "accuracy")


@pytest.mark.parametrize(
    ("train", "validation", "message"),
    [
        ([], [2, 3], "the train part of split 'given' of tiny is empty"),
        ([0, 1], [], "the validation part of split 'given' of tiny is empty"),
        ([0, 2], [1, 3], "the training part of tiny holds class a only"),
    ],
)
def test_a_split_that_cannot_train_is_refused(train: list[int], validation: list[int], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        check_metric(graph([0, 1, 0, 0], train, validation), "accuracy")


def test_an_unknown_metric_lists_what_exists() -> None:
    with pytest.raises(ObjectiveError, match="unknown metric 'auc'; choose from: accuracy, macro-f1, roc-auc"):
        check_metric(graph([0, 1, 0, 1], [0, 1], [2, 3]), "auc")
