"""Training: all repeats of one design as one batched network, with the best epoch kept for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from engines.evaluation.allocator import keeping_large_blocks
from engines.evaluation.batch_norm import BatchNormalised
from engines.evaluation.consistency import NUM_VIEWS, Consistency
from engines.evaluation.dropout import RepeatDropout
from engines.evaluation.feeding import Feed, OpenFeed, Rows, WholeFeed
from engines.evaluation.further_inputs import FurtherRows
from engines.evaluation.label_reuse import LabelReuse
from engines.evaluation.metrics import score
from engines.evaluation.recipe import Recipe, recipe_of
from search_space.architecture import Architecture
from search_space.assembly import Network
from search_space.errors import TrialFailure


@dataclass(frozen=True, eq=False)
class Trained:
    """A network that holds each repeat's best weights, and how they were found.

    Attributes:
        network: in evaluation mode.
        best_epochs: (S,) epoch of each repeat's weights, from 1.
        validation_scores, validation_losses: (S,) at that epoch, of the transform's output.
        num_epochs: epochs run.
        curve: for each look at the validation nodes: epoch, mean training loss and mean validation score over the
            repeats that were still training.
    """

    network: Network
    best_epochs: NDArray[np.int64]
    validation_scores: NDArray[np.float64]
    validation_losses: NDArray[np.float64]
    num_epochs: int
    curve: list[tuple[int, float, float]]


@dataclass(frozen=True, eq=False)
class FurtherParts:
    """Further inputs of the training rows and of the validation rows, for a design that takes them."""

    train: FurtherRows
    validation: FurtherRows


def seed_generators(seeds: Sequence[int], device: torch.device) -> list[torch.Generator]:
    """One generator per repeat, seeded by the repeat's seed alone."""
    return [torch.Generator(device=device).manual_seed(seed) for seed in seeds]


def train(
    design: Architecture,
    recipe: Recipe,
    train_rows: Rows,
    validation_rows: Rows,
    num_classes: int,
    seeds: Sequence[int],
    device: torch.device,
) -> Trained:
    """Train one design once per seed on all rows at once; otherwise as `train_from`."""
    return train_from(WholeFeed(train_rows, validation_rows, device), design, recipe, num_classes, seeds, device)


def train_from(
    feed: Feed,
    design: Architecture,
    recipe: Recipe,
    num_classes: int,
    seeds: Sequence[int],
    device: torch.device,
    labels_shown: LabelReuse | None = None,
    further: FurtherParts | None = None,
    consistency: Consistency | None = None,
) -> Trained:
    """Train one design once per seed, by the recipe with what the design says otherwise.

    The loss of a repeat is its mean cross-entropy over the rows of a batch; repeats share nothing, so their losses are
    added. A repeat's best epoch has the highest validation score, ties going to the lower validation loss; it stops
    training when its patience is out, and the others go on without it. What a repeat becomes does not depend on the
    repeats beside it.

    Args:
        labels_shown: for a design that reuses labels, whose training rows come all at once.
        further: for a design that takes further inputs; as before.
        consistency: for a design that is to be consistent where there are no labels.
    Raises:
        TrialFailure: the loss is not finite.
    """
    recipe = recipe_of(design, recipe)
    network = Network(
        design,
        feed.num_features,
        num_classes,
        recipe.hidden_width,
        seed_generators(seeds, torch.device("cpu")),
        None if further is None or further.train.adjacency is None else further.train.adjacency.shape[1],
    ).to(device)
    mask_generators = seed_generators(seeds, device)
    input_dropout = RepeatDropout(recipe.input_dropout, mask_generators)
    hidden_dropout = RepeatDropout(recipe.dropout, mask_generators)
    label_generators = seed_generators(seeds, torch.device("cpu"))
    normalised = BatchNormalised(network) if design.norm == "batch" else None
    learner, settled = (network, network) if normalised is None else (normalised, normalised.settled)
    optimiser = _optimiser(learner, network.undecayed_parameters(), recipe)
    weights = class_weights(feed.labels, num_classes) if recipe.class_weight == "balanced" else None
    best = BestWeights(settled, len(seeds))
    curve: list[tuple[int, float, float]] = []
    epoch = 0
    others = None if consistency is None else consistency.prepare(network)
    with keeping_large_blocks(), feed.open(network) as rows:
        for epoch in range(1, recipe.max_epochs + 1):
            steps: list[tuple[torch.Tensor, int]] = []
            for inputs, labels in rows.batches(epoch):
                optimiser.zero_grad(set_to_none=True)
                also, beside = FurtherRows() if further is None else further.train, None
                if consistency is not None and others is not None:
                    places = consistency.places(epoch)
                    beside = consistency.nodes(places)
                    drawn = others.index_select(others.dim() - 2, torch.from_numpy(places).to(device))
                    inputs = torch.cat((inputs, drawn), dim=inputs.dim() - 2)
                    also = also if further is None else also.followed_by(consistency.further(places))
                shown, counted = None, None
                if labels_shown is not None:
                    shown, counted = labels_shown.draw(label_generators, beside)
                shown, counted = _on(shown, device), _on(counted, device)
                views = [
                    learner(inputs, input_dropout, hidden_dropout, shown, also.adjacency, also.structure)
                    for _ in range(1 if consistency is None else NUM_VIEWS)
                ]
                n = labels.numel()
                losses = torch.stack([_losses(view[:, :n], labels, weights, counted) for view in views]).mean(dim=0)
                if consistency is not None:
                    losses = losses + consistency.losses([view[:, n:] for view in views])
                losses.sum().backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                steps.append((losses.detach().mean(), labels.numel()))
            if epoch % recipe.evaluate_every and epoch < recipe.max_epochs:
                continue
            if normalised is not None:
                normalised.settle()
            outputs = _validation_outputs(settled, rows, labels_shown, further)
            validation_losses = _losses(outputs, feed.validation_labels, weights).double().cpu().numpy()
            train_loss = sum(float(loss) * (n / feed.labels.numel()) for loss, n in steps)
            if not (np.isfinite(train_loss) and np.isfinite(validation_losses).all()):
                raise TrialFailure(f"training diverged: the loss is not finite after epoch {epoch}")
            scores = validation_scores(recipe.metric, outputs, feed.validation_labels)
            curve.append((epoch, train_loss, float(scores.mean())))
            best.update(epoch, scores, validation_losses, recipe.patience)
            if not best.active.any():
                break
            going_on = best.leave_out_finished()
            if going_on is not None:
                _keep_repeats(learner, going_on, optimiser)
                if settled is not network:
                    _keep_repeats(settled, going_on)
                input_dropout.keep_repeats(going_on)
                hidden_dropout.keep_repeats(going_on)
                label_generators = [label_generators[place] for place in going_on]
    best.restore()
    return Trained(settled.eval(), best.epochs, best.scores, best.losses, epoch, curve)


def _keep_repeats(learner: nn.Module, kept: Sequence[int], optimiser: torch.optim.Optimizer | None = None) -> None:
    """Go on with some of the repeats in a network and in its optimiser, by their places in it."""
    rows = torch.tensor(kept, device=next(learner.parameters()).device)
    if isinstance(learner, BatchNormalised):
        learner.keep_repeats(rows)
    for module in learner.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            smaller = nn.Parameter(parameter.detach()[rows], requires_grad=parameter.requires_grad)
            module.register_parameter(name, smaller)
            if optimiser is None or not parameter.requires_grad:
                continue
            for group in optimiser.param_groups:
                group["params"] = [smaller if one is parameter else one for one in group["params"]]
            state = optimiser.state.pop(parameter)
            optimiser.state[smaller] = {
                key: value[rows] if value.shape == parameter.shape else value for key, value in state.items()
            }


def together(
    parts: Sequence[Trained],
    design: Architecture,
    num_features: int,
    hidden_width: int,
    num_classes: int,
    num_nodes: int | None = None,
) -> Trained:
    """One result from groups of repeats of the same design that were trained one group after the other.

    A point of the curve is the mean over the repeats whose group was still training then.
    """
    if len(parts) == 1:
        return parts[0]
    sizes = [part.best_epochs.size for part in parts]
    # starting weights are drawn and then replaced
    network = Network(
        design,
        num_features,
        num_classes,
        hidden_width,
        seed_generators(range(sum(sizes)), torch.device("cpu")),
        num_nodes,
    ).to(next(parts[0].network.parameters()).device)
    with torch.no_grad():
        for whole, *pieces in zip(network.parameters(), *(part.network.parameters() for part in parts), strict=True):
            whole.copy_(torch.cat(pieces))
    points: dict[int, list[tuple[int, float, float]]] = {}
    for part, size in zip(parts, sizes, strict=True):
        for epoch, loss, mean_score in part.curve:
            points.setdefault(epoch, []).append((size, loss, mean_score))
    curve = [(epoch, _mean(points[epoch], 1), _mean(points[epoch], 2)) for epoch in sorted(points)]
    return Trained(
        network.eval(),
        np.concatenate([part.best_epochs for part in parts]),
        np.concatenate([part.validation_scores for part in parts]),
        np.concatenate([part.validation_losses for part in parts]),
        max(part.num_epochs for part in parts),
        curve,
    )


def _mean(points: Sequence[tuple[int, float, float]], column: int) -> float:
    """Mean of a column, weighted by the first."""
    return sum(point[0] * point[column] for point in points) / sum(point[0] for point in points)


def _on(tensor: torch.Tensor | None, device: torch.device) -> torch.Tensor | None:
    return None if tensor is None else tensor.to(device)


def _validation_outputs(
    network: Network, rows: OpenFeed, labels_shown: LabelReuse | None, further: FurtherParts | None
) -> torch.Tensor:
    """(S, n, C) of all validation rows."""
    with torch.no_grad():
        if labels_shown is not None or further is not None:
            (inputs,) = rows.validation()
            shown = None if labels_shown is None else labels_shown.validation.to(inputs.device)
            also = FurtherRows() if further is None else further.validation
            outputs: torch.Tensor = network(inputs, None, None, shown, also.adjacency, also.structure)
            return outputs
        pieces = [network(inputs) for inputs in rows.validation()]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=1)


class BestWeights:
    """Each repeat's best weights so far.

    Attributes:
        scores, losses, epochs: (S,) of each repeat's best epoch.
        active: (S,) whether its patience lasts.
    """

    def __init__(self, network: Network, num_repeats: int) -> None:
        self._network = network
        self._kept = [parameter.detach().clone() for parameter in network.parameters()]
        # the repeats that are in the network, by their places in it
        self._present = np.arange(num_repeats)
        self.scores = np.full(num_repeats, -np.inf)
        self.losses = np.full(num_repeats, np.inf)
        self.epochs = np.zeros(num_repeats, dtype=np.int64)
        self.active = np.ones(num_repeats, dtype=bool)

    def update(self, epoch: int, scores: NDArray[np.float64], losses: NDArray[np.float64], patience: int) -> None:
        """Take in one look at the validation nodes, by the repeats that are in the network."""
        whose = self._present
        better = self.active[whose] & (
            (scores > self.scores[whose]) | ((scores == self.scores[whose]) & (losses < self.losses[whose]))
        )
        places, repeats = torch.from_numpy(np.flatnonzero(better)), torch.from_numpy(whose[better])
        for kept, parameter in zip(self._kept, self._network.parameters(), strict=True):
            kept[repeats] = parameter.detach()[places]
        improved = whose[better]
        self.scores[improved], self.losses[improved], self.epochs[improved] = scores[better], losses[better], epoch
        self.active &= epoch - self.epochs < patience

    def leave_out_finished(self) -> list[int] | None:
        """Places in the network of the repeats to go on with, which the caller has to keep; None when all do."""
        places = np.flatnonzero(self.active[self._present])
        if places.size == self._present.size:
            return None
        self._present = self._present[places]
        return [int(place) for place in places]

    def restore(self) -> None:
        """Put every repeat's best weights into the network."""
        for kept, parameter in zip(self._kept, self._network.parameters(), strict=True):
            parameter.data = kept


def _optimiser(learner: nn.Module, undecayed: list[nn.Parameter], recipe: Recipe) -> torch.optim.Optimizer:
    learned = [p for p in learner.parameters() if p.requires_grad]
    decayed = [p for p in learned if all(p is not q for q in undecayed)]
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}]
    if undecayed:
        groups.append({"params": undecayed, "weight_decay": 0.0})
    return torch.optim.Adam(groups, lr=recipe.learning_rate, fused=True)


def _losses(
    outputs: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None, counted: torch.Tensor | None = None
) -> torch.Tensor:
    """Mean cross-entropy of each repeat: (S, n, C) and (n,) to (S,).

    Args:
        counted: (S, n) of 0 and 1, which rows of each repeat count; all where None.
    """
    each = row_losses(outputs, labels)
    if counted is not None:
        of_rows = counted if weights is None else counted * weights[labels]
        # a repeat none of whose rows count has nothing to learn from in this step
        return (each * of_rows).sum(dim=1) / of_rows.sum(dim=1).clamp(min=1e-12)
    if weights is None:
        return each.mean(dim=1)
    of_row = weights[labels]
    return (each * of_row).sum(dim=1) / of_row.sum()


def row_losses(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of each row: (S, n, C) and (n,) to (S, n)."""
    S, n, C = outputs.shape
    return F.cross_entropy(outputs.reshape(S * n, C), labels.repeat(S), reduction="none").reshape(S, n)


def class_weights(labels: torch.Tensor, num_classes: int) -> torch.Tensor:
    """n / (C · count) for each class, 1 for a class without training rows."""
    counts = torch.bincount(labels, minlength=num_classes).float()
    return torch.where(counts > 0, labels.numel() / (num_classes * counts.clamp(min=1.0)), torch.ones_like(counts))


def validation_scores(metric: str, outputs: torch.Tensor, labels: torch.Tensor) -> NDArray[np.float64]:
    """Validation score of each repeat, (S,)."""
    if metric == "accuracy":
        return (outputs.argmax(dim=2) == labels).double().mean(dim=1).cpu().numpy()
    probabilities = torch.softmax(outputs, dim=2).cpu().numpy()
    truth = labels.cpu().numpy()
    return np.asarray([score(metric, repeat, truth) for repeat in probabilities])
