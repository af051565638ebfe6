"""Consensus ADMM: each rank trains on its own rows and they agree on one model now and then, with few messages.

Minimise Σ_r f_r(x_r) subject to x_r = z, where f_r is rank r's share of the mean loss over the batch, weight decay
included. A round is: local steps on f_r(x) + ρ/2 |x - z + u_r|² that begin at z, then z the mean of x_r + u_r, then
u_r += x_r - z. Source: Boyd et al. 2011, sections 7.1 (consensus), 3.3 (stopping) and 3.4.1 (a penalty that varies);
Wohlberg 2017 (the residuals that vary it are relative ones). The loss is not convex and a few steps do not minimise it,
so this is a heuristic, judged by validation like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engines.evaluation.communicator import Communicator
from engines.evaluation.group_training import GroupModel, OwnRows, patience_in_looks
from engines.evaluation.recipe import Recipe
from engines.evaluation.shard import Adam
from engines.evaluation.training import BestWeights, Trained
from search_space.architecture import Architecture
from search_space.errors import ConfigError, TrialFailure

Floats = NDArray[np.float32]

# As for the optimiser: the loss says that a training diverges.
_DIVERGING = np.errstate(over="ignore", invalid="ignore", divide="ignore")


@dataclass(frozen=True, slots=True)
class AdmmSettings:
    """How ranks come to agree.

    Attributes:
        local_steps: full-batch steps of a rank between two rounds.
        penalty: ρ at the start.
        ratio: the penalty is doubled when the primal residual is that many times the dual one, halved when the reverse,
            each as a share of what it is measured against: the loss falls by far less than the weights move, so that
            plain residuals would double the penalty until nobody learns.
        tolerance: training ends when both shares are below this.
    Raises:
        ConfigError: a value is out of range.
    """

    local_steps: int = 18
    penalty: float = 1e-4
    ratio: float = 10.0
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        if self.local_steps < 1:
            raise ConfigError(f"local_steps is at least 1, got {self.local_steps}")
        if not (self.penalty > 0.0 and self.ratio > 1.0 and self.tolerance > 0.0):
            raise ConfigError(
                f"admm needs penalty and tolerance above 0 and a ratio above 1, got {self.penalty}, {self.tolerance} "
                f"and {self.ratio}"
            )


@dataclass(frozen=True, slots=True)
class Residuals:
    """How far a round is from agreement.

    Attributes:
        primal: |x - z| over all ranks; dual: ρ |z - z of the round before| √P.
        primal_scale, dual_scale: what they are measured against: the larger of |x| and |z| √P, and ρ |u|.
        penalty: ρ of the round.
    """

    primal: float
    dual: float
    primal_scale: float
    dual_scale: float
    penalty: float

    def larger(self, ratio: float) -> str | None:
        """`primal` or `dual` when that one is more than `ratio` times the other, both relative to their scales."""
        primal, dual = self.primal * self.dual_scale, self.dual * self.primal_scale
        if primal > ratio * dual:
            return "primal"
        return "dual" if dual > ratio * primal else None

    def small(self, tolerance: float) -> bool:
        """Whether both are small."""
        return self.primal <= tolerance * self.primal_scale and self.dual <= tolerance * self.dual_scale


class Consensus:
    """One rank's part of ADMM: its weights, its scaled dual and the common variable.

    Args:
        communicator: the ranks.
        start: (d,) equal on all ranks.
        has_rows: whether this rank has a loss of its own; one that has none follows the others.
        settings: see AdmmSettings.
    Attributes:
        common: z, (d,), equal on all ranks.
        penalty: ρ, equal on all ranks.
    """

    def __init__(self, communicator: Communicator, start: Floats, has_rows: bool, settings: AdmmSettings) -> None:
        self._communicator, self._settings = communicator, settings
        self.common, self.penalty = start.copy(), settings.penalty
        self._dual = np.zeros_like(start)
        self._has_rows = has_rows
        self._num_members = int(communicator.sum(np.array([int(has_rows)]))[0])

    @_DIVERGING
    def pull_towards(self, weights: Floats) -> Floats:
        """Gradient of ρ/2 |x - z + u|² at x, (d,)."""
        return np.float32(self.penalty) * (weights - self.common + self._dual)

    @_DIVERGING
    def agree(self, weights: Floats) -> Residuals:
        """End a round with this rank's x: a new z, new duals, and a new penalty; every rank calls this."""
        before, penalty = self.common, self.penalty
        mine = weights + self._dual if self._has_rows else np.zeros_like(weights)
        total = self._communicator.sum(mine)
        self.common = (total / self._num_members).astype(np.float32)
        if self._has_rows:
            self._dual += weights - self.common
            squares = [_square(weights - self.common), _square(weights), _square(self._dual)]
        else:
            squares = [0.0, 0.0, 0.0]
        primal, own, dual = np.sqrt(self._communicator.sum(np.array(squares)))
        members = np.sqrt(self._num_members)
        residuals = Residuals(
            primal=float(primal),
            dual=float(penalty * members * np.sqrt(_square(self.common - before))),
            primal_scale=float(max(own, members * np.sqrt(_square(self.common)))),
            dual_scale=float(penalty * dual),
            penalty=penalty,
        )
        self._adapt(residuals)
        return residuals

    def _adapt(self, residuals: Residuals) -> None:
        factor = {"primal": 2.0, "dual": 0.5, None: 1.0}[residuals.larger(self._settings.ratio)]
        self.penalty *= factor
        self._dual /= np.float32(factor)  # u is the dual over ρ


def train_by_admm(
    communicator: Communicator,
    design: Architecture,
    recipe: Recipe,
    train: OwnRows,
    validation: OwnRows,
    num_classes: int,
    seeds: Sequence[int],
    settings: AdmmSettings,
) -> tuple[Trained, list[Residuals]]:
    """Train one design once per seed on all ranks of a group; each gets the same result.

    An epoch is one local step. The common variable is what is validated, after every round.

    Returns:
        What was trained, and the residuals of every round.
    Raises:
        TrialFailure: the loss is not finite; on every rank alike.
    """
    model = GroupModel(communicator, design, recipe, train, validation, num_classes, seeds)
    start, decay = model.weights, model.decay
    consensus = Consensus(communicator, start, train.places.numel() > 0, settings)
    optimiser = Adam(start.size, recipe.learning_rate, np.zeros_like(start))
    batch = torch.arange(train.labels.numel())
    best = BestWeights(model.network, len(seeds))
    curve: list[tuple[int, float, float]] = []
    rounds: list[Residuals] = []
    patience, epoch = patience_in_looks(recipe, settings.local_steps), 0
    while epoch < recipe.max_epochs and best.active.any():
        weights, loss = consensus.common.copy(), 0.0
        for _ in range(min(settings.local_steps, recipe.max_epochs - epoch)):
            model.load(weights)
            share, gradient, own_loss = model.gradient(batch)
            loss = share * own_loss
            if share > 0.0:
                own = np.float32(share) * (gradient + decay * weights)
                optimiser.step(weights, own + consensus.pull_towards(weights))
            epoch += 1
        rounds.append(consensus.agree(weights))
        model.load(consensus.common)
        scores, losses = model.validate()
        train_loss = float(communicator.sum(np.array([loss]))[0])
        if not (np.isfinite(train_loss) and np.isfinite(losses).all()):
            raise TrialFailure(f"training diverged: the loss is not finite after epoch {epoch}")
        curve.append((epoch, train_loss, float(scores.mean())))
        best.update(epoch, scores, losses, patience)
        if rounds[-1].small(settings.tolerance):
            break
    best.restore()
    return Trained(model.network.eval(), best.epochs, best.scores, best.losses, epoch, curve), rounds


def _square(values: Floats) -> float:
    """|values|², summed in float64."""
    return float(np.einsum("i,i->", values, values, dtype=np.float64))
