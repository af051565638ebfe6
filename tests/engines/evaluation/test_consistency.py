"""Consistency: worked by hand, blind to labels that are not to be read, and the same whatever trains beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from engines.evaluation.consistency import MOST_NODES, NODES_A_STEP, Consistency, unlabelled
from engines.evaluation.dropout import RepeatDropout
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.recipe import Recipe
from engines.graph import Graph, Split, undirected
from search_space.architecture import Architecture
from search_space.errors import TrialFailure

CPU = torch.device("cpu")
RECIPE = Recipe(hidden_width=8, max_epochs=12, evaluate_every=2, normalise="none", input_dropout=0.5, dropout=0.2)
DESIGNS = [
    f"augmented^2/{message}/mlp-2/-@{extras}consistency=1"
    for message in ("mean", "adaptive")
    for extras in ("", "labels=1,adjacency=rows,structure=counts,")
]


def graph(N: int = 60) -> Graph:
    rng = np.random.default_rng(0)
    labels = (np.arange(N) % 3).astype(np.int64)
    one, other = rng.integers(N, size=(2, 5 * N))
    kept = (labels[one] == labels[other]) | (rng.random(one.size) < 0.2)
    adjacency, _, _ = undirected(one[kept], other[kept], N)
    features = (rng.normal(size=(N, 4)) + np.eye(4)[labels]).astype(np.float32)
    order = rng.permutation(N)
    return Graph("made", adjacency, features, labels, ("a", "b", "c"), Split(order[:12], order[12:30], order[30:]))


def consistency(U: int = 3, weight: float = 2.0) -> Consistency:
    return Consistency(weight, np.arange(U), torch.zeros(1, U, 2), CPU)


def weights(trained: Any) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = trained.trained.network.state_dict()
    return found


def test_the_loss_by_hand() -> None:
    """Views (1/2, 1/2) and (3/4, 1/4): their mean (5/8, 3/8), squared and divided, is (25/34, 9/34)."""
    views = [torch.log(torch.tensor([[p]])) for p in ([0.5, 0.5], [0.75, 0.25])]
    q = 25 / 34
    expected = 2.0 * (2 * (0.5 - q) ** 2 + 2 * (0.75 - q) ** 2) / 2
    assert consistency().losses(views).tolist() == pytest.approx([expected])


def test_the_aim_is_not_differentiated() -> None:
    views = [torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(m), requires_grad=True) for m in (0, 1)]
    consistency().losses(views).sum().backward()
    said = [view.detach().softmax(2) for view in views]
    aim = torch.stack(said).mean(0) ** 2
    aim = aim / aim.sum(2, keepdim=True)
    again = views[0].detach().clone().requires_grad_()
    # 2 for the weight, over 2 views and 5 nodes
    (2.0 * ((again.softmax(2) - aim) ** 2).sum() / (2 * 5)).backward()
    torch.testing.assert_close(views[0].grad, again.grad)


def test_nodes_are_those_outside_the_training_part_and_no_more_than_are_held() -> None:
    assert unlabelled(6, np.array([1, 4])).tolist() == [0, 2, 3, 5]
    many = unlabelled(3 * MOST_NODES, np.arange(10))
    assert many.size == np.unique(many).size == MOST_NODES
    assert many.min() >= 10
    np.testing.assert_array_equal(many, unlabelled(3 * MOST_NODES, np.arange(10)))


def test_each_step_looks_at_other_nodes_where_there_are_many() -> None:
    assert consistency(5).places(1).tolist() == [0, 1, 2, 3, 4]
    many = consistency(MOST_NODES)
    first, second = many.places(1), many.places(2)
    assert first.size == np.unique(first).size == NODES_A_STEP
    assert first.tolist() != second.tolist()
    np.testing.assert_array_equal(first, many.places(1))


@pytest.mark.parametrize("design", DESIGNS)
def test_a_repeat_becomes_what_it_would_alone(design: str) -> None:
    evaluator = LocalEvaluator(graph(), recipe=RECIPE, threads=1)
    both = evaluator.train(Architecture.parse(design), [1, 2])
    alone = evaluator.train(Architecture.parse(design), [2])
    for name, value in weights(alone).items():
        torch.testing.assert_close(weights(both)[name][1], value[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("design", DESIGNS)
def test_test_labels_are_not_read(design: str) -> None:
    made = graph()
    other = made.labels.copy()
    other[made.split.test] = (other[made.split.test] + 1) % 3
    found = [
        weights(LocalEvaluator(one, recipe=RECIPE, threads=1).train(Architecture.parse(design), [1]))
        for one in (made, replace(made, labels=other))
    ]
    for name, value in found[0].items():
        assert torch.equal(value, found[1][name])


def test_networks_that_were_asked_to_be_consistent_are() -> None:
    made = graph(600)

    def disagreement(text: str) -> float:
        evaluator = LocalEvaluator(made, recipe=replace(RECIPE, max_epochs=60, patience=60), threads=1)
        network = evaluator.train(Architecture.parse(text), [1, 2, 3]).trained.network
        dropout = RepeatDropout(0.5, [torch.Generator().manual_seed(seed) for seed in range(3)])
        with torch.no_grad():
            views = [network(torch.from_numpy(made.features), dropout, dropout) for _ in range(2)]
        return float(consistency(weight=1.0).losses(views).mean())

    assert disagreement("-/-/mlp-2/-@consistency=3") < disagreement("-/-/mlp-2/-")


def test_training_rows_in_batches_are_refused() -> None:
    evaluator = LocalEvaluator(graph(), recipe=RECIPE, threads=1)
    evaluator._trainer.task = replace(evaluator.task, training_bytes=1)
    with pytest.raises(TrialFailure, match="needs all training rows at once, which do not fit the memory"):
        evaluator.train(Architecture.parse(DESIGNS[0]), [1])
