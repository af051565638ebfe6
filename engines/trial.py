"""Trial: one evaluation of one design, as recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from engines.objectives import Objective

D = TypeVar("D")


class Status(Enum):
    """Where a trial stands."""

    RUNNING = "running"
    COMPLETE = "complete"
    STOPPED = "stopped"
    """Ended early because it could not win; informs the surrogate, never on the front."""
    FAILED = "failed"
    """Has a reason and no values."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an evaluator found out about one design.

    Attributes:
        values: measured value of each objective, by name.
        variances: variance of the reported mean, for objectives measured by training. A missing name means unknown.
        details: anything else worth recording (JSON types): per-seed scores, stage seconds, best epochs.
        stopped: whether the evaluation ended early because the design could not win.
    """

    values: Mapping[str, float]
    variances: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Trial(Generic[D]):
    """One evaluation of one design; a finished trial never changes.

    Attributes:
        number: position in the run, from 0.
        design: what was evaluated.
        seeds: seeds of its repeats.
        status: see `Status`.
        values, variances: as in `Outcome`; empty unless complete or stopped.
        reason: why it failed, in one line; None otherwise.
        details: as in `Outcome`; also `suggestion`, what the searcher said of its choice.
        seconds: wall-clock seconds of the evaluation.
        repeats_of: number of the first trial of the same design when this one only adds seeds; else None.
    """

    number: int
    design: D
    seeds: tuple[int, ...] = ()
    status: Status = Status.RUNNING
    values: Mapping[str, float] = field(default_factory=dict)
    variances: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    repeats_of: int | None = None

    @property
    def finished(self) -> bool:
        """Whether the trial has left the evaluator, with or without values."""
        return self.status is not Status.RUNNING

    def complete(self, outcome: Outcome, objectives: Sequence[Objective], seconds: float) -> Trial[D]:
        """The finished form of this running trial.

        An objective that is missing or not finite makes a failed trial whose reason names it: infinity and NaN are not
        measurements, and no later stage has to guard against them.
        """
        for objective in objectives:
            value = outcome.values.get(objective.name)
            if value is None:
                return self.fail(f"{objective.name} is missing from what the evaluator returned", seconds)
            if not math.isfinite(value):
                return self.fail(f"{objective.name} is not finite: {value}", seconds)
        return replace(
            self,
            status=Status.STOPPED if outcome.stopped else Status.COMPLETE,
            values=MappingProxyType({name: float(value) for name, value in outcome.values.items()}),
            variances=MappingProxyType({name: float(value) for name, value in outcome.variances.items()}),
            details=MappingProxyType({**self.details, **outcome.details}),
            seconds=seconds,
        )

    def fail(self, reason: str, seconds: float = 0.0) -> Trial[D]:
        """The failed form of this running trial."""
        return replace(self, status=Status.FAILED, reason=reason, seconds=seconds)
