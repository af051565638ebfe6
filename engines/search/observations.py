"""What a history says of a space: one row a design, however many records it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.history import INTERRUPTED, History, gains
from engines.objectives import Floats, Objective
from engines.trial import Status, Trial
from search_space.space import Space

D = TypeVar("D")


@dataclass(frozen=True)
class Observations:
    """Observed designs in the order of their first trials.

    Attributes:
        rows: (n,) rows of the space.
        Y: (n, m) gains; further seeds of a design are averaged in, each seed counting once.
        variances: (n, m) variances of these means, NaN where unknown.
        num_seeds: (n,) seeds behind them, at least 1.
        complete: (n,) whether a full evaluation is among the records; only such a design can be on the front.
    """

    rows: NDArray[np.int64]
    Y: Floats
    variances: Floats
    num_seeds: Floats
    complete: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)


def observe(trials: Sequence[Trial[D]], space: Space[D], objectives: Sequence[Objective]) -> Observations:
    """Collect the trials that hold values.

    Raises:
        SpaceError: a trial's design is not in the space.
    """
    valued = [trial for trial in trials if trial.status in (Status.COMPLETE, Status.STOPPED)]
    Y, variances = gains(valued, objectives)
    rows = np.array([space.index(trial.design) for trial in valued], dtype=np.int64)
    seeds = np.array([max(len(trial.seeds), 1) for trial in valued], dtype=np.float64)
    complete = np.array([trial.status is Status.COMPLETE for trial in valued], dtype=bool)
    if np.unique(rows).size == rows.size:
        return Observations(rows, Y, variances, seeds, complete)
    places = [np.flatnonzero(rows == row) for row in dict.fromkeys(rows.tolist())]
    shares = [seeds[place] / seeds[place].sum() for place in places]
    return Observations(
        rows=np.array([rows[place[0]] for place in places], dtype=np.int64),
        Y=np.stack([share @ Y[place] for place, share in zip(places, shares, strict=True)]),
        # The variance of a weighted mean; a record of unknown variance makes the mean's unknown too.
        variances=np.stack([share**2 @ variances[place] for place, share in zip(places, shares, strict=True)]),
        num_seeds=np.array([seeds[place].sum() for place in places]),
        complete=np.array([complete[place].any() for place in places], dtype=bool),
    )


def initial_trials(history: History[D], num_initial: int) -> list[Trial[D]] | None:
    """The trials that fix the reference point, or None while they are not all finished.

    They are the first `num_initial` trials, or as many more as it takes until one of them holds values. Interrupted
    trials and further seeds of a design are no part of the count. Since a finished trial never changes, neither does
    the answer, once there is one.
    """
    window: list[Trial[Any]] = []
    for trial in history:
        if trial.reason == INTERRUPTED or trial.repeats_of is not None:
            continue
        if not trial.finished:
            return None
        window.append(trial)
        if len(window) >= num_initial and any(found.values for found in window):
            return window
    return None
