"""Training of one design by the ranks of a group, through a parameter server.

Under bsp it does, step by step, what `training.train` does in one process: the batch is global and divided among the
ranks that own its rows, masks belong to rows, and the step follows the mean over the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engines.evaluation.communicator import Communicator
from engines.evaluation.metrics import score
from engines.evaluation.parameter_server import ParameterServer, ServerSettings
from engines.evaluation.recipe import Recipe
from engines.evaluation.row_dropout import RowDropout
from engines.evaluation.training import BestWeights, Trained, class_weights, row_losses, seed_generators
from search_space.architecture import Architecture
from search_space.assembly import Network
from search_space.errors import ConfigError, TrialFailure

MEETING_EPOCHS = 10
"""Under ssp and asp, workers meet about every so many epochs to look at the validation nodes with equal weights."""


@dataclass(frozen=True, eq=False)
class OwnRows:
    """One rank's share of the training or validation nodes.

    Attributes:
        hops: (k, n, F) float32 of the own rows, the hops that `required_hops` names.
        places: (n,) ascending places of the own rows among all rows of the part.
        labels: (m,) int64 of all rows of the part, on every rank.
    """

    hops: torch.Tensor
    places: torch.Tensor
    labels: torch.Tensor


class Batches:
    """The batches of an epoch, the same on every rank.

    Args:
        num_rows: m training rows.
        batch_rows: of a whole batch; None for one batch of all rows, in order.
        seed: of the order, which is new in each epoch.
    Raises:
        ConfigError: the batch is empty.
    """

    def __init__(self, num_rows: int, batch_rows: int | None, seed: int) -> None:
        if batch_rows is not None and batch_rows < 1:
            raise ConfigError(f"a batch has at least 1 row, got {batch_rows}")
        self._num_rows, self._batch_rows, self._seed = num_rows, batch_rows, seed

    def of_epoch(self, epoch: int) -> list[torch.Tensor]:
        """Ascending row numbers of each batch; the last batch may be shorter."""
        if self._batch_rows is None or self._batch_rows >= self._num_rows:
            return [torch.arange(self._num_rows)]
        order = torch.from_numpy(np.random.default_rng([self._seed, epoch]).permutation(self._num_rows))
        return [torch.sort(part).values for part in torch.split(order, self._batch_rows)]


class GroupModel:
    """One rank's network and rows: gradients of its share of a batch, and validation scores of all.

    Args:
        communicator: the ranks of the group.
        train, validation: of this rank.
    """

    def __init__(
        self,
        communicator: Communicator,
        design: Architecture,
        recipe: Recipe,
        train: OwnRows,
        validation: OwnRows,
        num_classes: int,
        seeds: Sequence[int],
    ) -> None:
        cpu = torch.device("cpu")
        self._communicator, self._recipe = communicator, recipe
        self._train, self._validation = train, validation
        self.network = Network(
            design, train.hops.shape[2], num_classes, recipe.hidden_width, seed_generators(seeds, cpu)
        )
        self._num_repeats = len(seeds)
        mask_generators = seed_generators(seeds, cpu)
        self._input_dropout = RowDropout(recipe.input_dropout, mask_generators)
        self._hidden_dropout = RowDropout(recipe.dropout, mask_generators)
        with torch.no_grad():
            self._inputs = self.network.prepare(train.hops).contiguous()
            self._validation_inputs = self.network.prepare(validation.hops).contiguous()
        balanced = recipe.class_weight == "balanced"
        weights = class_weights(train.labels, num_classes) if balanced else torch.ones(num_classes)
        self._train_weights, self._validation_weights = weights[train.labels], weights[validation.labels]

    @property
    def weights(self) -> NDArray[np.float32]:
        """All parameters as one (d,) array."""
        return torch.cat([parameter.detach().reshape(-1) for parameter in self.network.parameters()]).numpy()

    @property
    def decay(self) -> NDArray[np.float32]:
        """(d,) weight decay of each parameter."""
        undecayed = self.network.undecayed_parameters()
        rates = [
            torch.full((p.numel(),), 0.0 if any(p is q for q in undecayed) else self._recipe.weight_decay)
            for p in self.network.parameters()
        ]
        return torch.cat(rates).numpy()

    def load(self, weights: NDArray[np.float32]) -> None:
        """Take over (d,) weights."""
        first = 0
        with torch.no_grad():
            for parameter in self.network.parameters():
                last = first + parameter.numel()
                parameter.copy_(torch.from_numpy(weights[first:last]).view_as(parameter))
                first = last

    def gradient(self, batch: torch.Tensor) -> tuple[float, NDArray[np.float32], float]:
        """This rank's share of a batch, the (d,) gradient of the mean loss over it, and that loss, mean over repeats.

        The share is by row weights; without rows it is 0, and so are gradient and loss.
        """
        within = torch.isin(batch, self._train.places)
        places = torch.nonzero(within).reshape(-1)
        self._input_dropout.set_rows(batch.numel(), places)
        self._hidden_dropout.set_rows(batch.numel(), places)
        rows = torch.searchsorted(self._train.places, batch[within])
        inputs = self._inputs if rows.numel() == self._train.places.numel() else self._inputs[..., rows, :]
        # Also without rows: the masks that others draw must be drawn here too.
        outputs = self.network(inputs, self._input_dropout, self._hidden_dropout)
        own = self._train_weights[batch[within]]
        share = float(own.double().sum() / self._train_weights[batch].double().sum())
        if share == 0.0:
            return 0.0, np.zeros(sum(p.numel() for p in self.network.parameters()), dtype=np.float32), 0.0
        self.network.zero_grad(set_to_none=True)
        losses = (row_losses(outputs, self._train.labels[batch[within]]) * own).sum(dim=1) / own.sum()
        losses.sum().backward()  # type: ignore[no-untyped-call]
        parts = [(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in self.network.parameters()]
        return share, torch.cat(parts).numpy(), float(losses.detach().mean())

    def validate(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores and losses of all validation rows, (S,) each, the same on every rank; every rank calls this."""
        own, labels = self._validation.places, self._validation.labels
        with torch.no_grad():
            outputs = self.network(self._validation_inputs)
            losses = row_losses(outputs, labels[own]) * self._validation_weights[own]
        hits = (outputs.argmax(dim=2) == labels[own]).double().sum(dim=1)
        sums = self._communicator.sum(torch.stack((losses.double().sum(dim=1), hits)).numpy())
        means = sums[0] / float(self._validation_weights.double().sum())
        if self._recipe.metric == "accuracy":
            return sums[1] / labels.numel(), means
        probabilities = torch.softmax(outputs, dim=2).permute(1, 0, 2).contiguous().numpy()
        everybody = gather_in_order(self._communicator, probabilities, own.numpy())
        truth = labels.numpy()
        scores = [score(self._recipe.metric, everybody[:, repeat], truth) for repeat in range(self._num_repeats)]
        return np.asarray(scores), means


def patience_in_looks(recipe: Recipe, look_every: int) -> int:
    """Epochs without a better score after which a repeat ends, where the validation nodes are looked at less often.

    It is as many looks as with the recipe's own `evaluate_every`: a few looks in a row say as little as a few epochs.
    """
    return recipe.patience * max(1, -(-look_every // recipe.evaluate_every))


def gather_in_order(
    communicator: Communicator, rows: NDArray[np.float32], places: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The (n, ...) rows of all ranks, each at its place; every rank calls this and gets all of them."""
    found = communicator.gather(rows)
    whole = np.empty((sum(part.shape[0] for part in found), *rows.shape[1:]), dtype=np.float32)
    for where, part in zip(communicator.gather(places), found, strict=True):
        whole[where] = part
    return whole


def train_in_group(
    communicator: Communicator,
    design: Architecture,
    recipe: Recipe,
    train: OwnRows,
    validation: OwnRows,
    num_classes: int,
    seeds: Sequence[int],
    settings: ServerSettings,
    batch_rows: int | None = None,
) -> Trained:
    """Train one design once per seed on all ranks of a group; each gets the same result.

    Under ssp and asp the workers run freely between two meetings. There they look at the validation nodes with the
    weights of that moment, and with those that the first rank had at each look since the last meeting.

    Args:
        batch_rows: of the global batch; None for all training rows at once.
    Raises:
        TrialFailure: the loss is not finite; on every rank alike.
    """
    model = GroupModel(communicator, design, recipe, train, validation, num_classes, seeds)
    server = ParameterServer(
        communicator, model.weights, learning_rate=recipe.learning_rate, decay=model.decay, settings=settings
    )
    try:
        batches = Batches(train.labels.numel(), batch_rows, seeds[0])
        return _Run(communicator, recipe, model, server, batches, settings).run()
    finally:
        server.close()


class _Run:
    """One training: the clock, and the weights that need not be pulled again."""

    def __init__(
        self,
        communicator: Communicator,
        recipe: Recipe,
        model: GroupModel,
        server: ParameterServer,
        batches: Batches,
        settings: ServerSettings,
    ) -> None:
        self._communicator, self._recipe, self._model, self._server = communicator, recipe, model, server
        self._batches = batches
        meeting = recipe.evaluate_every if settings.consistency.joint_steps else MEETING_EPOCHS
        self._meet_every = recipe.evaluate_every * max(1, meeting // recipe.evaluate_every)
        self._best = BestWeights(model.network, len(next(model.network.parameters())))
        self._curve: list[tuple[int, float, float]] = []
        self._clock = 0
        self._loaded = False

    def run(self) -> Trained:
        recipe, best = self._recipe, self._best
        losses: dict[int, float] = {}
        seen: dict[int, NDArray[np.float32]] = {}
        epoch = 0
        for epoch in range(1, recipe.max_epochs + 1):
            losses[epoch], first_seen = self._epoch(epoch)
            if self._communicator.rank == 0 and first_seen is not None and (epoch - 1) % recipe.evaluate_every == 0:
                seen[epoch - 1] = first_seen
            if epoch % self._meet_every and epoch < recipe.max_epochs:
                continue
            now = self._server.pull(self._clock, strictly=True)
            for earlier in range(recipe.evaluate_every, epoch, recipe.evaluate_every):
                if earlier in losses:
                    self._look(earlier, losses[earlier], self._of_first_rank(seen.get(earlier), now.size))
            self._look(epoch, losses[epoch], now)
            self._loaded = True
            if not best.active.any():
                break
            losses, seen = {}, {}
        best.restore()
        return Trained(self._model.network.eval(), best.epochs, best.scores, best.losses, epoch, self._curve)

    def _look(self, epoch: int, loss: float, weights: NDArray[np.float32]) -> None:
        """Score the validation nodes with the same weights on every rank; `loss` is this rank's part."""
        self._model.load(weights)
        scores, losses = self._model.validate()
        train_loss = float(self._communicator.sum(np.array([loss]))[0])
        if not (np.isfinite(train_loss) and np.isfinite(losses).all()):
            raise TrialFailure(f"training diverged: the loss is not finite after epoch {epoch}")
        self._curve.append((epoch, train_loss, float(scores.mean())))
        self._best.update(epoch, scores, losses, self._recipe.patience)

    def _of_first_rank(self, seen: NDArray[np.float32] | None, size: int) -> NDArray[np.float32]:
        """The weights with which the first rank began the epoch after a look that had no meeting, on every rank."""
        weights = np.empty(size, np.float32) if seen is None else seen
        self._communicator.broadcast(weights)
        return weights

    def _epoch(self, epoch: int) -> tuple[float, NDArray[np.float32] | None]:
        """This rank's part of the mean loss over the epoch's batches, and the weights pulled at its start, if any."""
        batches = self._batches.of_epoch(epoch)
        total, first_seen = 0.0, None
        for number, batch in enumerate(batches):
            if not self._loaded:
                weights = self._server.pull(self._clock)
                self._model.load(weights)
                first_seen = weights if number == 0 else first_seen
            self._loaded = False
            share, gradient, loss = self._model.gradient(batch)
            self._server.push(self._clock, share, gradient)
            self._clock += 1
            total += share * loss * batch.numel()
        return total / sum(batch.numel() for batch in batches), first_seen
