"""Sharing out training and validation nodes anew leaves test nodes alone."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

import pasca


def test_nodes_are_shared_out_by_class_among_training_and_validation_alone(script: Callable[[str], ModuleType]) -> None:
    bench, graph = script("bench_selection"), pasca.load("digits")
    pool = np.sort(np.concatenate((graph.split.train, graph.split.validation)))
    splits = [bench._shared_out(graph, number) for number in (0, 1, 0)]
    for split in splits:
        np.testing.assert_array_equal(np.sort(np.concatenate((split.train, split.validation))), pool)
        counts = [np.bincount(graph.labels[nodes], minlength=10) for nodes in (split.train, graph.split.train)]
        np.testing.assert_array_equal(*counts)
        assert split.test.size == 0
    np.testing.assert_array_equal(splits[0].train, splits[2].train)
    assert set(splits[0].train.tolist()) != set(splits[1].train.tolist())
