"""Designs to start with: what earlier runs on similar graphs ended up with.

They are tried early and nothing more: no value measured on another graph informs the model of this one, so a run that
misleads costs the evaluations of its designs. How similar two graphs are is told from a few statistics in the manifests
of their runs; runs on graphs that are too different are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.search.pareto import front
from pasca.results import Study
from search_space.errors import RunError
from search_space.space import Space

LEAST_SIMILARITY = 0.3
"""Runs on graphs less similar than this are left out: e times as many of everything gives 0.37, 4 times gives 0.25."""


@dataclass(frozen=True)
class WarmStart:
    """A design of an earlier run.

    Attributes:
        design: on that run's front.
        run: its name.
        similarity: of the two graphs, 0 to 1.
    """

    design: Any
    run: str
    similarity: float


def similarity(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """How similar two graphs are, from 0 to 1, by what the manifests of their runs say of the data.

    exp(-d), where d is the root mean square of the differences of the logarithms of: nodes, mean degree, features,
    classes, and training nodes a class.

    Raises:
        RunError: one of them says nothing of a graph.
    """
    gaps = [math.log(a / b) for a, b in zip(_statistics(one), _statistics(other), strict=True)]
    return math.exp(-math.sqrt(sum(gap * gap for gap in gaps) / len(gaps)))


def warm_designs(runs: Sequence[str], data: Mapping[str, Any], space: Space[Any], count: int) -> list[WarmStart]:
    """Up to `count` designs from the fronts of earlier runs, those of the most similar graphs first.

    The runs take turns, and each gives designs spread along its front: first the ends, then the middle, then what lies
    between. Designs that the space does not hold, or starts with anyway, are passed over.

    Args:
        runs: names or folders.
        data: what the manifest of the new run says of its data.
    Raises:
        RunError: a run does not exist, cannot be read, or says nothing of a graph; or every run was on a graph that is
            too different.
    """
    found, anyway = [], set(space.starting_designs())
    for run in runs:
        study = Study.open(run)
        alike = similarity(study.manifest["data"], data)
        trials = front(study.history, study.objectives, study.bounds)
        trials.sort(key=lambda trial: (trial.values[study.objectives[0].name], trial.number))
        spread = [trials[place].design for place in spread_out(len(trials))]
        found.append((alike, study.name, [one for one in spread if one in space and one not in anyway]))
    kept = sorted((one for one in found if one[0] >= LEAST_SIMILARITY), key=lambda one: (-one[0], one[1]))
    if not kept:
        listed = ", ".join(f"{name} {alike:.2f}" for alike, name, _ in found)
        raise RunError(
            f"a warm start needs a run on a graph of similarity {LEAST_SIMILARITY} or more, got {listed or 'no run'}; "
            "name other runs, or none"
        )
    chosen: dict[Any, WarmStart] = {}
    for turn in range(max(len(designs) for _, _, designs in kept)):
        for alike, name, designs in kept:
            if turn < len(designs):
                chosen.setdefault(designs[turn], WarmStart(designs[turn], name, alike))
    return list(chosen.values())[:count]


def spread_out(count: int) -> list[int]:
    """The places 0 to count - 1, each as far as can be from those before it, beginning at the ends."""
    order = [0, count - 1][:count]
    while len(order) < count:
        gaps = np.abs(np.arange(count)[:, None] - np.array(order)[None, :]).min(axis=1)
        order.append(int(np.argmax(gaps)))
    return order


def _statistics(data: Mapping[str, Any]) -> list[float]:
    if data.get("num_nodes") is None:
        raise RunError(
            f"a warm start compares graphs, but the data {data.get('source')!r} has none; "
            "name runs of a search on a graph"
        )
    nodes, classes = max(int(data["num_nodes"]), 1), max(int(data["num_classes"]), 1)
    # One more of what may be none.
    return [
        float(nodes),
        (1.0 + int(data["adjacency_entries"])) / nodes,
        1.0 + int(data["num_features"]),
        float(classes),
        (1.0 + int(data["split"]["train"])) / classes,
    ]
