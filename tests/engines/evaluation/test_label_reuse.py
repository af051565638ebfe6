"""Label reuse: worked by hand, and no label reaches the node that it belongs to, nor one that is not to be read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from engines.evaluation.feeding import RowSource, WholeFeed
from engines.evaluation.label_reuse import LabelReuse, label_inputs
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.recipe import Recipe
from engines.evaluation.training import train_from
from engines.graph import Graph, Split, undirected
from search_space.architecture import Architecture
from search_space.errors import TrialFailure
from search_space.graph_operators import graph_operator

CPU = torch.device("cpu")
RECIPE = Recipe(hidden_width=8, max_epochs=12, evaluate_every=2, normalise="none", input_dropout=0.2, dropout=0.2)
DESIGN = Architecture.parse("augmented^1/mean/mlp-2/cs0.5^2@labels=2")


def graph(N: int = 60) -> Graph:
    rng = np.random.default_rng(0)
    labels = (np.arange(N) % 3).astype(np.int64)
    one, other = rng.integers(N, size=(2, 5 * N))
    kept = (labels[one] == labels[other]) | (rng.random(one.size) < 0.2)
    adjacency, _, _ = undirected(one[kept], other[kept], N)
    features = (rng.normal(size=(N, 4)) + np.eye(4)[labels]).astype(np.float32)
    order = rng.permutation(N)
    return Graph("made", adjacency, features, labels, ("a", "b", "c"), Split(order[:18], order[18:36], order[36:]))


def reuse_of(made: Graph, classes: np.ndarray | None = None, steps: int = 2) -> LabelReuse:
    matrix = graph_operator("augmented").matrix(made.adjacency)
    train = made.split.train
    known = made.labels[train] if classes is None else classes
    return LabelReuse(made.num_nodes, 3, train, known, made.split.validation, steps, lambda x: matrix @ x)


def test_one_step_by_hand() -> None:
    """Two nodes and an edge: Â has 1/2 everywhere, so both get half of the label that node 0 shows."""
    pair = sparse.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
    matrix = graph_operator("augmented").matrix(pair)
    found = label_inputs(2, 3, np.array([0]), np.array([2]), 1, lambda x: matrix @ x)
    np.testing.assert_allclose(found, [[0, 0, 0.5], [0, 0, 0.5]])


def test_a_label_does_not_change_the_inputs_of_the_node_it_belongs_to_where_that_is_learned_from() -> None:
    made = graph()
    train = made.split.train
    _, counted = reuse_of(made).draw([torch.Generator().manual_seed(1)])
    shown = counted == 0.0
    before = reuse_of(made).inputs(shown)
    assert 0 < int(counted.sum()) < train.size
    for row in range(train.size):
        other = made.labels[train].copy()
        other[row] = (other[row] + 1) % 3
        after = reuse_of(made, other).inputs(shown)
        if counted[0, row]:
            assert torch.equal(after, before), "what is taught is among nobody's inputs"
        else:
            assert not torch.equal(after, before)


def test_each_repeat_shows_its_own_half_whichever_others_there_are() -> None:
    reuse = reuse_of(graph())
    together = reuse.draw([torch.Generator().manual_seed(seed) for seed in (1, 2)])
    alone = reuse.draw([torch.Generator().manual_seed(2)])
    for both, one in zip(together, alone, strict=True):
        torch.testing.assert_close(both[1], one[0])
        assert not torch.equal(both[0], both[1])


def test_a_repeat_becomes_what_it_would_alone() -> None:
    made = graph()
    split = made.split
    sources = [
        RowSource([made.features, made.features], nodes, torch.from_numpy(made.labels[nodes]))
        for nodes in (split.train, split.validation)
    ]
    feed = WholeFeed(sources[0].all(), sources[1].all(), CPU)
    both, one = (
        train_from(feed, DESIGN, replace(RECIPE, patience=4), 3, seeds, CPU, reuse_of(made)) for seeds in ([5, 6], [6])
    )
    for whole, single in zip(both.network.parameters(), one.network.parameters(), strict=True):
        torch.testing.assert_close(whole[1], single[0], rtol=1e-4, atol=1e-5)


def test_labels_of_test_nodes_are_never_read_and_those_of_validation_nodes_only_to_choose_the_epoch() -> None:
    made = graph()
    trained = LocalEvaluator(made, recipe=RECIPE, threads=1).train(DESIGN, [1, 2])
    own = LocalEvaluator(made, recipe=RECIPE, threads=1).probabilities(trained)
    for part in ("test", "validation"):
        nodes = getattr(made.split, part)
        labels = made.labels.copy()
        labels[nodes] = (labels[nodes] + 1) % 3
        changed = LocalEvaluator(replace(made, labels=labels), recipe=RECIPE, threads=1)
        np.testing.assert_array_equal(changed.probabilities(trained), own)
        if part == "test":
            np.testing.assert_array_equal(changed.train(DESIGN, [1, 2]).val_errors, trained.val_errors)


def test_labels_of_training_nodes_are_inputs_of_their_neighbours() -> None:
    made = graph()
    trained = LocalEvaluator(made, recipe=RECIPE, threads=1).train(DESIGN, [1])
    labels = made.labels.copy()
    labels[made.split.train] = (labels[made.split.train] + 1) % 3
    changed = LocalEvaluator(replace(made, labels=labels), recipe=RECIPE, threads=1)
    assert np.abs(changed.probabilities(trained) - LocalEvaluator(made, recipe=RECIPE).probabilities(trained)).max() > 0


def test_rows_in_batches_are_refused_by_name() -> None:
    evaluator = LocalEvaluator(graph(), recipe=RECIPE, threads=1)
    evaluator._trainer.task = replace(evaluator.task, training_bytes=1)
    with pytest.raises(TrialFailure, match="needs all training rows at once"):
        evaluator.train(DESIGN, [1])


def test_another_normalisation_is_what_the_recipe_would_have_made_of_it() -> None:
    made = graph()
    text = "ppr0.1^2/concat/mlp-2/-"
    spelled = LocalEvaluator(made, recipe=RECIPE, threads=1).train(Architecture.parse(f"{text}@features=l2"), [1, 2])
    plain = LocalEvaluator(made, recipe=replace(RECIPE, normalise="l2"), threads=1).train(
        Architecture.parse(text), [1, 2]
    )
    assert spelled.normaliser.kind == "l2"
    for one, other in zip(spelled.trained.network.parameters(), plain.trained.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_adjacency_rows_tell_nodes_apart_that_have_the_same_features() -> None:
    made = graph()
    blind = replace(made, features=np.ones_like(made.features))
    design = Architecture.parse("-/-/mlp-2/-@adjacency=rows,labels=1")
    evaluator = LocalEvaluator(blind, recipe=replace(RECIPE, max_epochs=60), threads=1)
    both, alone = evaluator.train(design, [1, 2]), evaluator.train(design, [2])
    assert both.val_errors.mean() < 0.45, "two thirds would be chance"
    for whole, single in zip(both.trained.network.parameters(), alone.trained.network.parameters(), strict=True):
        torch.testing.assert_close(whole[1], single[0], rtol=1e-3, atol=1e-4)
