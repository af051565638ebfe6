"""What designs of the extended space cost, computed for the designs at hand from one table of stage times.

Too many designs to price all beforehand, and too many stages to time them all: of a family of stages that differ in one
number (hops that are joined, width of an input), the smallest, a middle and the largest are timed and the others read
off between them. Times of the paper's stages are measured one by one, as for the paper's space.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engines.evaluation.costs import Sizes, cost_of, stages
from engines.evaluation.stage_times import StageTimes
from engines.evaluation.timing import StageTimer
from engines.objectives import Bound, Floats
from search_space.architecture import Architecture
from search_space.extended import ExtendedSpace
from search_space.space import SearchSpace

NAMES = ("inference_seconds", "parameters", "macs", "peak_memory_bytes")

_SAMPLED = 2000
"""Designs from which the search for the cheapest and the dearest one starts."""
_MOST_TIMED = 3
"""Of a family of stages."""


class ExtendedCosts:
    """Known objectives of the designs of an extended space.

    Args:
        space: whose designs are priced.
        sizes: of the graph and the recipe's network.
        times: with every stage of the space, as from `cover`.
    """

    def __init__(self, space: ExtendedSpace, sizes: Sizes, times: StageTimes) -> None:
        self._space, self._sizes, self._times = space, sizes, times
        self._found: dict[Architecture, tuple[float, ...]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All that is known without training."""
        return NAMES

    def of(self, designs: Sequence[Architecture]) -> dict[str, Floats]:
        """Values of each objective, arrays of shape (len(designs),)."""
        for design in designs:
            if design not in self._found:
                cost = cost_of(design, self._sizes, self._times.seconds, self._times.entries)
                self._found[design] = tuple(cost[name] for name in NAMES)
        rows = np.array([self._found[design] for design in designs], dtype=np.float64).reshape(-1, len(NAMES))
        return {name: rows[:, j] for j, name in enumerate(NAMES)}

    def extents(self, bounds: Sequence[Bound]) -> Mapping[str, tuple[float, float]]:
        """Least and largest value of each objective over the designs that keep the bounds.

        Found from a sample by going from neighbour to neighbour as long as the value moves outwards; an objective with
        a bound ends at the bound where that is reached.
        """
        sample = self._space.sample(_SAMPLED, np.random.default_rng(0)) + self._space.starting_designs()
        found = {}
        for name in NAMES:
            low, high = (self._outwards(sample, name, sign) for sign in (-1.0, 1.0))
            for bound in bounds:
                if bound.objective.name == name and bound.at_most < high:
                    high = max(bound.at_most, low)
            found[name] = (low, high)
        return found

    def _outwards(self, sample: Sequence[Architecture], name: str, sign: float) -> float:
        values = sign * self.of(sample)[name]
        best, design = float(values.max()), sample[int(values.argmax())]
        while near := self._space.neighbours(design):
            values = sign * self.of(near)[name]
            if values.max() <= best:
                break
            best, design = float(values.max()), near[int(values.argmax())]
        return sign * best


def cover(timer: StageTimer, space: ExtendedSpace, sizes: Sizes) -> StageTimes:
    """Times of every stage that a design of the space has."""
    needed: dict[str, list[tuple[float, str]]] = {}
    designs: dict[str, Architecture] = {}
    for design in covering(space):
        for stage, _ in stages(design, sizes):
            if stage not in designs:
                designs[stage] = design
                family, number = _family(stage)
                needed.setdefault(family, []).append((number, stage))
    timed: list[str] = []
    read: list[tuple[str, list[tuple[float, str]]]] = []
    for members in needed.values():
        members.sort()
        missing = [stage for _, stage in members if stage not in timer.times.seconds]
        if len(missing) <= _MOST_TIMED:
            timed += missing
            continue
        anchors = [members[place] for place in (0, len(members) // 2, len(members) - 1)]
        timed += [stage for _, stage in anchors if stage in missing]
        known = [(number, stage) for number, stage in members if (number, stage) in anchors or stage not in missing]
        read += [(stage, known) for stage in missing if all(stage != other for _, other in anchors)]
    times = timer.measure_stages(timed)
    seconds = dict(times.seconds)
    for stage, known in read:
        numbers = [number for number, _ in known]
        seconds[stage] = float(np.interp(_family(stage)[1], numbers, [times.seconds[other] for _, other in known]))
    timer.times = replace(times, seconds=seconds)
    return timer.times


def _family(stage: str) -> tuple[str, float]:
    """What a stage has in common with its like, and the number that it differs in."""
    kind, *details = stage.split("/")
    if kind in ("join", "join-channels"):
        return f"{kind}/{details[0]}", float(details[1])
    if kind in ("first-layer", "only-layer"):
        return "/".join((kind, *details[1:])), float(details[0])
    return stage, 0.0


def covering(space: ExtendedSpace) -> list[Architecture]:
    """Designs that have every stage that a design of the space has.

    Stages depend on the kinds of operators, not on the numbers in their names (only on whether there are self-loops),
    on the join with its hops, and on width and kind of the layers.
    """
    values = {choice.name: choice.values for choice in space.choices}
    ends = {name: (values[name][0], values[name][-1]) for name in ("pre_loops", "post_loops")}
    columns = {choice.name: j for j, choice in enumerate(space.choices)}
    rows: list[NDArray[np.int16]] = []

    def add(**chosen: object) -> None:
        row = np.full(len(columns), -1, np.int16)
        for name, value in chosen.items():
            row[columns[name]] = values[name].index(value)
        rows.append(row)

    for k_pre, kind, loops, message in itertools.product(
        values["k_pre"], values["pre_kind"], ends["pre_loops"], values["message"]
    ):
        for k_trans, hidden in itertools.product(values["k_trans"][:2], values["hidden_width"]):
            add(k_pre=k_pre, pre_kind=kind, pre_loops=loops, message=message, k_trans=k_trans, hidden_width=hidden)
    for k_trans, hidden, norm, residual in itertools.product(
        (values["k_trans"][0], values["k_trans"][-1]), values["hidden_width"], values["norm"], values["residual"]
    ):
        add(k_trans=k_trans, hidden_width=hidden, norm=norm, residual=residual)
    for k_trans, hidden, labels, adjacency, structure in itertools.product(
        values["k_trans"][:2],
        values["hidden_width"],
        values["label_steps"][-1:],
        values["adjacency"],
        values["structure"],
    ):
        further = {"label_steps": labels, "adjacency": adjacency, "structure": structure}
        add(k_trans=k_trans, hidden_width=hidden, **further)
    for normalise in values["normalise"]:
        add(normalise=normalise)
    for k_post, kind, loops in itertools.product(values["k_post"][-1:], values["post_kind"], ends["post_loops"]):
        add(k_post=k_post, post_kind=kind, post_loops=loops)
    return list(dict.fromkeys(space.decode(np.unique(space.settle(np.stack(rows)), axis=0))))


def paper_designs(space: ExtendedSpace) -> list[Architecture]:
    """Those of `covering` that the paper's space has, too."""
    paper = SearchSpace.paper()
    return [design for design in covering(space) if design in paper]
