"""Rules that choose one design by its figures: `min inference_seconds where val_error<=best+1%`.

    min NAME [where NAME<=VALUE [and NAME<=VALUE ...]]

NAME is an objective that the trials have a value of, searched for or not; VALUE is a number with a unit as in a bound
(`5ms`, `10%`), or relative to the smallest value there is: `best`, `best+1%`, `best+2ms`, `best*1.2`. Test figures have
no name here: they are not among the values of a trial.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engines.objectives import OBJECTIVES, parse_bound
from engines.trial import Trial
from pasca.tables import value_text
from search_space.errors import DesignError, ObjectiveError, RunError

_RULE = re.compile(r"min\s+(?P<name>\w+)(?:\s+where\s+(?P<conditions>.+))?")
_CONDITION = re.compile(r"(?P<name>\w+)\s*<=\s*(?P<value>.+)")
_RELATIVE = re.compile(r"best\s*(?:(?P<sign>[+*])\s*(?P<amount>.+))?")
_ROUNDING = 1e-9
"""Relative; a sum such as `best+1%` may come out below the value that it stands for."""

_FORM = "min NAME where NAME<=VALUE and NAME<=VALUE, as in 'min inference_seconds where val_error<=best+1%'"


@dataclass(frozen=True, slots=True)
class _Limit:
    """`name <= at_most`, as it was written in `text`."""

    name: str
    at_most: float
    text: str


def is_rule(text: str) -> bool:
    """Whether a text is meant as a rule."""
    return text.split(maxsplit=1)[:1] == ["min"]


def chosen_by_rule(rule: str, trials: Sequence[Trial[Any]], run: str) -> Trial[Any]:
    """The trial that a rule means; of equally good ones that with the smaller validation error, then the earlier.

    Args:
        rule: see the head of this file.
        trials: at least one, all with values.
        run: for messages.
    Raises:
        DesignError: the text is no rule, or names what the trials have no value of.
        ObjectiveError: a value is none of that objective.
        RunError: no trial keeps the conditions; the message names the nearest one's value.
    """
    match = _RULE.fullmatch(rule.strip())
    if match is None:
        raise DesignError(f"a rule is {_FORM}; got {rule!r}")
    name = _known(match["name"], trials, rule)
    left = list(trials)
    for text in re.split(r"\s+and\s+", match["conditions"]) if match["conditions"] else ():
        limit = _limit(text.strip(), trials, rule)
        kept = [trial for trial in left if trial.values[limit.name] <= limit.at_most * (1 + _ROUNDING)]
        if not kept:
            smallest = min(left, key=lambda trial: (trial.values[limit.name], trial.number))
            raise RunError(
                f"no design of run {run} keeps {limit.text} of {rule!r}; of those that are left for it, "
                f"{smallest.number} ({smallest.design}) is the nearest with "
                f"{value_text(limit.name, smallest.values[limit.name])}"
            )
        left = kept
    return min(left, key=lambda trial: (trial.values[name], trial.values.get("val_error", 0.0), trial.number))


def _known(name: str, trials: Sequence[Trial[Any]], rule: str) -> str:
    """The name, if all trials have a value of it."""
    names = [known for known in OBJECTIVES if all(known in trial.values for trial in trials)]
    if name not in names:
        raise DesignError(
            f"{name!r} in {rule!r} is not among the values that choose designs; they are: {', '.join(names)}"
        )
    return name


def _limit(text: str, trials: Sequence[Trial[Any]], rule: str) -> _Limit:
    """Read one condition."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise DesignError(f"{text!r} in {rule!r} is no condition; a rule is {_FORM}")
    name = _known(match["name"], trials, rule)
    relative = _RELATIVE.fullmatch(match["value"].strip())
    if relative is None:
        return _Limit(name, parse_bound(f"{name}={match['value'].strip()}").at_most, text)
    best = min(trial.values[name] for trial in trials)
    if relative["sign"] is None:
        return _Limit(name, best, text)
    amount = relative["amount"].strip()
    if relative["sign"] == "+":
        return _Limit(name, best + parse_bound(f"{name}={amount}").at_most, text)
    try:
        factor = float(amount)
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and factor >= 1):
        raise ObjectiveError(f"best is multiplied by a number of at least 1, got {amount!r} in {text!r}")
    return _Limit(name, best * factor, text)
