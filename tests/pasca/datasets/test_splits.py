"""Random splits by class, and given ones from masks and lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.graph import Split
from pasca.datasets.splits import by_fraction, check_disjoint, nodes_of_list, nodes_of_mask, per_class
from search_space.errors import DataError


def draw(labels: list[int], train: int, val: int, seed: int = 0) -> tuple[Split, tuple[int, ...]]:
    numbers = np.array(labels)
    return per_class(numbers, max(labels, default=-1) + 1, train, val, np.random.default_rng(seed), "s")


def counts(labels: list[int], nodes: np.ndarray) -> list[int]:
    return np.bincount(np.array(labels)[nodes], minlength=max(labels) + 1).tolist()


@settings(max_examples=50)
@given(labels=st.lists(st.integers(-1, 3), min_size=1, max_size=40), train=st.integers(1, 5), val=st.integers(1, 5))
def test_every_labelled_node_is_in_one_part(labels: list[int], train: int, val: int) -> None:
    split, _ = draw(labels, train, val)
    parts = np.concatenate([split.train, split.validation, split.test])
    assert sorted(parts.tolist()) == [i for i, label in enumerate(labels) if label >= 0]


def test_classes_with_enough_labels_get_exactly_what_is_asked() -> None:
    labels = [0] * 10 + [1] * 20 + [-1] * 5
    split, small = draw(labels, 3, 4)
    assert (counts(labels, split.train), counts(labels, split.validation)) == ([3, 3], [4, 4])
    assert small == ()


@pytest.mark.parametrize(
    ("size", "train", "val"), [(1, 1, 0), (2, 1, 1), (3, 1, 1), (10, 4, 3), (40, 16, 12), (50, 20, 15)]
)
def test_a_small_class_is_shared_out(size: int, train: int, val: int) -> None:
    labels = [0] * size + [1] * 100
    split, small = draw(labels, 20, 30)
    assert (counts(labels, split.train)[0], counts(labels, split.validation)[0]) == (train, val)
    assert small == (0,)


def test_a_seed_fixes_the_split_and_another_changes_it() -> None:
    labels = [0] * 50 + [1] * 50
    one, same, other = draw(labels, 5, 5)[0], draw(labels, 5, 5)[0], draw(labels, 5, 5, seed=1)[0]
    assert np.array_equal(one.train, same.train)
    assert not np.array_equal(one.train, other.train)


def test_fractions_hold_in_every_class() -> None:
    labels = [0] * 10 + [1] * 100 + [2]
    split = by_fraction(np.array(labels), 3, 0.6, 0.3, np.random.default_rng(0), "s")
    assert counts(labels, split.train) == [6, 60, 1]
    assert counts(labels, split.validation) == [3, 30, 0]
    assert counts(labels, split.test) == [1, 10, 0]


def test_masks_of_any_type_mark_nodes() -> None:
    for mask in (np.array([1, 0, 1], np.uint8), np.array([True, False, True]), np.array([1.0, 0.0, 1.0])):
        assert nodes_of_mask(mask, 3, "m").tolist() == [0, 2]


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.array([1, 0]), r"shape \(3,\), one value a node, got \(2,\)"),
        (np.eye(3), r"got \(3, 3\)"),
        (np.array([0, 1, 2]), r"got 2 at node 2; is it a list of nodes\?"),
        (np.array([0, np.nan, 1]), r"got nan at node 1"),
        (np.array(["a", "b", "c"]), r"got type <U1"),
    ],
)
def test_what_is_no_mask_is_refused(mask: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        nodes_of_mask(mask, 3, "m")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (np.array([0, 3]), r"entry 1 is 3, but node numbers run from 0 to 2"),
        (np.array([-1]), r"entry 0 is -1"),
        (np.array([1, 1]), r"node 1 is listed 2 times"),
        (np.array([0.0, 1.0]), r"got float64"),
        (np.array([[0, 1]]), r"shape \(1, 2\)"),
    ],
)
def test_what_is_no_list_of_nodes_is_refused(nodes: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        nodes_of_list(nodes, 3, "l")


def test_an_overlap_names_the_first_node_by_its_id() -> None:
    ids = np.array(["a", "b", "c"])
    one, other = np.array([0, 2]), np.array([1, 2])
    with pytest.raises(DataError, match=r"train and test share 1 node.*the first is node c"):
        check_disjoint(one, np.array([], dtype=int), other, "file", ids)
    with pytest.raises(DataError, match=r"validation and test share 1 node.*the first is node 2"):
        check_disjoint(np.array([], dtype=int), one, other, "file", None)
