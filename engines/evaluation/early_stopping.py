"""Early stopping of designs: whoever cannot win after the first repeat gets no more.

After its first repeat a design's error is known up to the spread between repeats, which the trials so far tell, and
its other objectives exactly. A design whose optimistic error is still dominated by the front is stopped: what it got
informs the surrogate with the variance of a single repeat, and it is never on the front.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.evaluation.base import Evaluator
from engines.objectives import Objective
from engines.trial import Outcome, Status, Trial

D = TypeVar("D")

MEASURED = "val_error"
OPTIMISM = 2.0
"""Standard deviations by which a design's error after all repeats may be below that of its first."""

_LISTS = ("val_errors", "val_losses", "best_epochs")
"""Details that have one figure a repeat."""


class Standings(Generic[D]):
    """What a new design has to beat. One thread updates it; those that evaluate read it.

    Args:
        objectives: of the run, `val_error` among them.
        history: trials so far.
        complete_before: complete trials that must be there before any design is stopped.
    """

    def __init__(self, objectives: Sequence[Objective], history: Iterable[Trial[D]], complete_before: int) -> None:
        self._objectives, self._complete_before = tuple(objectives), complete_before
        self._num_complete, self._spreads, self._num_spreads = 0, 0.0, 0
        # replaced as one, so that a reader sees the one state or the other
        self._state: tuple[NDArray[np.float64], float] | None = None
        for trial in history:
            self._count(trial)

    def update(self, trial: Trial[D], front: Sequence[Trial[D]]) -> None:
        """Take in a trial.

        Args:
            front: the complete trials that no other dominates, this one taken into account.
        """
        self._count(trial)
        if self._num_complete >= self._complete_before and self._num_spreads and front:
            gains = np.array([self._gains(member.values) for member in front])
            self._state = gains, self._spreads / self._num_spreads

    def dominated(self, first: Outcome, num_repeats: int) -> float | None:
        """The variance of a repeat, if the front dominates all that a design may still become; else None.

        Args:
            first: of one repeat.
            num_repeats: S in all. Its mean error may lie below the first by the spread of both.
        """
        state = self._state
        if state is None:
            return None
        gains, variance = state
        hope = OPTIMISM * math.sqrt(variance * (1.0 + 1.0 / num_repeats))
        best = self._gains({**first.values, MEASURED: first.values[MEASURED] - hope})
        at_least, above = (gains >= best).all(axis=1), (gains > best).any(axis=1)
        return variance if bool((at_least & above).any()) else None

    def _count(self, trial: Trial[D]) -> None:
        if trial.status is not Status.COMPLETE:
            return
        self._num_complete += 1
        if MEASURED in trial.variances and len(trial.seeds) > 1:
            # of the mean of S repeats: S times that is the variance of one
            self._spreads += trial.variances[MEASURED] * len(trial.seeds)
            self._num_spreads += 1

    def _gains(self, values: Mapping[str, float]) -> NDArray[np.float64]:
        """(m,) values of which larger is better."""
        return np.array([float(objective.gains(np.asarray(values[objective.name]))) for objective in self._objectives])


class EarlyStopping(Generic[D]):
    """An evaluator that trains one repeat, and the others only if the design can still win.

    Args:
        inner: lists `val_errors` of its repeats in the details.
        standings: what a design has to beat.
    """

    def __init__(self, inner: Evaluator[D], standings: Standings[D]) -> None:
        self._inner, self._standings = inner, standings

    def evaluate(self, design: D, seeds: Sequence[int]) -> Outcome:
        """Train once per seed, or once; a stopped outcome says so.

        Raises:
            TrialFailure: as the inner evaluator does.
        """
        first = self._inner.evaluate(design, seeds[:1])
        if len(seeds) == 1:
            return first
        variance = self._standings.dominated(first, len(seeds))
        if variance is not None:
            return replace(first, variances={**first.variances, MEASURED: variance}, stopped=True)
        return together(first, self._inner.evaluate(design, seeds[1:]))


def together(first: Outcome, rest: Outcome) -> Outcome:
    """One outcome of all repeats from those of the first and of the others."""
    errors = np.asarray([*first.details["val_errors"], *rest.details["val_errors"]], dtype=np.float64)
    details: dict[str, Any] = dict(rest.details)
    for name in _LISTS:
        if name in first.details and name in rest.details:
            details[name] = [*first.details[name], *rest.details[name]]
    if "seconds" in first.details and "seconds" in rest.details:
        spent, more = first.details["seconds"], rest.details["seconds"]
        details["seconds"] = {stage: spent.get(stage, 0.0) + more.get(stage, 0.0) for stage in {**spent, **more}}
    return Outcome(
        values={**rest.values, MEASURED: float(errors.mean())},
        variances={**rest.variances, MEASURED: float(errors.var(ddof=1) / errors.size)},
        details=details,
    )
