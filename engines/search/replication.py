"""Replication: which observed design deserves further seeds, so that its place on the front becomes certain enough.

The values of a design are means over few seeds. Here they are drawn anew from their uncertainty, all designs at once,
and a design's share of the draws in which nothing dominates it is the probability that it belongs on the front. The one
whose probability is furthest from 0 and 1 gets further seeds, until every design is certain enough or has had enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.history import INTERRUPTED, History, gains
from engines.objectives import Bound, Floats, Objective
from engines.pooling import with_further_seeds
from engines.search.noise import pooled_variances
from engines.search.pareto import keeps_bounds
from engines.trial import Status, Trial
from search_space.errors import ConfigError

D = TypeVar("D")

_NUM_DRAWS = 512
_MOST_CANDIDATES = 64
_DEVIATIONS = 3.0
"""A design that others dominate even with so many deviations in its favour is not drawn."""


@dataclass(frozen=True, slots=True)
class Repeat(Generic[D]):
    """A design that is to be trained with further seeds.

    Attributes:
        first: its first trial.
        record: which record of the design this will be; the first trial is 0.
        probability: that the design is on the front, by what is known.
    """

    first: Trial[D]
    record: int
    probability: float


@dataclass(frozen=True, slots=True)
class Replication:
    """When to add seeds.

    Attributes:
        most: records of one design at most, its first trial included.
        certainty: a design is certain enough when the probability that it is on the front, or that it is not, is this.
    Raises:
        ConfigError: a value is out of range.
    """

    most: int = 4
    certainty: float = 0.95

    def __post_init__(self) -> None:
        if self.most < 2:
            raise ConfigError(f"replication needs at least 2 records of a design, got {self.most}")
        if not 0.5 < self.certainty < 1.0:
            raise ConfigError(f"a certainty is between 0.5 and 1, got {self.certainty}")

    def next(
        self, history: History[D], objectives: Sequence[Objective], bounds: Sequence[Bound] = ()
    ) -> Repeat[D] | None:
        """The design that is to be repeated next.

        None when all are certain enough, are being repeated, or have `most` records (failed ones count), and when no
        variance is known. It depends on the history alone, so a resumed search repeats what the uninterrupted one would
        have; interrupted trials change nothing.
        """
        found = [
            trial
            for trial in with_further_seeds(history)
            if trial.status is Status.COMPLETE and keeps_bounds(trial, bounds)
        ]
        if not found:
            return None
        Y, variances = _estimates(found, objectives)
        chosen = _candidates(Y, variances)
        on_front = front_probabilities(Y[chosen], variances[chosen])
        records = _num_records(history)
        running = {trial.repeats_of for trial in history.running}
        best: Repeat[D] | None = None
        for place, probability in zip(chosen, on_front, strict=True):
            first = found[place]
            if max(probability, 1.0 - probability) >= self.certainty or not variances[place].any():
                continue
            if records[first.number] >= self.most or first.number in running:
                continue
            if best is None or abs(probability - 0.5) < abs(best.probability - 0.5):
                best = Repeat(history[first.number], records[first.number], float(probability))
        return best


def front_probabilities(Y: Floats, variances: Floats) -> Floats:
    """Probability that each of n designs is dominated by none of the others, from draws that are always the same.

    Args:
        Y, variances: (n, m) means, larger is better, and their variances.
    Returns:
        (n,).
    """
    noise = np.random.default_rng(0).standard_normal((_NUM_DRAWS, *Y.shape))
    drawn = Y + noise * np.sqrt(variances)
    on_front = np.ones((_NUM_DRAWS, len(Y)), dtype=bool)
    for j in range(len(Y)):
        other = drawn[:, j : j + 1]
        on_front &= ~((other >= drawn).all(axis=2) & (other > drawn).any(axis=2))
    shares: Floats = on_front.mean(axis=0)
    return shares


def _estimates(trials: Sequence[Trial[D]], objectives: Sequence[Objective]) -> tuple[Floats, Floats]:
    """(n, m) gains and variances; 0 for an objective of which no variance is known."""
    Y, variances = gains(trials, objectives)
    num_seeds = np.array([max(len(trial.seeds), 1) for trial in trials], dtype=np.float64)
    for j, objective in enumerate(objectives):
        if objective.kind != "known":
            variances[:, j] = np.nan_to_num(pooled_variances(variances[:, j], num_seeds), nan=0.0)
    return Y, variances


def _candidates(Y: Floats, variances: Floats) -> NDArray[np.int64]:
    """Places of the designs that may be on the front, those with most in their favour first, ties by place."""
    slack = _DEVIATIONS * np.sqrt(variances)
    hopeful, sure = Y + slack, Y - slack
    beaten = np.zeros(len(Y), dtype=np.int64)
    for low in sure:
        beaten += (low >= hopeful).all(axis=1) & (low > hopeful).any(axis=1)
    order = np.argsort(beaten, kind="stable")
    kept: NDArray[np.int64] = order[beaten[order] == 0][:_MOST_CANDIDATES]
    return kept


def _num_records(history: History[D]) -> dict[int, int]:
    """Records of each first trial, itself included; those that were interrupted left out."""
    records: dict[int, int] = {}
    for trial in history:
        if trial.reason == INTERRUPTED:
            continue
        first = trial.number if trial.repeats_of is None else trial.repeats_of
        records[first] = records.get(first, 0) + 1
    return records
