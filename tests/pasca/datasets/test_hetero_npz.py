"""hetero-npz: several splits in one file, read by row whatever their type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pasca.datasets import load
from search_space.errors import DataError

Writer = Callable[..., Path]


def test_a_split_is_a_row_of_the_masks(write_hetero: Writer) -> None:
    split = load(write_hetero(), split="0").split
    assert [split.train.tolist(), split.validation.tolist(), split.test.tolist()] == [[0, 1], [2, 3], [4, 5]]


def test_the_first_split_is_taken_unless_another_is_named(write_hetero: Writer) -> None:
    path = write_hetero()
    assert load(path).split.name == "0"
    assert load(path, split="2").split.train.tolist() == [2, 3]
    assert load(path, split=2).split.name == "2"


def test_an_overlapping_split_is_refused_and_the_others_are_not(write_hetero: Writer) -> None:
    with pytest.raises(DataError, match=r"train and test share 1 node\(s\), the first is node 1"):
        load(write_hetero(), split="1")


def test_an_unknown_split_lists_what_exists(write_hetero: Writer) -> None:
    with pytest.raises(DataError, match="no split '9'; choose from: 0, 1, 2, 3, 4, 5, random"):
        load(write_hetero(), split="9")


def test_features_stay_dense_and_may_be_missing(write_hetero: Writer) -> None:
    assert np.array_equal(load(write_hetero()).features, np.eye(6))
    assert load(write_hetero(without=("node_features",))).made_features == "degree"


def test_masks_of_one_split_may_be_flat(write_hetero: Writer) -> None:
    flat = {key: np.eye(6, dtype=bool)[i] for i, key in enumerate(("train_masks", "val_masks", "test_masks"))}
    assert load(write_hetero(**flat)).split.train.tolist() == [0]


def test_without_masks_the_split_is_random(write_hetero: Writer) -> None:
    assert load(write_hetero(without=("train_masks", "val_masks", "test_masks"))).split.name.endswith("seed 0")


@pytest.mark.parametrize(
    ("changes", "without", "message"),
    [
        ({"edges": np.array([[0, 6]])}, (), r"row 0 of edges is \[0, 6\], but node numbers run from 0 to 5"),
        ({"edges": np.array([[0, 1], [-1, 2]])}, (), r"row 1 of edges is \[-1, 2\]"),
        ({"edges": np.array([[0, 1, 2], [1, 2, 3]])}, (), r"shape \(E, 2\), got int64 of \(2, 3\); it is transposed"),
        ({"edges": np.array([[0.0, 1.0]])}, (), r"got float64"),
        ({"train_masks": np.ones((2, 5))}, (), r"train_masks has a row for each split, shape \(S, 6\), got \(2, 5\)"),
        ({"val_masks": np.ones((6, 2))}, (), r"val_masks .* got \(6, 2\); it is transposed"),
        ({"val_masks": np.ones((2, 6))}, (), r"the same number of splits"),
        ({"train_masks": np.full((6, 6), 2)}, (), r"train_masks, split 0: a mask holds zeros and ones, got 2"),
        ({}, ("test_masks",), r"'test_masks' is missing"),
        ({"node_labels": np.zeros(5)}, (), r"one label for each of 6 nodes"),
        ({"train_masks": np.zeros((6, 6))}, (), r"split '0' has no labelled training node"),
        ({"node_features": np.array(3.0)}, (), r"need a row for each node"),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    write_hetero: Writer, changes: dict[str, Any], without: tuple[str, ...], message: str
) -> None:
    path = write_hetero(without=without, **changes)
    with pytest.raises(DataError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
