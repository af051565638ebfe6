"""Consensus ADMM: each rank trains on its own rows and they agree on one model now and then, with few messages.

Minimise Σ_r f_r(x_r) + g(z) subject to x_r = z, where f_r is rank r's share of the mean loss over the batch and g the
weight decay. A round is: local steps on f_r(x) + ρ/2 |x - z + u_r|², then z from the mean of x_r + u_r, then
u_r += x_r - z. Source: Boyd et al. 2011, sections 7.1 (consensus with regularisation), 3.3 (stopping) and 3.4.1 (a
penalty that varies). The loss is not convex, so this is a heuristic, judged by validation like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engines.evaluation.communicator import Communicator
from engines.evaluation.group_training import GroupModel, OwnRows
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
        ratio: the penalty is doubled when the primal residual is that many times the dual one, halved when the reverse.
        tolerance: training ends when both residuals are below this share of what they are measured against.
    Raises:
        ConfigError: a value is out of range.
    """

    local_steps: int = 10
    penalty: float = 0.01
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

    def small(self, tolerance: float) -> bool:
        """Whether both are small."""
        return self.primal <= tolerance * self.primal_scale and self.dual <= tolerance * self.dual_scale


class Consensus:
    """One rank's part of ADMM: its weights, its scaled dual and the common variable.

    Args:
        communicator: the ranks.
        start: (d,) equal on all ranks.
        decay: (d,) weight decay of the common variable.
        has_rows: whether this rank has a loss of its own; one that has none follows the others.
        settings: see AdmmSettings.
    Attributes:
        common: z, (d,), equal on all ranks.
        penalty: ρ, equal on all ranks.
    """

    def __init__(
        self, communicator: Communicator, start: Floats, decay: Floats, has_rows: bool, settings: AdmmSettings
    ) -> None:
        self._communicator, self._decay, self._settings = communicator, decay, settings
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
        # z minimises decay/2 |z|² + Σ_r ρ/2 |x_r - z + u_r|²
        self.common = np.float32(penalty) * total / (self._decay + np.float32(penalty * self._num_members))
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
        factor = 1.0
        if residuals.primal > self._settings.ratio * residuals.dual:
            factor = 2.0
        elif residuals.dual > self._settings.ratio * residuals.primal:
            factor = 0.5
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
    start = model.weights
    consensus = Consensus(communicator, start, model.decay, train.places.numel() > 0, settings)
    optimiser = Adam(start.size, recipe.learning_rate, np.zeros_like(start))
    batch = torch.arange(train.labels.numel())
    best = BestWeights(model.network, len(seeds))
    curve: list[tuple[int, float, float]] = []
    rounds: list[Residuals] = []
    weights, epoch = start.copy(), 0
    while epoch < recipe.max_epochs and best.active.any():
        loss = 0.0
        for _ in range(min(settings.local_steps, recipe.max_epochs - epoch)):
            model.load(weights)
            share, gradient, own_loss = model.gradient(batch)
            loss = share * own_loss
            if share > 0.0:
                optimiser.step(weights, np.float32(share) * gradient + consensus.pull_towards(weights))
            epoch += 1
        rounds.append(consensus.agree(weights))
        model.load(consensus.common)
        scores, losses = model.validate()
        train_loss = float(communicator.sum(np.array([loss]))[0])
        if not (np.isfinite(train_loss) and np.isfinite(losses).all()):
            raise TrialFailure(f"training diverged: the loss is not finite after epoch {epoch}")
        curve.append((epoch, train_loss, float(scores.mean())))
        best.update(epoch, scores, losses, recipe.patience)
        if rounds[-1].small(settings.tolerance):
            break
    best.restore()
    return Trained(model.network.eval(), best.epochs, best.scores, best.losses, epoch, curve), rounds


def _square(values: Floats) -> float:
    """|values|², summed in float64."""
    return float(np.einsum("i,i->", values, values, dtype=np.float64))
