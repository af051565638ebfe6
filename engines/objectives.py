"""What a search optimises: name, unit, direction and kind of each objective, and bounds on them.

This file holds the only sign flips of the project: everything else speaks of measured values, and the search engine of
`gains`, where larger is better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from search_space.errors import ObjectiveError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Objective:
    """One quantity to optimise.

    Attributes:
        name: as in files and options.
        unit: unit of a measured value, `1` for a fraction.
        direction: whether smaller or larger measured values are better.
        kind: `measured` by training, noisy, with a variance per observation; or `known` for every design beforehand.
        description: one line for a person.
    """

    name: str
    unit: str
    direction: Literal["minimise", "maximise"] = "minimise"
    kind: Literal["measured", "known"] = "measured"
    description: str = ""

    def gains(self, measured: Floats) -> Floats:
        """Turn measured values into values of which larger is better."""
        return -measured if self.direction == "minimise" else measured

    def measured(self, gains: Floats) -> Floats:
        """The inverse of `gains`."""
        return -gains if self.direction == "minimise" else gains


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        Objective("val_error", "1", description="1 - score on the validation nodes, mean over seeds"),
        Objective("inference_seconds", "s", kind="known", description="time to classify all nodes from the raw graph"),
        Objective("parameters", "count", kind="known", description="trainable numbers"),
        Objective("macs", "count", kind="known", description="multiply-accumulates to classify all nodes"),
        Objective("peak_memory_bytes", "B", kind="known", description="largest memory needed to classify all nodes"),
    )
}


def register_objective(objective: Objective) -> Objective:
    """Make an objective of one's own known by its name to searches, bounds and records of this process.

    Runs record their objectives, so that opening one makes its own known again. Registering an objective twice does
    nothing.

    Raises:
        ObjectiveError: its name has other signs than a-z and _, or another objective has it; or larger is better.
    """
    if re.fullmatch(r"[a-z_]+", objective.name) is None:
        raise ObjectiveError(f"an objective's name has the signs a-z and _, got {objective.name!r}")
    if objective.direction != "minimise":
        raise ObjectiveError(
            f"smaller values of an objective of one's own are better, got {objective.name} to {objective.direction}; "
            "give its negative, or 1 - score"
        )
    if OBJECTIVES.setdefault(objective.name, objective) != objective:
        raise ObjectiveError(f"there is another objective {objective.name!r} already; choose another name")
    return objective


DEFAULT_OBJECTIVES = ("val_error", "inference_seconds")


def parse_objectives(text: str | Sequence[str]) -> tuple[Objective, ...]:
    """Read a comma-separated list (or a sequence) of objective names.

    Raises:
        ObjectiveError: a name is unknown or repeated, or there are fewer than two.
    """
    names = [name.strip() for name in text.split(",")] if isinstance(text, str) else list(text)
    for name in names:
        if name not in OBJECTIVES:
            raise ObjectiveError(f"unknown objective {name!r}; choose from: {', '.join(OBJECTIVES)}")
    if len(set(names)) < len(names):
        raise ObjectiveError(f"objectives are repeated: {', '.join(names)}; give each once")
    if len(names) < 2:
        raise ObjectiveError(f"a search needs two or more objectives, got {', '.join(names) or 'none'}")
    return tuple(OBJECTIVES[name] for name in names)


_SCALES = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "B": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    "1": {"": 1.0, "%": 1e-2},
    "count": {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9},
}
_BOUND = re.compile(r"(?P<name>[a-z_]+)\s*=\s*(?P<number>[^a-zA-Z%\s]+(?:[eE][-+]?\d+)?)\s*(?P<unit>[a-zA-Z%]*)")


@dataclass(frozen=True, slots=True)
class Bound:
    """A largest acceptable measured value of one objective, in that objective's unit."""

    objective: Objective
    at_most: float

    def allows(self, measured: float) -> bool:
        """Whether a measured value keeps the bound."""
        return measured <= self.at_most


def parse_bound(text: str) -> Bound:
    """Read a bound such as `inference_seconds=5ms`, `peak_memory_bytes=2GB`, `val_error=20%`.

    A number without a unit is in the objective's own unit.

    Raises:
        ObjectiveError: the form, the objective, the number or the unit is wrong; the message lists what exists.
    """
    match = _BOUND.fullmatch(text.strip())
    if match is None:
        raise ObjectiveError(f"a bound is OBJECTIVE=NUMBER[UNIT], as in inference_seconds=5ms; got {text!r}")
    if match["name"] not in OBJECTIVES:
        raise ObjectiveError(f"unknown objective {match['name']!r}; choose from: {', '.join(OBJECTIVES)}")
    objective = OBJECTIVES[match["name"]]
    scales = {"": 1.0, **_SCALES.get(objective.unit, {objective.unit: 1.0})}
    if match["unit"] not in scales:
        units = ", ".join(unit for unit in scales if unit)
        raise ObjectiveError(f"unknown unit {match['unit']!r} in {text!r}; {objective.name} takes: {units or 'none'}")
    try:
        number = float(match["number"])
    except ValueError:
        raise ObjectiveError(f"{match['number']!r} in the bound {text!r} is not a number") from None
    if not math.isfinite(number) or number < 0:
        raise ObjectiveError(f"a bound is a finite number of at least 0, got {text!r}")
    return Bound(objective, number * scales[match["unit"]])
