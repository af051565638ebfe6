"""Batched training of repeats: each as if it were alone, its best epoch kept, divergence reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engines.evaluation.feeding import Rows
from engines.evaluation.recipe import Recipe
from engines.evaluation.training import together, train
from search_space.architecture import Architecture
from search_space.errors import TrialFailure
from search_space.transform import Transform

CPU = torch.device("cpu")
PLAIN = Recipe(hidden_width=8, input_dropout=0.0, dropout=0.0, max_epochs=20, patience=20, evaluate_every=1)


@pytest.fixture
def rows() -> tuple[Rows, Rows]:
    """Two noisy classes, 24 training and 30 validation rows, three hops."""
    generator = torch.Generator().manual_seed(1)

    def part(n: int) -> Rows:
        labels = torch.arange(n) % 2
        hops = torch.randn(3, n, 5, generator=generator) + 0.7 * labels[None, :, None]
        return Rows(hops, labels)

    return part(24), part(30)


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"augmented^2/{message}/mlp-3/-"
            for message in ("none", "mean", "sum", "concat", "decay0.1", "weighted", "adaptive", "recursive", "jk")
        ),
        "augmented^2/mean/mlp-4/-@hidden=6,input_dropout=0.1,dropout=0.2,lr=0.02,wd=0.001,norm=layer,residual=off",
        "augmented^2/jk/mlp-2/-@norm=layer",
        "augmented^2/mean/mlp-3/-@norm=batch",
        "augmented^2/recursive/mlp-2/-@norm=batch",
    ],
)
def test_a_repeat_becomes_what_it_would_alone(text: str, rows: tuple[Rows, Rows]) -> None:
    design = Architecture.parse(text)
    recipe = replace(PLAIN, input_dropout=0.3, dropout=0.5, patience=3)
    together = train(design, recipe, *rows, 2, [10, 11, 12], CPU)
    said = together.network(together.network.prepare(rows[1].hops))
    for s, seed in enumerate([10, 11, 12]):
        alone = train(design, recipe, *rows, 2, [seed], CPU)
        assert alone.best_epochs[0] == together.best_epochs[s]
        for one, other in zip(alone.network.parameters(), together.network.parameters(), strict=True):
            torch.testing.assert_close(one[0], other[s], rtol=1e-4, atol=1e-5)
        alone_said = alone.network(alone.network.prepare(rows[1].hops))
        torch.testing.assert_close(alone_said[0], said[s], rtol=1e-3, atol=1e-4)


def test_what_a_design_says_goes_before_the_recipe(rows: tuple[Rows, Rows]) -> None:
    """The design trained by the run's recipe is the plain design trained by a recipe that says the same."""
    extras = "hidden=6,input_dropout=0.1,dropout=0.2,lr=0.05,wd=0.001"
    spelled = train(Architecture.parse(f"augmented^2/mean/mlp-3/-@{extras}"), PLAIN, *rows, 2, [3], CPU)
    recipe = replace(PLAIN, hidden_width=6, input_dropout=0.1, dropout=0.2, learning_rate=0.05, weight_decay=0.001)
    plain = train(Architecture.parse("augmented^2/mean/mlp-3/-"), recipe, *rows, 2, [3], CPU)
    for one, other in zip(spelled.network.parameters(), plain.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_same_seeds_give_the_same_bits(rows: tuple[Rows, Rows]) -> None:
    design = Architecture.parse("augmented^2/adaptive/mlp-2/-")
    recipe = replace(PLAIN, dropout=0.5)
    first, second = (train(design, recipe, *rows, 2, [3, 4], CPU) for _ in range(2))
    for one, other in zip(first.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_linear_design_follows_adam_written_out(rows: tuple[Rows, Rows]) -> None:
    design = Architecture.parse("augmented^2/none/mlp-1/-")
    recipe = replace(PLAIN, max_epochs=5, weight_decay=0.01)
    validation = Rows(rows[0].hops, rows[0].labels)  # so that the last epoch is the best one
    trained = train(design, recipe, rows[0], validation, 2, [0], CPU)
    limit = (6 / 7) ** 0.5
    weight = torch.empty(5, 2).uniform_(-limit, limit, generator=torch.Generator().manual_seed(0)).requires_grad_()
    bias = torch.zeros(1, 2, requires_grad=True)
    moments = [[torch.zeros_like(p), torch.zeros_like(p)] for p in (weight, bias)]
    states = []
    for step in range(1, 6):
        loss = F.cross_entropy(rows[0].hops[-1] @ weight + bias, rows[0].labels)
        gradients = torch.autograd.grad(loss, [weight, bias])
        with torch.no_grad():
            for p, gradient, (m, v) in zip((weight, bias), gradients, moments, strict=True):
                gradient = gradient + recipe.weight_decay * p
                m.mul_(0.9).add_(0.1 * gradient)
                v.mul_(0.999).add_(0.001 * gradient**2)
                p -= recipe.learning_rate * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
        states.append(weight.detach().clone())
    expected = states[int(trained.best_epochs[0]) - 1]
    torch.testing.assert_close(trained.network.transform.weights[0][0], expected, rtol=1e-4, atol=1e-5)


def test_the_best_epoch_is_kept_and_not_the_last(rows: tuple[Rows, Rows]) -> None:
    design = Architecture.parse("augmented^2/none/mlp-2/-")
    trained = train(design, replace(PLAIN, learning_rate=0.1, max_epochs=60), *rows, 2, [0], CPU)
    with torch.no_grad():
        outputs = trained.network(trained.network.prepare(rows[1].hops))
    accuracy = (outputs.argmax(2) == rows[1].labels).double().mean().item()
    assert accuracy == trained.validation_scores[0] == max(score for _, _, score in trained.curve)
    best = [epoch for epoch, _, score in trained.curve if score == accuracy]
    assert trained.best_epochs[0] in best


def test_training_ends_when_every_repeat_has_run_out_of_patience(rows: tuple[Rows, Rows]) -> None:
    recipe = replace(PLAIN, max_epochs=500, patience=10)
    trained = train(Architecture.parse("augmented^2/none/mlp-2/-"), recipe, *rows, 2, [0, 1], CPU)
    assert trained.num_epochs == trained.best_epochs.max() + 10 < 500


def test_a_repeat_that_is_finished_is_trained_no_further(
    rows: tuple[Rows, Rows], monkeypatch: pytest.MonkeyPatch
) -> None:
    present: list[int] = []
    forward = Transform.forward

    def watched(self: Transform, *arguments: Any) -> torch.Tensor:
        present.append(len(self.weights[0]))
        return forward(self, *arguments)

    monkeypatch.setattr(Transform, "forward", watched)
    recipe = replace(PLAIN, patience=3, dropout=0.5, max_epochs=60)
    trained = train(Architecture.parse("augmented^2/mean/mlp-2/-"), recipe, *rows, 2, range(8), CPU)
    assert len(set(trained.best_epochs.tolist())) > 1
    for epoch in range(1, trained.num_epochs + 1):
        # each epoch is a step and a look; a repeat is there until its best epoch lies three epochs back
        there = int((epoch - trained.best_epochs <= 3).sum())
        assert present[2 * epoch - 2 : 2 * epoch] == [there, there]
    assert len(trained.network.transform.weights[0]) == 8


def test_hop_weights_are_trained_without_weight_decay(rows: tuple[Rows, Rows]) -> None:
    blind = Rows(torch.zeros_like(rows[0].hops), rows[0].labels)  # no gradient reaches the hop weights
    design = Architecture.parse("augmented^2/weighted/mlp-1/-")
    trained = train(design, replace(PLAIN, weight_decay=0.5, max_epochs=3), blind, blind, 2, [0], CPU)
    start = np.log(0.9) * np.arange(3)
    np.testing.assert_allclose(trained.network.join.logits[0].detach().numpy(), start, rtol=1e-6)


@pytest.mark.parametrize("message", ["concat", "weighted"])
def test_repeats_trained_in_groups_come_together(message: str, rows: tuple[Rows, Rows]) -> None:
    design = Architecture.parse(f"augmented^2/{message}/mlp-2/-")
    recipe = replace(PLAIN, patience=3, max_epochs=40)
    groups = [train(design, recipe, *rows, 2, seeds, CPU) for seeds in ([1, 2], [3])]
    whole = together(groups, design, 5, recipe.hidden_width, 2)
    assert whole.best_epochs.tolist() == [*groups[0].best_epochs, *groups[1].best_epochs]
    assert whole.num_epochs == max(group.num_epochs for group in groups)
    with torch.no_grad():
        one, other, all_three = (t.network(t.network.prepare(rows[1].hops)) for t in (*groups, whole))
    torch.testing.assert_close(all_three, torch.cat([one, other]), rtol=1e-5, atol=1e-6)
    (_, loss, score), (_, loss_2, score_2) = groups[0].curve[0], groups[1].curve[0]
    assert whole.curve[0] == pytest.approx((1, (2 * loss + loss_2) / 3, (2 * score + score_2) / 3))
    assert whole.curve[-1][0] == whole.num_epochs


def test_balanced_weights_count_classes_alike(rows: tuple[Rows, Rows]) -> None:
    # nothing to see: only the bias learns. Unweighted it follows the majority, balanced it must stay even.
    labels = torch.tensor([0] * 20 + [1] * 4)
    blind = Rows(torch.zeros(1, 24, 5), labels)
    design = Architecture.parse("-/-/mlp-1/-")
    for class_weight, even in (("balanced", True), ("none", False)):
        recipe = replace(PLAIN, class_weight=class_weight, max_epochs=20)
        trained = train(design, recipe, blind, blind, 2, [0], CPU)
        bias = trained.network.transform.biases[0].detach()[0, 0]
        # Adam makes steps even of gradients that are rounding errors; following the majority moves it by over 0.1
        assert (abs(float(bias[0] - bias[1])) < 1e-2) == even


def test_divergence_is_a_failure_with_a_reason(rows: tuple[Rows, Rows]) -> None:
    huge = Rows(rows[0].hops * 1e38, rows[0].labels)
    with pytest.raises(TrialFailure, match="training diverged: the loss is not finite after epoch"):
        train(Architecture.parse("augmented^2/none/mlp-3/-"), PLAIN, huge, huge, 2, [0], CPU)
