"""Stages: measured once, and adding up to what a design really takes."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from engines.evaluation.costs import Sizes, cost_of
from engines.evaluation.further_inputs import standard_structure
from engines.evaluation.inference import TrainingLabels, classify
from engines.evaluation.normalise import Normaliser
from engines.evaluation.stage_times import StageTimes
from engines.evaluation.threads import set_threads
from engines.evaluation.timing import StageTimer
from engines.graph import Graph, Split, undirected
from search_space.architecture import Architecture
from search_space.assembly import Network
from search_space.hops import hop_width

NOBODY = np.asarray([], dtype=np.int64)


def made_graph(N: int, F: int, seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    adjacency, _, _ = undirected(rng.integers(N, size=5 * N), rng.integers(N, size=5 * N), N)
    features = rng.random((N, F), dtype=np.float32)
    labels = (np.arange(N) % 3).astype(np.int64)
    return Graph("made", adjacency, features, labels, ("a", "b", "c"), Split(np.arange(N // 3), NOBODY, NOBODY))


def sizes_of(graph: Graph, hidden_width: int = 32) -> Sizes:
    return Sizes(graph.num_nodes, graph.num_features, graph.num_classes, hidden_width, int(graph.adjacency.nnz))


class Clock:
    """Every reading is one second after the last."""

    def __init__(self) -> None:
        self.readings = 0

    def __call__(self) -> float:
        self.readings += 1
        return float(self.readings)


def test_a_stage_is_measured_once_and_known_ones_are_not_measured() -> None:
    graph, clock = made_graph(40, 6), Clock()
    timer = StageTimer(graph, 32, "row", StageTimes("key", {"normalise": 7.0}), clock)
    design = Architecture.parse("ppr0.1^2/weighted/mlp-3/triangle^1")
    first = timer.measure([design], sizes_of(graph))
    assert first.seconds["normalise"] == 7.0
    assert first.seconds["join/weighted/2"] == 1.0
    assert first.entries.keys() == {"augmented", "triangle"}
    readings = clock.readings
    assert timer.measure([design], sizes_of(graph)) == first
    assert clock.readings == readings


@pytest.mark.parametrize(
    "text",
    [
        "augmented^5/concat/mlp-3/ppr0.1^4",
        "twochannel^3/jk/mlp-4/cs0.8^4@hidden=128,norm=layer,residual=off,labels=3,adjacency=rows",
        "-/-/mlp-2/-@structure=counts",
    ],
)
def test_stage_times_add_up_to_the_time_of_a_design(text: str) -> None:
    set_threads(1)
    graph = made_graph(6000, 96)
    design = Architecture.parse(text)
    timer = StageTimer(graph, 64, "row", StageTimes("key"))
    sizes = sizes_of(graph, 64)
    width, hidden = hop_width(design, 96), design.hidden_width or 64
    network = Network(design, width, 3, hidden, [torch.Generator().manual_seed(0)], graph.num_nodes).eval()
    known = TrainingLabels(graph.split.train, graph.labels[graph.split.train])
    normaliser = Normaliser.fit("row", graph.features)
    standard, _ = standard_structure(graph.adjacency)

    def real() -> float:
        before = time.perf_counter()
        classify(design, network, graph.adjacency, normaliser.apply(graph.features), known, standard)
        return time.perf_counter() - before

    real()
    before = min(real() for _ in range(5))
    times = timer.measure([design], sizes)
    measured = min(before, *(real() for _ in range(5)))  # on both sides, should the machine be busy on one
    predicted = cost_of(design, sizes, times.seconds, times.entries)["inference_seconds"]
    # a wide band: the machine may be busy, and a wrong count of hops or blocks is off by far more
    assert 0.3 * measured < predicted < 3.5 * measured
