"""Costs of the extended space: equal to the single design's, from a table that has every stage."""

from __future__ import annotations

import numpy as np
import pytest

from engines.evaluation.costs import Sizes, cost_of, stages
from engines.evaluation.extended_costs import NAMES, ExtendedCosts, cover, covering
from engines.evaluation.recipe import Recipe
from engines.evaluation.stage_times import StageTimes
from engines.evaluation.timing import StageTimer
from engines.graph import Graph, Split, undirected
from engines.objectives import OBJECTIVES, Bound
from search_space.extended import ExtendedSpace

NOBODY = np.asarray([], dtype=np.int64)
SPACE = ExtendedSpace(
    Recipe().as_mapping(),
    {
        "k_pre": [0, 1, 2, 3, 6, 8, 9, 10],
        "message": ["none", "concat", "sum", "jk"],
        "k_trans": [1, 2, 5],
        "hidden_width": [32, 128],
    },
)


class Clock:
    """Every reading is one second after the last, so that each stage takes a second."""

    def __init__(self) -> None:
        self.readings = 0

    def __call__(self) -> float:
        self.readings += 1
        return float(self.readings)


def made_graph() -> Graph:
    rng = np.random.default_rng(0)
    adjacency, _, _ = undirected(rng.integers(30, size=90), rng.integers(30, size=90), 30)
    labels = (np.arange(30) % 3).astype(np.int64)
    features = rng.random((30, 4), dtype=np.float32)
    return Graph("made", adjacency, features, labels, ("a", "b", "c"), Split(np.arange(9), NOBODY, NOBODY))


@pytest.fixture(scope="module")
def costs() -> tuple[ExtendedCosts, StageTimes, Sizes]:
    graph = made_graph()
    sizes = Sizes(30, 4, 3, 128, int(graph.adjacency.nnz))
    timer = StageTimer(graph, 128, "row", StageTimes("key"), Clock())
    times = cover(timer, SPACE, sizes)
    return ExtendedCosts(SPACE, sizes, times), times, sizes


def test_every_design_has_all_its_stages_in_the_table(costs: tuple[ExtendedCosts, StageTimes, Sizes]) -> None:
    _, times, sizes = costs
    for design in SPACE.sample(500, np.random.default_rng(0)):
        assert {stage for stage, _ in stages(design, sizes)} <= times.seconds.keys()


def test_the_costs_are_those_of_the_single_design(costs: tuple[ExtendedCosts, StageTimes, Sizes]) -> None:
    priced, times, sizes = costs
    designs = SPACE.sample(50, np.random.default_rng(1))
    found = priced.of(designs)
    for name in NAMES:
        expected = [cost_of(design, sizes, times.seconds, times.entries)[name] for design in designs]
        np.testing.assert_array_equal(found[name], expected)


def test_no_design_lies_outside_the_extents(costs: tuple[ExtendedCosts, StageTimes, Sizes]) -> None:
    priced, _, _ = costs
    extents = priced.extents([])
    for name, values in priced.of(SPACE.sample(1000, np.random.default_rng(2))).items():
        assert extents[name][0] <= values.min()
        assert values.max() <= extents[name][1]


def test_a_bound_ends_the_extent(costs: tuple[ExtendedCosts, StageTimes, Sizes]) -> None:
    priced, _, _ = costs
    assert priced.extents([Bound(OBJECTIVES["parameters"], 5000.0)])["parameters"][1] == 5000.0


def test_times_between_those_measured_are_read_off_a_line() -> None:
    graph = made_graph()
    sizes = Sizes(30, 4, 3, 128, int(graph.adjacency.nnz))
    measured = {f"join/sum/{k}": float(seconds) for k, seconds in ((1, 2), (6, 7), (10, 15))}
    timer = StageTimer(graph, 128, "row", StageTimes("key", measured), Clock())
    times = cover(timer, SPACE, sizes)
    assert times.seconds["join/sum/3"] == pytest.approx(4.0)
    assert times.seconds["join/sum/8"] == pytest.approx(11.0)


def test_the_covering_designs_are_points_of_the_space() -> None:
    assert all(design in SPACE for design in covering(SPACE)[::97])
