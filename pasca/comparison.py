"""Several runs side by side: fronts, best values, and hypervolumes against one reference point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engines.objectives import Bound, Objective, parse_bound
from engines.search.pareto import front, keeps_bounds
from engines.trial import Trial
from pasca.convergence import Step, convergence
from pasca.plain import plain
from pasca.tables import Cells, short_title, value_text
from pasca.tally import hypervolume_of
from search_space.errors import RunError

if TYPE_CHECKING:
    from pasca.results import Study

_MARGIN = 0.1
"""How far the reference point lies beyond the worst value, as a share of the range."""


@dataclass(frozen=True)
class ComparedRun:
    """One run of a comparison.

    Attributes:
        name: of the run, with its folder where two runs share a name.
        data: name of what was searched on.
        searcher, seed: of the run.
        evaluations, failed: trials that count, and those of them without values.
        front: trials on its front, by rising cost.
        hypervolume: of that front against the comparison's reference point, in measured units.
        share: of the hypervolume of all fronts together; 1 for a run that no other adds anything to.
        best: smallest value of each objective on its front; empty where no design keeps the bounds.
        steps: how the hypervolume grew.
    """

    name: str
    data: str
    searcher: str
    seed: int
    evaluations: int
    failed: int
    front: tuple[Trial[Any], ...]
    hypervolume: float
    share: float
    best: Mapping[str, float]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Comparison:
    """Several runs on equal terms.

    Attributes:
        runs: in the order given.
        objectives, bounds: of all runs; the bounds of every run hold for all.
        reference_point: measured value of each objective: the worst of all runs' trials that keep the bounds, and a
            tenth of the range beyond it.
        notes: what makes the runs unequal.
    """

    runs: tuple[ComparedRun, ...]
    objectives: tuple[Objective, ...]
    bounds: tuple[Bound, ...]
    reference_point: Mapping[str, float]
    notes: tuple[str, ...]

    def as_mapping(self) -> dict[str, Any]:
        """JSON types: what `--json` prints."""
        content: dict[str, Any] = plain(
            {
                "objectives": [objective.name for objective in self.objectives],
                "at_most": {bound.objective.name: bound.at_most for bound in self.bounds},
                "reference_point": self.reference_point,
                "notes": self.notes,
                "runs": [
                    {
                        "run": run.name,
                        "data": run.data,
                        "searcher": run.searcher,
                        "seed": run.seed,
                        "evaluations": run.evaluations,
                        "failed": run.failed,
                        "hypervolume": run.hypervolume,
                        "share": run.share,
                        "best": run.best,
                        "front": [{"id": t.number, "design": str(t.design), **t.values} for t in run.front],
                    }
                    for run in self.runs
                ],
            }
        )
        return content

    def cells(self) -> Cells:
        """One row a run; what all were searched on is left out."""
        several = len({run.data for run in self.runs}) > 1
        bests = [f"best {short_title(objective.name)}" for objective in self.objectives]
        titles = ("run", *(("data",) if several else ()), "searcher", "seed", "evals", "front", "hypervolume", "share")
        rows = tuple(
            (
                run.name,
                *((run.data,) if several else ()),
                run.searcher,
                str(run.seed),
                f"{run.evaluations}" + (f" ({run.failed} failed)" if run.failed else ""),
                str(len(run.front)),
                f"{run.hypervolume:.5g}",
                f"{100 * run.share:.1f} %",
                *(value_text(objective.name, run.best.get(objective.name)) for objective in self.objectives),
            )
            for run in self.runs
        )
        first_number = titles.index("seed")
        return Cells((*titles, *bests), rows, frozenset(range(first_number, len(titles) + len(bests))))

    def lines(self) -> list[str | Cells]:
        """What there is to say, in order."""
        point = ", ".join(f"{name} {value_text(name, value)}" for name, value in self.reference_point.items())
        said: list[str | Cells] = [self.cells(), "", f"hypervolumes against one reference point: {point}"]
        return [*said, "share: of the hypervolume of all these fronts together", *self.notes]


def compare(studies: Sequence[Study], at_most: str | Iterable[str] = ()) -> Comparison:
    """Put runs side by side.

    Args:
        studies: two or more, with the same objectives and metric.
        at_most: bounds beside those of the runs.
    Raises:
        RunError: there is one run only, their objectives or metrics differ, or no trial of any keeps the bounds.
        ObjectiveError: a bound is not one.
    """
    if len(studies) < 2:
        raise RunError(f"a comparison needs two or more runs, got {len(studies)}")
    first = studies[0]
    for other in studies[1:]:
        _check_alike(first, other)
    texts = (at_most,) if isinstance(at_most, str) else tuple(at_most)
    bounds = tuple(dict.fromkeys((*(b for study in studies for b in study.bounds), *map(parse_bound, texts))))
    objectives = first.objectives
    complete = [[t for t in study.history.complete if keeps_bounds(t, bounds)] for study in studies]
    everything = [trial for trials in complete for trial in trials]
    if not everything:
        raise RunError(f"no design of {', '.join(study.name for study in studies)} keeps the bounds, or none is done")
    reference = _reference(everything, objectives)
    together = hypervolume_of(everything, objectives, reference) or 0.0
    names = _names(studies)
    runs = []
    for study, name, trials in zip(studies, names, complete, strict=True):
        steps = convergence(study.in_order_of_ending(), objectives, bounds, reference)
        best = front(trials, objectives)
        volume = hypervolume_of(best, objectives, reference) or 0.0
        cost = next(o.name for o in objectives if o.name != "val_error")
        runs.append(
            ComparedRun(
                name=name,
                data=str(study.manifest["data"].get("name") or study.manifest["data"].get("source")),
                searcher=str(study.manifest["identity"]["searcher"]),
                seed=int(study.manifest["identity"]["seed"]),
                evaluations=study.history.num_evaluations,
                failed=sum(step_failed(study, step) for step in steps),
                front=tuple(sorted(best, key=lambda trial: (trial.values[cost], trial.number))),
                hypervolume=volume,
                share=volume / together if together > 0 else 0.0,
                best={o.name: min(trial.values[o.name] for trial in best) for o in objectives} if best else {},
                steps=tuple(steps),
            )
        )
    return Comparison(tuple(runs), objectives, bounds, reference, tuple(_notes(studies, names)))


def step_failed(study: Study, step: Step) -> bool:
    """Whether the evaluation that a step ended with has no values."""
    return not study.history[step.trial].values


def _check_alike(first: Study, other: Study) -> None:
    for what, one, two in (
        ("objectives", _objective_names(first), _objective_names(other)),
        ("metric", first.manifest.get("metric"), other.manifest.get("metric")),
    ):
        if one != two:
            raise RunError(
                f"runs are compared by the same {what}, got {one} in {first.name} and {two} in {other.name}; "
                "leave one of them out"
            )


def _objective_names(study: Study) -> str:
    return ",".join(objective.name for objective in study.objectives)


def _reference(trials: Sequence[Trial[Any]], objectives: Sequence[Objective]) -> dict[str, float]:
    """The worst value of each objective and a tenth of the range beyond it; smaller is better for all of them."""
    found = {}
    for objective in objectives:
        values = [trial.values[objective.name] for trial in trials]
        spread = max(values) - min(values) or abs(values[0]) or 1.0
        found[objective.name] = max(values) + _MARGIN * spread
    return found


def _names(studies: Sequence[Study]) -> list[str]:
    names = [study.name for study in studies]
    return [
        f"{name} ({study.folder})" if names.count(name) > 1 else name
        for name, study in zip(names, studies, strict=True)
    ]


def _notes(studies: Sequence[Study], names: Sequence[str]) -> list[str]:
    """What the runs do not share, so that the reader can judge what a difference means."""
    notes = []
    for what, values in (
        ("data", [study.manifest["data"].get("checksum") for study in studies]),
        ("training recipe", [study.manifest["identity"].get("recipe") for study in studies]),
        ("search space", [study.manifest["identity"].get("space") for study in studies]),
        ("seeds per design", [study.manifest["identity"].get("repeats") for study in studies]),
        ("stage times", [study.manifest.get("stage_times") for study in studies]),
    ):
        differing = [name for name, value in zip(names, values, strict=True) if value != values[0]]
        if differing:
            notes.append(f"not the same {what} as {names[0]}: {', '.join(differing)}")
    return notes
