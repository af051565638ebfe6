"""Measuring the stages from which the inference time of every design follows; see `stage_times`.

A propagation step takes as long at hop 6 as at hop 1, and a transform's time is the sum of its layers', so a hundred
short measurements give the time of 153,510 designs before any is trained. Medians after a warm-up, the quicker of two
rounds, on the code that inference runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch.nn.functional import layer_norm

from engines.evaluation.costs import BLOCK_ROWS, Sizes, stages
from engines.evaluation.further_inputs import adjacency_rows
from engines.evaluation.inference import side_by_side, stack_rows
from engines.evaluation.normalise import Normaliser
from engines.evaluation.propagation import propagate_step
from engines.evaluation.stage_times import StageTimes
from engines.graph import Graph
from search_space.architecture import Architecture
from search_space.graph_operators import graph_operator
from search_space.graph_operators.correct_and_smooth import correct_and_smooth
from search_space.local_structure import STRUCTURE_WIDTH, local_structure
from search_space.message_operators import message_operator
from search_space.transform import NORM_EPSILON

SECONDS_PER_STAGE = 0.1
MOST_RUNS = 7


class StageTimer:
    """Measures the stages of one graph, each once, when first needed.

    Args:
        graph: the graph of the search.
        hidden_width, normalise: from the recipe.
        known: times measured before; not measured again.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        graph: Graph,
        hidden_width: int,
        normalise: str,
        known: StageTimes,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._graph, self._hidden_width, self._clock = graph, hidden_width, clock
        self._normaliser = Normaliser.fit(normalise, graph.features)
        self._features: NDArray[np.float32] | None = None
        self._matrices: dict[str, sparse.csr_array] = {}
        self._generator = torch.Generator().manual_seed(0)
        self.times = known

    def measure(self, designs: Iterable[Architecture], sizes: Sizes) -> StageTimes:
        """Return times that cover every stage of the designs, measuring what is missing."""
        return self.measure_stages(dict.fromkeys(stage for design in designs for stage, _ in stages(design, sizes)))

    def measure_stages(self, needed: Iterable[str]) -> StageTimes:
        """The same for stages by name."""
        needed = list(needed)
        seconds, entries = dict(self.times.seconds), dict(self.times.entries)
        missing = [stage for stage in needed if stage not in seconds]
        # Two rounds, the quicker one counts: what else the machine does comes in bursts longer than one measurement.
        for stage in missing * 2:
            median = max(self._median_seconds(self._stage(stage)), 1e-9)
            seconds[stage] = min(median, seconds.get(stage, median))
        for stage in needed:
            if stage.startswith("build/") and (key := stage.removeprefix("build/")) not in entries:
                entries[key] = int(self._matrix(key).nnz)
        self.times = StageTimes(self.times.key, seconds, entries)
        return self.times

    def release(self) -> None:
        """Drop the arrays that measuring needed."""
        self._features = None
        self._matrices.clear()

    def _median_seconds(self, run: Callable[[], object]) -> float:
        run()  # warm-up: compilation, page faults, caches
        spans: list[float] = []
        while len(spans) < 3 or (len(spans) < MOST_RUNS and sum(spans) < SECONDS_PER_STAGE):
            before = self._clock()
            run()
            spans.append(self._clock() - before)
            if sum(spans) > 10 * SECONDS_PER_STAGE:
                break
        return float(np.median(spans))

    def _matrix(self, key: str) -> sparse.csr_array:
        if key not in self._matrices:
            self._matrices[key] = graph_operator(key).matrix(self._graph.adjacency)
        return self._matrices[key]

    def _normalised(self) -> NDArray[np.float32]:
        if self._features is None:
            self._features = self._normaliser.apply(self._graph.features)
        return self._features

    def _random(self, *shape: int) -> torch.Tensor:
        return torch.empty(shape).uniform_(-0.1, 0.1, generator=self._generator)

    def _stage(self, stage: str) -> Callable[[], object]:
        """The code of one stage, ready to run."""
        kind, *details = stage.split("/")
        B, H, C = min(self._graph.num_nodes, BLOCK_ROWS), self._hidden_width, self._graph.num_classes
        if kind == "normalise" and details:
            normaliser = Normaliser.fit(details[0], self._graph.features)
            return lambda: normaliser.apply(self._graph.features)
        if kind == "normalise":
            return lambda: self._normaliser.apply(self._graph.features)
        if kind == "build":
            return lambda: graph_operator(details[0]).matrix(self._graph.adjacency)
        if kind == "hop":
            return self._hop(details[0], int(details[1]))
        if kind in ("join", "join-channels"):
            return self._join(details[0], int(details[1]), num_channels=1 if kind == "join" else 2)
        if kind == "cs-step":
            return self._correcting_step(details[0], int(details[1]))
        if kind == "cs-scale":
            return self._correcting()
        if kind in ("hidden-layer", "plain-layer", "norm-layer", "last-layer") and details:
            H = int(details[0])
        if kind in ("hidden-layer", "plain-layer"):
            return _layer(self._random(B, H), self._random(H, H), residual=kind == "hidden-layer")
        if kind == "label-layer":
            shown, weight, sums = self._random(B, C), self._random(C, int(details[0])), self._random(B, int(details[0]))
            return _inference(lambda: shown @ weight + sums)
        if kind == "adjacency-layer":
            weights = self._random(self._graph.num_nodes, int(details[0]))
            block, adjacency = slice(0, B), self._graph.adjacency
            return _inference(lambda: torch.sparse.mm(adjacency_rows(adjacency, block), weights))
        if kind == "count-structure":
            return lambda: local_structure(self._graph.adjacency)
        if kind == "structure-layer":
            of_rows, W = self._random(B, STRUCTURE_WIDTH), int(details[0])
            weight, sums = self._random(STRUCTURE_WIDTH, W), self._random(B, W)
            return _inference(lambda: of_rows @ weight + sums)
        if kind == "norm-layer":
            return _norm(self._random(B, H), self._random(H))
        if kind == "first-layer":
            width, H = int(details[0]), int(details[1]) if len(details) > 1 else H
            return _layer(self._random(B, width), self._random(width, H), residual=False)
        width = H if kind == "last-layer" else int(details[0])
        inputs, weight = self._random(B, width), self._random(width, C)
        return _inference(lambda: torch.softmax(inputs @ weight + 0.1, dim=1))

    def _hop(self, kind: str, width: int) -> Callable[[], object]:
        key, _, restarts = kind.partition("+")
        matrix, restart = self._matrix(key), 0.1 if restarts else 0.0
        start = (
            self._normalised()
            if width == self._graph.num_features
            else self._random(self._graph.num_nodes, width).numpy()
        )
        return lambda: propagate_step(matrix, start, restart=restart, start=start)

    def _correcting_step(self, key: str, width: int) -> Callable[[], object]:
        matrix, start = self._matrix(key), self._random(self._graph.num_nodes, width).numpy()

        def run() -> None:
            step = propagate_step(matrix, start, restart=0.1, start=start)
            np.clip(step, np.float32(0.0), np.float32(1.0), out=step)

        return run

    def _correcting(self) -> Callable[[], object]:
        """Correct & Smooth without its propagations."""
        split, labels = self._graph.split, self._graph.labels
        predicted = self._random(self._graph.num_nodes, 1, self._graph.num_classes).numpy()
        return lambda: correct_and_smooth(predicted, split.train, labels[split.train], 0, lambda before, _: before)

    def _join(self, message: str, num_hops: int, num_channels: int) -> Callable[[], object]:
        features = self._normalised()
        width = num_channels * self._graph.num_features
        operator = message_operator(message, num_hops, width, [self._generator])
        block = slice(0, min(self._graph.num_nodes, BLOCK_ROWS))
        # distinct arrays, so that each hop's rows come from memory of their own as in inference
        count = 1 if message == "none" else num_hops + 1
        hops = side_by_side([[features[block].copy() for _ in range(count)] for _ in range(num_channels)])
        return _inference(lambda: operator(stack_rows(hops, slice(None))).contiguous())


def _layer(inputs: torch.Tensor, weight: torch.Tensor, *, residual: bool) -> Callable[[], object]:
    def run() -> torch.Tensor:
        outputs = torch.relu(inputs @ weight + 0.1)
        return outputs + inputs if residual else outputs

    return _inference(run)


def _norm(inputs: torch.Tensor, gains: torch.Tensor) -> Callable[[], object]:
    return _inference(lambda: layer_norm(inputs, inputs.shape[-1:], eps=NORM_EPSILON) * gains + 0.1)


def _inference(run: Callable[[], torch.Tensor]) -> Callable[[], object]:
    def timed() -> torch.Tensor:
        with torch.inference_mode():
            return run()

    return timed
