"""Picks one design of a run by a rule. Rules see objectives and designs; test figures are out of their sight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engines.history import History
from engines.objectives import Bound, Objective
from engines.pooling import with_further_seeds
from engines.search.knee import knee
from engines.search.pareto import front, keeps_bounds
from engines.trial import Trial
from pasca.fronts import nearest_trials
from pasca.rules import chosen_by_rule, is_rule
from pasca.tables import bound_text, value_text
from search_space.classics import find_design
from search_space.errors import DesignError, RunError


def pick(
    rule: str, history: History[Any], objectives: Sequence[Objective], bounds: Sequence[Bound], run: str
) -> Trial[Any]:
    """The trial that a rule means.

    Args:
        rule: `knee`; `best:OBJECTIVE`, the best on the front; a trial's id; a design's text form or classic name; or as
            in `min inference_seconds where val_error<=best+1%`, see `pasca.rules`.
        bounds: what the pick has to keep, whatever the rule.
        run: for messages.
    Raises:
        RunError: nothing matches; the message says what there is.
        DesignError: the rule is none of the above.
        ObjectiveError: a value in the rule is none of its objective.
    """
    complete = with_further_seeds(history.complete)
    if not complete:
        raise RunError(f"run {run} has no finished trial, so there is nothing to pick; continue it with --resume")
    allowed = [trial for trial in complete if keeps_bounds(trial, bounds)]
    if not allowed:
        raise RunError(_none_keeps(history, bounds))
    if rule == "knee":
        return knee(front(allowed, objectives), objectives)
    if rule.startswith("best:"):
        return _best(rule.removeprefix("best:"), front(allowed, objectives), objectives)
    if is_rule(rule):
        return chosen_by_rule(rule, allowed, run)
    if rule.isdecimal():
        # the number of a trial that added seeds stands for its design, too
        number = next((t.repeats_of for t in history.complete if t.number == int(rule)), None)
        found = [trial for trial in complete if trial.number == (int(rule) if number is None else number)]
        what = f"trial {rule}"
    else:
        text = _design_text(rule)
        found = [trial for trial in complete if str(trial.design) == text]
        what = f"design {text}"
    if not found:
        listed = ", ".join(f"{trial.number} ({trial.design})" for trial in front(allowed, objectives)[:5])
        raise RunError(f"run {run} has no finished {what}; on its front are: {listed}")
    if not keeps_bounds(found[0], bounds):
        limits = ", ".join(map(bound_text, bounds))
        raise RunError(f"{what} of run {run} breaks the bound {limits}; loosen the bound or pick another")
    return found[0]


def _best(name: str, best: Sequence[Trial[Any]], objectives: Sequence[Objective]) -> Trial[Any]:
    by_name = {objective.name: objective for objective in objectives}
    if name not in by_name:
        raise RunError(f"best:{name} is no objective of this run; choose from: {', '.join(by_name)}")
    objective = by_name[name]
    sign = 1.0 if objective.direction == "minimise" else -1.0
    return min(best, key=lambda trial: (sign * trial.values[name], trial.number))


def _design_text(rule: str) -> str:
    if "/" in rule:
        return rule if rule.count("/") != 3 else str(find_design(rule))
    try:
        return str(find_design(rule))
    except DesignError:
        raise DesignError(
            f"unknown pick {rule!r}; give knee, best:OBJECTIVE, a trial's id, a design such as SGC or "
            "augmented^2/none/mlp-1/-, or a rule such as 'min inference_seconds where val_error<=best+1%'"
        ) from None


def _none_keeps(history: History[Any], bounds: Sequence[Bound]) -> str:
    nearest = nearest_trials(history, bounds)[0]
    values = ", ".join(
        f"{bound.objective.name} {value_text(bound.objective.name, nearest.values[bound.objective.name])}"
        for bound in bounds
    )
    return (
        f"no design meets the bound {', '.join(map(bound_text, bounds))}; "
        f"the nearest is {nearest.number} ({nearest.design}) with {values}"
    )
