"""History: the ordered trials of a run, and the arrays that the search engine derives from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.objectives import Objective
from engines.trial import Status, Trial

D = TypeVar("D")


class History(Generic[D]):
    """Trials in the order of their numbers, running ones included. Never modified: `with_trial` gives a new one."""

    def __init__(self, trials: Iterable[Trial[D]] = ()) -> None:
        self._trials = {trial.number: trial for trial in sorted(trials, key=lambda trial: trial.number)}

    def __len__(self) -> int:
        return len(self._trials)

    def __iter__(self) -> Iterator[Trial[D]]:
        return iter(self._trials.values())

    def __getitem__(self, number: int) -> Trial[D]:
        return self._trials[number]

    def with_trial(self, trial: Trial[D]) -> History[D]:
        """This history with one trial added, or replaced where its number is known."""
        if trial.number not in self._trials and trial.number < next(reversed(self._trials), -1):
            return History([*self, trial])
        # The usual cases, a newest trial and one that has finished, keep the order: no need to sort a long history.
        following: History[D] = History()
        following._trials = {**self._trials, trial.number: trial}
        return following

    def with_status(self, *statuses: Status) -> list[Trial[D]]:
        """Trials with one of the statuses, in order."""
        return [trial for trial in self if trial.status in statuses]

    @property
    def running(self) -> list[Trial[D]]:
        """Trials now being evaluated."""
        return self.with_status(Status.RUNNING)

    @property
    def complete(self) -> list[Trial[D]]:
        """Trials with values from a full evaluation: the only ones that may be on the front."""
        return self.with_status(Status.COMPLETE)

    @property
    def observed(self) -> list[Trial[D]]:
        """Trials with values, early-stopped ones included: what the surrogate learns from."""
        return self.with_status(Status.COMPLETE, Status.STOPPED)

    @property
    def num_evaluations(self) -> int:
        """How many trials count towards a requested total: every first trial that finished, failed ones too.

        Interrupted trials (failed because the process ended) and further seeds of a known design do not count.
        """
        return sum(trial.finished and trial.repeats_of is None and trial.reason != INTERRUPTED for trial in self)

    def attempted(self) -> set[D]:
        """Designs that must not be suggested again: evaluated, failed or running; interrupted ones are free again."""
        return {trial.design for trial in self if trial.reason != INTERRUPTED}


INTERRUPTED = "interrupted"
"""Reason of a trial whose process ended before it did."""


def gains(
    trials: Sequence[Trial[D]], objectives: Sequence[Objective]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values of which larger is better, and their variances, from the same trials in one pass.

    Args:
        trials: n trials with values for every objective.
    Returns:
        Y of shape (n, m) and variances of shape (n, m), NaN where a variance is unknown and 0 for known objectives.
    """
    Y = np.empty((len(trials), len(objectives)))
    variances = np.empty_like(Y)
    for i, trial in enumerate(trials):
        for j, objective in enumerate(objectives):
            Y[i, j] = objective.gains(np.float64(trial.values[objective.name]))  # type: ignore[arg-type]
            unknown = 0.0 if objective.kind == "known" else np.nan
            variances[i, j] = trial.variances.get(objective.name, unknown)
    return Y, variances
