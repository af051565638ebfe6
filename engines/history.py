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
    """Trials in the order of their numbers, running ones included. Never modified: `with_trial` gives a new one.

    A history and those made from it share their content, so that a trial more costs the same however many there are.
    The newest owns it; an older one remembers what its successor changed and takes a copy if it is read once more.
    """

    def __init__(self, trials: Iterable[Trial[D]] = ()) -> None:
        self._own: _Content[D] | None = _Content()
        self._successor: tuple[History[D], int, Trial[D] | None] | None = None
        for trial in sorted(trials, key=lambda trial: trial.number):
            self._own.put(trial)

    def __len__(self) -> int:
        return len(self._content.trials)

    def __iter__(self) -> Iterator[Trial[D]]:
        # A copy, so that trials may be added while somebody goes through them.
        return iter(tuple(self._content.trials.values()))

    def __getitem__(self, number: int) -> Trial[D]:
        return self._content.trials[number]

    def with_trial(self, trial: Trial[D]) -> History[D]:
        """This history with one trial added, or replaced where its number is known."""
        content = self._content
        if trial.number not in content.trials and trial.number < content.last_number:
            return History([*self, trial])
        following: History[D] = History()
        before = content.trials.get(trial.number)
        content.put(trial)
        following._own, self._own = content, None
        self._successor = following, trial.number, before
        return following

    def with_status(self, *statuses: Status) -> list[Trial[D]]:
        """Trials with one of the statuses, in order."""
        return [trial for trial in self if trial.status in statuses]

    @property
    def running(self) -> list[Trial[D]]:
        """Trials now being evaluated."""
        trials = self._content.trials
        return [trials[number] for number in sorted(self._content.running)]

    @property
    def complete(self) -> list[Trial[D]]:
        """Trials with values from a full evaluation: the only ones that may be on the front."""
        return self.with_status(Status.COMPLETE)

    @property
    def observed(self) -> list[Trial[D]]:
        """Trials with values, early-stopped ones included: what the surrogate learns from."""
        return self.with_status(Status.COMPLETE, Status.STOPPED)

    @property
    def last_number(self) -> int:
        """The largest number of a trial; -1 without trials."""
        return self._content.last_number

    @property
    def num_evaluations(self) -> int:
        """How many trials count towards a requested total: every first trial that finished, failed ones too.

        Interrupted trials (failed because the process ended) and further seeds of a known design do not count.
        """
        return self._content.num_evaluations

    def attempted(self) -> set[D]:
        """Designs that must not be suggested again: evaluated, failed or running; interrupted ones are free again."""
        return set(self._content.tries)

    def has_attempted(self, design: D) -> bool:
        """Whether a design is among the attempted ones."""
        return design in self._content.tries

    @property
    def epoch(self) -> object:
        """Stays the same object from one history to the next as long as no attempted design becomes free again.

        Who meets an epoch again may rely on every design that was attempted when it was met first.
        """
        return self._content.epoch

    @property
    def _content(self) -> _Content[D]:
        """What this history holds, its own again if a successor had it."""
        if self._own is None:
            undone: list[tuple[int, Trial[D] | None]] = []
            history = self
            while history._own is None:
                assert history._successor is not None
                history, number, before = history._successor
                undone.append((number, before))
            trials = dict(history._own.trials)
            for number, before in reversed(undone):
                if before is None:
                    del trials[number]
                else:
                    trials[number] = before
            self._own, self._successor = _Content(), None
            for trial in trials.values():
                self._own.put(trial)
        return self._own


class _Content(Generic[D]):
    """The trials of a history by number, and what is asked of them so often that it is kept up to date.

    Attributes:
        tries: how many trials that count as attempts each design has.
    """

    __slots__ = ("epoch", "last_number", "num_evaluations", "running", "trials", "tries")

    def __init__(self) -> None:
        self.trials: dict[int, Trial[D]] = {}
        self.running: set[int] = set()
        self.tries: dict[D, int] = {}
        self.num_evaluations = 0
        self.last_number = -1
        self.epoch = object()

    def put(self, trial: Trial[D]) -> None:
        """Add a trial with a number above all others, or replace the one with its number."""
        before = self.trials.get(trial.number)
        self.trials[trial.number] = trial
        self.last_number = max(self.last_number, trial.number)
        # The new one first: a design that was running and has finished is never free in between.
        self._count(trial, 1)
        if before is not None:
            self._count(before, -1)
        if trial.finished:
            self.running.discard(trial.number)
        else:
            self.running.add(trial.number)

    def _count(self, trial: Trial[D], sign: int) -> None:
        if trial.reason == INTERRUPTED:
            return
        self.num_evaluations += sign * (trial.finished and trial.repeats_of is None)
        tries = self.tries.get(trial.design, 0) + sign
        if tries:
            self.tries[trial.design] = tries
        else:
            del self.tries[trial.design]
            self.epoch = object()


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
    for j, objective in enumerate(objectives):
        unknown = 0.0 if objective.kind == "known" else np.nan
        Y[:, j] = objective.gains(np.array([trial.values[objective.name] for trial in trials], dtype=np.float64))
        variances[:, j] = [trial.variances.get(objective.name, unknown) for trial in trials]
    return Y, variances
