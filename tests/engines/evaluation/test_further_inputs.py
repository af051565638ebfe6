"""Further inputs: rows of the adjacency and standardised local structure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engines.evaluation.further_inputs import FurtherInputs, as_large_as, further_inputs, standard_structure
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.recipe import Recipe
from engines.graph import Graph, Split, undirected
from search_space.architecture import Architecture
from search_space.local_structure import local_structure


def hubs(N: int = 90) -> Graph:
    """Three classes that differ in degree and in nothing else: neighbours are drawn by chance, features are equal."""
    rng = np.random.default_rng(0)
    labels = (np.arange(N) % 3).astype(np.int64)
    shares = 4.0**labels / (4.0**labels).sum()
    one, other = rng.choice(N, size=(2, 8 * N), p=shares)
    adjacency, _, _ = undirected(one, other, N)
    order = rng.permutation(N)
    return Graph(
        "hubs",
        adjacency,
        np.ones((N, 2), np.float32),
        labels,
        ("a", "b", "c"),
        Split(order[:30], order[30:60], order[60:]),
    )


def test_rows_follow_one_another_as_asked() -> None:
    made = hubs()
    standard, columns = standard_structure(made.adjacency)
    inputs = FurtherInputs(made.adjacency, standard.apply(columns))
    one, other, both = (inputs.rows(np.array(nodes)) for nodes in ([4, 2], [7], [4, 2, 7]))
    joined = one.followed_by(other)
    assert joined.adjacency is not None
    assert both.adjacency is not None
    assert both.structure is not None
    torch.testing.assert_close(joined.adjacency.to_dense(), both.adjacency.to_dense())
    torch.testing.assert_close(joined.structure, both.structure)
    np.testing.assert_array_equal(both.adjacency.to_dense(), made.adjacency[[4, 2, 7]].toarray())


def test_structure_is_standardised_as_in_the_training() -> None:
    adjacency = hubs().adjacency
    standard, counted = standard_structure(adjacency)
    columns = standard.apply(counted)
    np.testing.assert_allclose(columns.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(columns.std(axis=0), 1.0, rtol=1e-4)
    other = hubs(60).adjacency
    found = further_inputs(Architecture.parse("-/-/mlp-1/-@structure=counts"), other, standard)
    assert found is not None
    assert found.adjacency is None
    assert found.structure is not None
    np.testing.assert_array_equal(found.structure, standard.apply(local_structure(other)))
    assert further_inputs(Architecture.parse("-/-/mlp-1/-@labels=1"), other) is None


def test_structure_is_as_large_as_the_features() -> None:
    standard, columns = standard_structure(hubs().adjacency)
    features = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)  # squared lengths 25 and 0
    made = as_large_as(standard, features).apply(columns)
    assert (made**2).sum(axis=1).mean() == pytest.approx(12.5, rel=1e-4)
    np.testing.assert_allclose(made.mean(axis=0), 0.0, atol=1e-5)
    zeros = as_large_as(standard, np.zeros((2, 3), np.float32)).apply(columns)
    assert (zeros**2).sum(axis=1).mean() == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("text", ["-/-/mlp-1/-", "-/-/mlp-2/-", "augmented^1/jk/mlp-2/-@consistency=1"])
def test_structure_tells_classes_apart_that_differ_in_degree_alone(text: str) -> None:
    made = hubs()
    evaluator = LocalEvaluator(made, recipe=Recipe(hidden_width=8, max_epochs=100, normalise="none"), threads=1)
    extras = "," if "@" in text else "@"
    counted = Architecture.parse(f"{text}{extras}structure=counts")
    both, alone = evaluator.train(counted, [1, 2]), evaluator.train(counted, [2])
    assert both.val_errors.mean() < 0.35
    if text.startswith("-/-"):
        assert evaluator.train(Architecture.parse(text), [1]).val_errors[0] > 0.6, "a third is chance"
    assert both.structure is not None
    for whole, single in zip(both.trained.network.parameters(), alone.trained.network.parameters(), strict=True):
        torch.testing.assert_close(whole[1], single[0], rtol=1e-3, atol=1e-4)
    again = evaluator.train(replace(counted, structure=None), [1])
    assert again.structure is None
