"""Labels: compacted, ordered, missing ones kept apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pasca.datasets.labels import compact
from search_space.errors import DataError


@pytest.mark.parametrize(
    ("raw", "labels", "names"),
    [
        (np.array([3, 1, 3, 9]), [1, 0, 1, 2], ("1", "3", "9")),
        (np.array([0, -1, -100, 1]), [0, -1, -1, 1], ("0", "1")),
        (np.array([[0.0], [1.0], [np.nan], [-100.0]]), [0, 1, -1, -1], ("0", "1")),
        (np.array([0.5, 2.0, -0.0, -0.5]), [1, 2, 0, -1], ("0", "0.5", "2")),
        (np.array([True, False]), [1, 0], ("False", "True")),
        (np.array([2**63 + 5, 3], dtype=np.uint64), [1, 0], ("3", str(2**63 + 5))),
        (np.array([[0, 1], [1, 0], [0, 0]], np.int8), [1, 0, -1], ("0", "1")),
        (np.array([[0.0, 0, 1], [1, 0, 0]]), [1, 0], ("0", "2")),
        (np.array(["b", "", "a", " ", "nan", "-1"]), [1, -1, 0, -1, -1, -1], ("a", "b")),
        (np.array(["10", "9", "-3", "NaN"]), [1, 0, -1, -1], ("9", "10")),
        (np.array(["1.0", "1", "2"]), [0, 0, 1], ("1", "2")),
        (np.array(["NA", "null", "1_0"]), [1, 2, 0], ("1_0", "NA", "null")),
        (np.array(["10", "9", "x"]), [0, 1, 2], ("10", "9", "x")),
        (None, [-1, -1], ()),
    ],
)
def test_classes_are_numbered_in_their_order(raw: Any, labels: list[int], names: tuple[str, ...]) -> None:
    numbers, found = compact(raw, len(labels), "file")
    assert numbers.tolist() == labels
    assert numbers.dtype == np.int64
    assert found == names


def test_names_belong_to_label_numbers() -> None:
    numbers, names = compact(np.array([2, 0, 2]), 3, "file", ("cat", "cow", "dog"))
    assert (numbers.tolist(), names) == ([1, 0, 1], ("cat", "dog"))


@pytest.mark.parametrize(
    ("raw", "names", "message"),
    [
        (np.array([0, 1]), None, r"one label for each of 3 nodes, got labels of shape \(2,\)"),
        (np.zeros((3, 2, 2)), None, r"got labels of shape \(3, 2, 2\)"),
        (np.array([[1, 1], [1, 0], [0, 1]]), None, r"one-hot, but row 0 is not; several labels"),
        (np.array([[0, 2], [1, 0], [0, 1]]), None, r"one-hot, but row 0"),
        (np.array([0.0, np.inf, 1.0]), None, r"labels are finite, but row 1"),
        (np.array([1j, 2, 3]), None, r"got type complex128"),
        (np.array([0, 1, 5]), ("a", "b"), r"2 class names but a label is 5"),
        (np.array([0, 1, 0.5]), ("a", "b"), r"2 class names but a label is 0\.5"),
    ],
)
def test_what_is_no_label_is_refused(raw: np.ndarray, names: tuple[str, ...] | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        compact(raw, 3, "file", names)
