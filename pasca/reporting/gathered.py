"""Gathered: everything that a report says of a run, read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engines.history import History
from engines.objectives import Bound, Objective
from engines.trial import Trial
from pasca.comparison import Comparison, compare
from pasca.convergence import Step, convergence
from pasca.effects import Effects
from pasca.fronts import Front
from pasca.run_costs import RunCosts
from pasca.runs import argument_for
from pasca.studies import Retrained
from search_space.errors import InputError

if TYPE_CHECKING:
    from pasca.results import Study


@dataclass(frozen=True)
class Gathered:
    """What a run found, and what is to be said where it found nothing.

    Attributes:
        name, status, manifest: of the run.
        argument: what means this run on a command line.
        history, front, retrained: trials, the front under the bounds, and what was trained again.
        bounds: those of the search and those asked for now.
        front_trials: trials of the front's rows, in their order; of the nearest designs where the front is empty.
        chosen: the trial whose classes are shown; None where nothing keeps the bounds.
        not_chosen: why.
        seconds: working seconds at the end of each trial, by number.
        steps: growth of the hypervolume; empty without a reference point.
        effects, no_effects: what each choice did, or why that is not known.
        costs: sizes and stage times; None where pasca's own evaluator did not score the run.
        comparison: with other runs, or None.
        readings: occasions on which test labels were read.
    """

    name: str
    argument: str
    status: str
    manifest: Mapping[str, Any]
    history: History[Any]
    front: Front
    retrained: Mapping[str, Retrained]
    bounds: tuple[Bound, ...]
    front_trials: tuple[Trial[Any], ...]
    chosen: Trial[Any] | None
    not_chosen: str
    seconds: Mapping[int, float]
    steps: tuple[Step, ...]
    effects: tuple[Effects, ...]
    no_effects: str
    costs: RunCosts | None
    comparison: Comparison | None
    readings: Sequence[Mapping[str, Any]]

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What was searched for."""
        return self.front.objectives

    @property
    def data_name(self) -> str:
        """The data's name."""
        data = self.manifest["data"]
        return str(data.get("name") or data.get("source"))

    @property
    def trained_here(self) -> bool:
        """Whether pasca's own evaluator scored the run, so that the details of its trials are known to have a form."""
        return self.manifest["identity"].get("recipe") is not None


def gather(
    study: Study, *, pick: str = "knee", at_most: str | Iterable[str] = (), others: Sequence[Study] = ()
) -> Gathered:
    """Read a run.

    Args:
        pick: the rule for the design whose classes are shown; see `pasca.picking`.
        at_most: bounds beside those of the search.
        others: runs to compare it with.
    Raises:
        InputError: the bounds are none, the runs cannot be compared, or the rule is wrong in itself.
    """
    front = study.front(at_most)
    numbers = [row.id for row in (front.rows or front.nearest)]
    chosen, not_chosen = _chosen(study, pick, at_most, bool(front.rows))
    effects, no_effects = _effects(study)
    reference = front.reference_point
    seconds = study.working_seconds()
    ordered = study.in_order_of_ending(seconds)
    return Gathered(
        name=study.name,
        argument=argument_for(study.folder),
        status=study.status,
        manifest=study.manifest,
        history=study.history,
        front=front,
        retrained=study.retrained(),
        bounds=front.bounds,
        front_trials=tuple(study.history[int(number)] for number in numbers),
        chosen=chosen,
        not_chosen=not_chosen,
        seconds=seconds,
        steps=() if reference is None else tuple(convergence(ordered, front.objectives, front.bounds, reference)),
        effects=effects,
        no_effects=no_effects,
        costs=RunCosts.of(study.manifest),
        comparison=compare([study, *others], at_most) if others else None,
        readings=study.readings(),
    )


def _chosen(study: Study, pick: str, at_most: str | Iterable[str], has_front: bool) -> tuple[Trial[Any] | None, str]:
    """The picked trial. Where nothing keeps the bounds, the page opens all the same and says so."""
    if has_front:
        return study.pick(pick, at_most), ""
    try:
        return study.pick(pick, at_most), ""
    except InputError as error:
        return None, str(error)


def _effects(study: Study) -> tuple[tuple[Effects, ...], str]:
    """Effects, or the reason why there are none, which the page states in their place."""
    try:
        return study.effects(), ""
    except InputError as error:
        return (), str(error)
