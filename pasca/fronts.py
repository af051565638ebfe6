"""Front: what a run found, as rows that a table, a file or a program can show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from engines.history import History
from engines.objectives import Bound, Objective
from engines.search.knee import knee
from engines.search.pareto import front, keeps_bounds
from engines.trial import Trial
from pasca.plain import plain
from pasca.studies import Retrained
from pasca.tally import hypervolume_of
from search_space.architecture import Architecture

D = TypeVar("D")

_NUM_NEAREST = 3
"""Designs listed where none keeps the bounds."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation (of the sample; None for one value) over seeds, as fractions."""

    mean: float
    std: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """The spread of some values; None for no values."""
        if not len(values):
            return None
        return cls(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)


@dataclass(frozen=True, slots=True)
class Row:
    """One design of a front, or one classic.

    Attributes:
        id: the trial's number, or the classic's name.
        design: text form.
        values: measured value of each objective; for a classic, `val_error` is the mean over the retraining seeds.
        val_error_std: standard deviation of `val_error` over the seeds behind the value, None where unknown.
        num_seeds: seeds behind `val_error`.
        posterior: what the searcher's model made of the design when the search ended: mean and deviation of the true
            value of each objective that is not known, over all that was observed; empty without a model.
        retrained_val_error, test_score: over the fresh seeds of the retraining; None without it.
        knee: whether it is the knee of the front.
        feasible: whether it keeps every bound.
        note: what a reader should know: why a classic has no figures.
    """

    id: int | str
    design: str
    values: Mapping[str, float]
    val_error_std: float | None = None
    num_seeds: int = 0
    posterior: Mapping[str, Spread] = field(default_factory=dict)
    retrained_val_error: Spread | None = None
    test_score: Spread | None = None
    knee: bool = False
    feasible: bool = True
    note: str | None = None

    def as_mapping(self, metric: str) -> dict[str, Any]:
        """JSON types. `test_accuracy` is there for every metric, and null unless accuracy is what was measured."""
        score = _spread(self.test_score)
        return {
            "id": self.id,
            "design": self.design,
            "val_error": self.values.get("val_error"),
            "val_error_std": self.val_error_std,
            "posterior": {name: _spread(spread) for name, spread in self.posterior.items()},
            "inference_seconds": self.values.get("inference_seconds"),
            **{name: whole(v) for name, v in self.values.items() if name not in ("val_error", "inference_seconds")},
            "test_accuracy": score if metric == "accuracy" else None,
            "test_score": score,
            "retrained_val_error": _spread(self.retrained_val_error),
            "knee": self.knee,
            "feasible": self.feasible,
            "note": self.note,
        }


@dataclass(frozen=True)
class Front:
    """The Pareto front of a run, with the classics beside it.

    Attributes:
        run: name of the run.
        rows: designs on the front by rising cost (the first objective besides `val_error`); none where no design keeps
            the bounds.
        nearest: where none keeps them, the designs that come nearest, nearest first; all infeasible.
        classics: the classics that were trained the same way.
        objectives, bounds: what was searched for.
        metric: what validation and test scores measure.
        counts: trials by status.
        hypervolume, reference_point: of the rows, in measured units; None while no trial has values.
        num_test_readings: occasions on which test labels were read.
        retraining_seeds: how many fresh seeds the retrained designs were trained with.
        ending: why the search ended, or what it is doing.
    """

    run: str
    rows: tuple[Row, ...]
    objectives: tuple[Objective, ...]
    bounds: tuple[Bound, ...] = ()
    nearest: tuple[Row, ...] = ()
    classics: tuple[Row, ...] = ()
    metric: str = "accuracy"
    counts: Mapping[str, int] = field(default_factory=dict)
    hypervolume: float | None = None
    reference_point: Mapping[str, float] | None = None
    num_test_readings: int = 0
    retraining_seeds: int = 0
    ending: str = ""

    @property
    def best(self) -> dict[str, Row]:
        """The row with the smallest value of each objective, by the objective's name; empty without rows."""
        return {o.name: min(self.rows, key=lambda row: row.values[o.name]) for o in self.objectives if self.rows}

    def as_mapping(self) -> dict[str, Any]:
        """JSON types: what `--json` prints."""
        content: dict[str, Any] = plain(
            {
                "run": self.run,
                "ending": self.ending,
                "front": [row.as_mapping(self.metric) for row in self.rows],
                "nearest": [row.as_mapping(self.metric) for row in self.nearest],
                "classics": [row.as_mapping(self.metric) for row in self.classics],
                "knee": next((row.id for row in self.rows if row.knee), None),
                "best": {name: row.id for name, row in self.best.items()},
                "objectives": [o.name for o in self.objectives],
                "at_most": {bound.objective.name: bound.at_most for bound in self.bounds},
                "metric": self.metric,
                "trials": dict(self.counts),
                "hypervolume": self.hypervolume,
                "reference_point": self.reference_point,
                "retraining_seeds": self.retraining_seeds,
                "test_readings": self.num_test_readings,
            }
        )
        return content

    def __str__(self) -> str:
        from pasca.tables import front_text

        return front_text(self)


def make_front(
    run: str,
    history: History[Any],
    *,
    objectives: Sequence[Objective],
    bounds: Sequence[Bound],
    retrained: Mapping[str, Retrained],
    classics: Mapping[str, Architecture],
    reference: Mapping[str, float] | None,
    metric: str,
    posterior: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    num_test_readings: int = 0,
    ending: str = "",
) -> Front:
    """Derive the front of a history, with what is known of each design.

    Args:
        posterior: means and deviations by the text form of a design and the name of an objective.
    """
    best = front(history, objectives, bounds)
    marked = knee(best, objectives) if best else None
    cost = next(o.name for o in objectives if o.name != "val_error")
    rows = [trial_row(t, retrained, knee=t is marked) for t in sorted(best, key=lambda t: (t.values[cost], t.number))]
    believed = {
        design: {name: Spread(mean, deviation) for name, (mean, deviation) in values.items()}
        for design, values in (posterior or {}).items()
    }
    rows = [replace(row, posterior=believed.get(row.design, {})) for row in rows]
    nearest = [] if best else nearest_trials(history, bounds)
    return Front(
        run=run,
        rows=tuple(rows),
        objectives=tuple(objectives),
        bounds=tuple(bounds),
        nearest=tuple(replace(trial_row(trial, retrained), feasible=False) for trial in nearest),
        classics=tuple(
            classic_row(name, retrained[str(design)], bounds)
            for name, design in classics.items()
            if str(design) in retrained
        ),
        metric=metric,
        counts=counts(history),
        hypervolume=hypervolume_of(best, objectives, None if reference is None else dict(reference)),
        reference_point=reference,
        num_test_readings=num_test_readings,
        retraining_seeds=max((len(found.seeds) for found in retrained.values()), default=0),
        ending=ending,
    )


def trial_row(trial: Trial[Any], retrained: Mapping[str, Retrained], *, knee: bool = False) -> Row:
    """The row of a trial with values."""
    again = retrained.get(str(trial.design))
    variance, num_seeds = trial.variances.get("val_error"), max(len(trial.seeds), 1)
    known = variance is not None and math.isfinite(variance) and variance >= 0
    return Row(
        id=trial.number,
        design=str(trial.design),
        values=dict(trial.values),
        # The recorded variance is that of the mean; over single seeds it is larger by their number.
        val_error_std=math.sqrt(variance * num_seeds) if variance is not None and known else None,
        num_seeds=num_seeds,
        retrained_val_error=Spread.of(again.val_errors) if again else None,
        test_score=Spread.of(again.test_scores) if again else None,
        knee=knee,
        note=again.reason if again else None,
    )


def classic_row(name: str, retrained: Retrained, bounds: Sequence[Bound] = ()) -> Row:
    """The row of a classic, from its retraining."""
    errors = Spread.of(retrained.val_errors)
    values = {**({"val_error": errors.mean} if errors else {}), **retrained.known}
    return Row(
        id=name,
        design=retrained.design,
        values=values,
        val_error_std=errors.std if errors else None,
        num_seeds=len(retrained.seeds),
        retrained_val_error=errors,
        test_score=Spread.of(retrained.test_scores),
        feasible=all(b.objective.name in values and b.allows(values[b.objective.name]) for b in bounds),
        note=retrained.reason,
    )


def nearest_trials(history: History[D], bounds: Sequence[Bound]) -> list[Trial[D]]:
    """The complete trials that break bounds by least, by the sum of the excesses relative to the bounds."""

    def excess(trial: Trial[D]) -> float:
        return sum(
            max(trial.values[bound.objective.name] - bound.at_most, 0.0) / (bound.at_most or 1.0) for bound in bounds
        )

    complete = [trial for trial in history.complete if not keeps_bounds(trial, bounds)]
    return sorted(complete, key=lambda trial: (excess(trial), trial.number))[:_NUM_NEAREST]


def counts(history: History[Any]) -> dict[str, int]:
    """Trials by status, in the order of `Status`."""
    from engines.trial import Status

    return {status.value: len(history.with_status(status)) for status in Status}


def whole(value: float | None) -> float | int | None:
    """A count as an integer, so that it is written without a point; other numbers as they are."""
    return int(value) if value is not None and value.is_integer() else value


def _spread(spread: Spread | None) -> dict[str, float | None] | None:
    return None if spread is None else {"mean": spread.mean, "std": spread.std}
