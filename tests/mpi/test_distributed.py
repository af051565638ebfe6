"""A group of ranks finds what one process finds, and the roles leave no rank without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from engines.evaluation.clocks import Consistency
from engines.evaluation.communicator import Communicator
from engines.evaluation.distributed import GroupEvaluator, GroupSettings
from engines.evaluation.graph_share import CutShare
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.parameter_server import ServerSettings
from engines.evaluation.recipe import Recipe
from engines.graph import Graph, Split, undirected
from search_space.architecture import Architecture
from search_space.errors import ConfigError, TrialFailure

torch.set_num_threads(1)
RECIPE = Recipe(hidden_width=8, max_epochs=12, evaluate_every=4)


def two_blocks(N: int = 60) -> Graph:
    """Two classes that keep to themselves, features that hint at the class, and isolated nodes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, N)
    ends = rng.integers(0, N - 5, (400, 2))
    kept = (labels[ends[:, 0]] == labels[ends[:, 1]]) | (rng.random(400) < 0.1)
    features = rng.standard_normal((N, 6)) + labels[:, None]
    order = rng.permutation(N)
    return Graph(
        "two blocks",
        undirected(ends[kept, 0], ends[kept, 1], N)[0],
        features.astype(np.float32),
        labels.astype(np.int64),
        ("a", "b"),
        Split(order[:13], order[13:40], order[40:]),
    )


def path_of_three() -> Graph:
    return Graph(
        "path",
        undirected(np.array([0, 1]), np.array([1, 2]), 3)[0],
        np.array([[1.0], [2.0], [3.0]], np.float32),
        np.array([0, 1, 1]),
        ("a", "b"),
        Split(np.array([0, 1]), np.array([2]), np.array([], np.int64)),
    )


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("augmented^3/concat/mlp-2/ppr0.3^4", GroupSettings(plan="rows")),
        ("triangle^2/mean/mlp-3/triangle^2", GroupSettings(plan="features")),
        ("ppr0.1^2/none/mlp-1/-", GroupSettings(plan="rows", partition="metis")),
        ("-/-/mlp-2/augmented^2", GroupSettings(plan="features", partition="hash")),
    ],
)
def test_a_group_finds_what_one_process_finds(ranks: Communicator, text: str, settings: GroupSettings) -> None:
    graph, design = two_blocks(), Architecture.parse(text)
    errors, details = GroupEvaluator(
        ranks, CutShare(ranks, graph, settings.partition or "contiguous"), RECIPE, settings
    ).evaluate(design, (1, 2))
    alone = LocalEvaluator(graph, recipe=RECIPE, threads=1).train(design, (1, 2))
    np.testing.assert_allclose(errors, alone.val_errors, atol=1e-12)
    np.testing.assert_allclose(details["val_losses"], alone.trained.validation_losses, rtol=1e-5)
    assert details["best_epochs"] == alone.trained.best_epochs.tolist()
    assert details["group"]["plan"] == settings.plan


def test_more_ranks_than_nodes_change_nothing_but_who_is_idle(ranks: Communicator) -> None:
    graph, design = path_of_three(), Architecture.parse("augmented^1/none/mlp-1/augmented^1")
    group = GroupEvaluator(ranks, CutShare(ranks, graph), RECIPE, GroupSettings(plan="rows"))
    errors, details = group.evaluate(design, (1,))
    alone = LocalEvaluator(graph, recipe=RECIPE, threads=1).train(design, (1,))
    np.testing.assert_allclose(errors, alone.val_errors)
    assert len(details["group"]["idle"]) == max(ranks.size - 3, 0)
    whole = np.empty(3)
    for nodes, rows in zip(ranks.gather(group.nodes), ranks.gather(group.hop("augmented", 1)), strict=True):
        whole[nodes] = rows.ravel()
    # features are row-normalised to one: hop 1 is the row sum of the matrix
    np.testing.assert_allclose(whole, [0.5 + 1 / 6**0.5, 1 / 3 + 2 / 6**0.5, 0.5 + 1 / 6**0.5], rtol=1e-6)


def test_hops_are_propagated_once_and_extended(ranks: Communicator) -> None:
    evaluator = GroupEvaluator(ranks, CutShare(ranks, two_blocks()), RECIPE, GroupSettings(plan="rows"))
    first = evaluator.hop("augmented", 2)
    before = ranks.traffic.copy()
    assert evaluator.hop("augmented", 2) is first
    assert ranks.traffic.since(before).sent_bytes == 0
    evaluator.hop("augmented", 3)
    sent = int(ranks.sum(np.array([ranks.traffic.since(before).sent_bytes]))[0])
    assert sent == evaluator.plan.predicted_bytes("augmented", 6, 1)


@pytest.mark.parametrize("consistency", ["ssp", "asp", "admm"])
def test_other_consistencies_train_as_well(ranks: Communicator, consistency: str) -> None:
    settings = GroupSettings(servers=ServerSettings(Consistency(consistency, 2)))
    errors, details = GroupEvaluator(
        ranks, CutShare(ranks, two_blocks()), Recipe(hidden_width=8, max_epochs=40), settings
    ).evaluate(Architecture.parse("augmented^2/mean/mlp-2/-"), (1, 2))
    assert errors.max() < 0.4  # a half by chance
    assert ("admm_residuals" in details) == (consistency == "admm")


def test_a_plan_that_does_not_fit_is_refused_on_every_rank(ranks: Communicator) -> None:
    with pytest.raises(ConfigError, match="are allowed"):
        GroupEvaluator(ranks, CutShare(ranks, two_blocks()), RECIPE, GroupSettings(memory_bytes=100))


@pytest.mark.parametrize(
    "text",
    [
        *(f"augmented^1/mean/mlp-2/-@{extra}" for extra in ("norm=batch", "labels=1", "adjacency=rows")),
        *(f"augmented^1/mean/mlp-2/-@{extra}" for extra in ("consistency=1", "features=l2", "structure=counts")),
        "highpass^1/mean/mlp-2/-",
        "augmented_r0^1/mean/mlp-2/-",
        "-/-/mlp-2/cs0.8^2",
    ],
)
def test_what_ranks_cannot_do_together_is_refused_on_every_rank(ranks: Communicator, text: str) -> None:
    group = GroupEvaluator(ranks, CutShare(ranks, two_blocks()), RECIPE, GroupSettings())
    with pytest.raises(TrialFailure, match=r"with one rank an evaluator$"):
        group.evaluate(Architecture.parse(text), (1,))


def test_the_record_of_a_trial_states_what_was_sent(ranks: Communicator) -> None:
    details: dict[str, Any]
    _, details = GroupEvaluator(ranks, CutShare(ranks, two_blocks()), RECIPE, GroupSettings()).evaluate(
        Architecture.parse("augmented^2/mean/mlp-2/-"), (1,)
    )
    group = details["group"]
    assert (group["sent_bytes"] > 0) == (ranks.size > 1)
    assert len(group["communicating_share"]) == ranks.size
    assert all(0.0 <= share <= 1.0 for share in group["communicating_share"])
