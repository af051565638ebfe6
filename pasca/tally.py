"""Tally: where a search stands, kept up to date trial by trial at a cost that does not grow with their number."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from engines.history import INTERRUPTED, History, gains
from engines.objectives import Bound, Objective
from engines.search.pareto import front, hypervolume
from engines.trial import Status, Trial
from pasca.progress import Standing

D = TypeVar("D")

PACE_TRIALS = 10
"""Trials that say how long the next one will take."""


class Tally(Generic[D]):
    """Counts and front of a growing history.

    Args:
        history: the trials before the first update.
        total: evaluations asked for.
        reference: gives the reference point in measured values, or None while there is none.
    """

    def __init__(
        self,
        history: History[D],
        objectives: Sequence[Objective],
        bounds: Sequence[Bound],
        total: int,
        reference: Callable[[], dict[str, float] | None],
    ) -> None:
        self._objectives, self._bounds, self._total, self._reference = (
            tuple(objectives),
            tuple(bounds),
            total,
            reference,
        )
        self._history = history
        self.front = front(history, objectives, bounds)
        self._running: set[int] = {trial.number for trial in history.running}
        self._done, self._failed = 0, 0
        self._seconds: deque[float] = deque(maxlen=PACE_TRIALS)
        self._seconds_a_seed: dict[str, float] = {}
        for trial in history:
            self._count(trial)

    def update(self, trial: Trial[D]) -> None:
        """Take in a trial that has started or finished."""
        if not trial.finished:
            self._running.add(trial.number)
            return
        self._running.discard(trial.number)
        self._count(trial)
        self._history = self._history.with_trial(trial)
        if trial.repeats_of is not None:  # its design's values change, for better or worse
            self.front = front(self._history, self._objectives, self._bounds)
            return
        # What is dominated stays dominated, so the front of the front and one more trial is the front of all.
        self.front = front([*self.front, trial], self._objectives, self._bounds)

    @property
    def seconds_per_trial(self) -> float:
        """Mean over the trials that finished last, since later ones often take longer; 0 before there is one."""
        return statistics.fmean(self._seconds) if self._seconds else 0.0

    def seconds_needed(self, repeats: int, retrained: Sequence[D] = (), num_seeds: int = 0) -> float:
        """What one more trial and the retraining would take.

        Each design of the retraining is taken to need what its own training took, or the pace of trials where there
        was none; the next trial is taken to end up on the front.

        Args:
            repeats: trainings of a trial.
            retrained: designs that are trained again in the end, besides the front.
            num_seeds: how often; 0 where nothing is retrained.
        """
        pace = self.seconds_per_trial
        designs = dict.fromkeys(str(design) for design in (*(trial.design for trial in self.front), *retrained))
        a_seed = [self._seconds_a_seed.get(design, pace / repeats) for design in designs]
        return pace + num_seeds * (pace / repeats + sum(a_seed))

    def standing(self, seconds_left: float | None = None) -> Standing:
        """Where the search stands."""
        return Standing(
            done=self._done,
            total=self._total,
            running=len(self._running),
            failed=self._failed,
            front_size=len(self.front),
            hypervolume=hypervolume_of(self.front, self._objectives, self._reference()),
            seconds_left=seconds_left,
        )

    def _count(self, trial: Trial[D]) -> None:
        if trial.finished and trial.repeats_of is None and trial.reason != INTERRUPTED:
            self._done += 1
            self._failed += trial.status is Status.FAILED
            self._seconds.append(trial.seconds)
            if trial.status is Status.COMPLETE and trial.seeds:
                self._seconds_a_seed[str(trial.design)] = trial.seconds / len(trial.seeds)


def hypervolume_of(
    trials: Sequence[Trial[D]], objectives: Sequence[Objective], reference: dict[str, float] | None
) -> float | None:
    """Hypervolume of trials with values, in the product of the objectives' units; None without a reference point."""
    if reference is None:
        return None
    if not trials:
        return 0.0
    Y, _ = gains(trials, objectives)
    corner = np.array([float(o.gains(np.asarray([reference[o.name]]))[0]) for o in objectives])
    return hypervolume(Y, corner)
