"""LocalEvaluator: the plain evaluation of designs in this process, the reference that every other path must match."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from engines.evaluation.costs import Sizes, cost_of, cost_table
from engines.evaluation.hop_cache import HopCache
from engines.evaluation.inference import post_process, stack_rows, transform
from engines.evaluation.metrics import check_metric, confusion, score
from engines.evaluation.normalise import Normaliser
from engines.evaluation.recipe import Recipe
from engines.evaluation.threads import set_threads
from engines.evaluation.timing import StageTimer, StageTimes, stage_key
from engines.evaluation.training import Rows, Trained, train
from engines.graph import Graph, Nodes
from engines.trial import Outcome
from search_space.architecture import Architecture
from search_space.assembly import required_hops
from search_space.errors import ConfigError, GraphError, TrialFailure
from search_space.graph_operators import graph_operator
from search_space.space import SearchSpace


@dataclass(frozen=True, eq=False)
class TrainedDesign:
    """One design trained once per seed.

    Attributes:
        design: what was trained.
        seeds: S seeds.
        trained: the network with the best weights of each repeat.
        normaliser: what was done to the features first.
        val_errors: (S,) 1 - score on the validation nodes, after post-processing.
        details: JSON types for the record: per-seed figures, epochs, stage seconds, learning curve.
    """

    design: Architecture
    seeds: tuple[int, ...]
    trained: Trained
    normaliser: Normaliser
    val_errors: NDArray[np.float64]
    details: Mapping[str, Any] = field(default_factory=dict)


class LocalEvaluator:
    """Evaluates designs on one graph in this process.

    Features are normalised once and every hop is propagated once, whatever the number of trials. Several threads may
    evaluate at the same time; they wait for each other only where hops and stage times are made.

    Args:
        graph: with labels and a split.
        recipe: how every design is trained.
        threads: of the numerical libraries; all available cores when None.
        device: where networks train, `cpu` or a CUDA device.
        stage_times: measured before, for this graph and machine; only missing stages are measured.
        memory_bytes: budget for hop features held in memory; half of what is free when None.
        clock: monotonic seconds.
    Raises:
        GraphError, ObjectiveError: the split cannot train a model or does not define the metric.
        ConfigError: the device does not exist, or the features do not fit the memory budget.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        recipe: Recipe | None = None,
        threads: int | None = None,
        device: str = "cpu",
        stage_times: StageTimes | None = None,
        memory_bytes: int | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.recipe = recipe or Recipe()
        check_metric(graph, self.recipe.metric)
        self.graph = graph
        self.threads = set_threads(threads)
        self.device = _device(device)
        self.memory_bytes = memory_bytes if memory_bytes is not None else free_memory_bytes() // 2
        _check_memory(graph, self.memory_bytes)
        self._clock = clock
        self.normaliser = Normaliser.fit(self.recipe.normalise, graph.features)
        self.hops = HopCache(
            lambda key: graph_operator(key).matrix(graph.adjacency),
            self.normaliser.apply(graph.features),
            self.memory_bytes,
        )
        self.sizes = Sizes(
            graph.num_nodes, graph.num_features, graph.num_classes, self.recipe.hidden_width, int(graph.adjacency.nnz)
        )
        key = stage_key(graph, self.recipe.hidden_width, self.recipe.normalise, self.threads)
        self._shared = threading.RLock()
        self._timer = StageTimer(
            graph, self.recipe.hidden_width, self.recipe.normalise, stage_times or StageTimes(key), clock
        )

    @property
    def stage_times(self) -> StageTimes:
        """Every stage measured so far."""
        return self._timer.times

    def known(self, space: SearchSpace) -> dict[str, NDArray[np.float64]]:
        """Known objectives of every design, arrays of shape (len(space),) in the order of its rows.

        Measures the stages that are missing, which takes seconds the first time.
        """
        codes = space.codes()
        _, fronts = np.unique(codes[:, :4], axis=0, return_index=True)
        _, backs = np.unique(codes[:, 4:], axis=0, return_index=True)
        designs = [space.design(int(row)) for row in np.concatenate((fronts, backs))]
        times = self._timer.measure(designs, self.sizes)
        self._timer.release()
        return cost_table(space, self.sizes, times.seconds, times.entries)

    def known_of(self, design: Architecture) -> dict[str, float]:
        """Known objectives of one design."""
        with self._shared:
            times = self._timer.measure([design], self.sizes)
        return cost_of(design, self.sizes, times.seconds, times.entries)

    def evaluate(self, design: Architecture, seeds: Sequence[int]) -> Outcome:
        """Train once per seed and return all objectives; `val_error` is the mean over seeds.

        Raises:
            TrialFailure: training diverged, or memory ran out.
        """
        trained = self.train(design, seeds)
        errors = trained.val_errors
        variances = {"val_error": float(errors.var(ddof=1) / errors.size)} if errors.size > 1 else {}
        return Outcome(
            values={"val_error": float(errors.mean()), **self.known_of(design)},
            variances=variances,
            details=trained.details,
        )

    def train(self, design: Architecture, seeds: Sequence[int]) -> TrainedDesign:
        """Train one design once per seed, and measure the validation error once after post-processing.

        Raises:
            TrialFailure: training diverged, or memory ran out.
        """
        split, started = self.graph.split, self._clock()
        try:
            hops = self._joined_hops(design)
            propagated = self._clock()
            trained = train(
                design,
                self.recipe,
                self._rows(hops, split.train),
                self._rows(hops, split.validation),
                self.graph.num_classes,
                seeds,
                self.device,
            )
            fitted = self._clock()
            errors = 1.0 - self._scores(design, trained, split.validation)
        except MemoryError as error:
            raise TrialFailure(f"out of memory: {error or 'an allocation failed'}") from error
        details = {
            "val_errors": errors.tolist(),
            "val_losses": trained.validation_losses.tolist(),
            "best_epochs": trained.best_epochs.tolist(),
            "num_epochs": trained.num_epochs,
            "curve": trained.curve,
            "seconds": {
                "propagate": propagated - started,
                "train": fitted - propagated,
                "infer": self._clock() - fitted,
            },
        }
        return TrainedDesign(design, tuple(seeds), trained, self.normaliser, errors, details)

    def test_scores(self, trained: TrainedDesign) -> NDArray[np.float64]:
        """Scores on the test nodes, (S,). It and `confusion` alone read test labels; for designs already chosen.

        Raises:
            GraphError: the split has no test nodes.
        """
        if self.graph.split.test.size == 0:
            raise GraphError(f"the test part of split {self.graph.split.name!r} of {self.graph.name} is empty")
        return self._scores(trained.design, trained.trained, self.graph.split.test)

    def confusion(self, trained: TrainedDesign, part: Literal["validation", "test"]) -> NDArray[np.int64]:
        """How often nodes of each class (row) were taken for each class (column), (C, C), over all repeats.

        `test` reads test labels, as `test_scores` does.
        """
        nodes: Nodes = getattr(self.graph.split, part)
        return confusion(self._probabilities(trained.design, trained.trained, nodes), self.graph.labels[nodes])

    def probabilities(self, trained: TrainedDesign) -> NDArray[np.float32]:
        """Class probabilities of all nodes from each repeat, (S, N, C)."""
        return self._probabilities(trained.design, trained.trained, None)

    def close(self) -> None:
        """Release the hop features, in memory and on disk."""
        self.hops.close()

    def _joined_hops(self, design: Architecture) -> list[NDArray[np.float32]]:
        if design.pre_aggregator is None:
            return [self.hops.hop("augmented", 0.0, 0)]
        operator = graph_operator(design.pre_aggregator)
        with self._shared:
            return [self.hops.hop(operator.matrix_key, operator.restart, k) for k in required_hops(design)]

    def _rows(self, hops: Sequence[NDArray[np.float32]], nodes: Nodes) -> Rows:
        return Rows(stack_rows(hops, nodes), torch.from_numpy(self.graph.labels[nodes]))

    def _probabilities(self, design: Architecture, trained: Trained, nodes: Nodes | None) -> NDArray[np.float32]:
        """(S, n, C) of the nodes, after post-processing."""
        hops = self._joined_hops(design)
        if design.post_aggregator is None:
            return transform(trained.network, hops, nodes)
        operator = graph_operator(design.post_aggregator)
        with self._shared:
            matrix = self.hops.matrix(operator.matrix_key)
        spread = post_process(transform(trained.network, hops), matrix, operator.restart, design.k_post)
        return spread if nodes is None else spread[:, nodes]

    def _scores(self, design: Architecture, trained: Trained, nodes: Nodes) -> NDArray[np.float64]:
        labels = self.graph.labels[nodes]
        return np.asarray(
            [score(self.recipe.metric, repeat, labels) for repeat in self._probabilities(design, trained, nodes)]
        )


def free_memory_bytes() -> int:
    """Memory that can be taken without swapping, as the system states it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux: half of the physical memory is taken as free
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _check_memory(graph: Graph, budget: int) -> None:
    one_hop = graph.num_nodes * graph.num_features * 4
    if 3 * one_hop > budget:
        raise ConfigError(
            f"{graph.name} has dense features of {_readable(one_hop)} per hop ({graph.num_nodes} nodes x "
            f"{graph.num_features} features) and propagating needs three such arrays, but the memory budget is "
            f"{_readable(budget)}; raise it with --memory, or reduce the features (--features svd)"
        )


def _readable(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e8 else f"{num_bytes / 1e6:.3f} MB"


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"unknown device {name!r}; choose from: cpu, cuda, cuda:0, ...") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {name!r} was asked for, but torch finds no CUDA device here; use --device cpu")
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {name!r} is not supported; choose from: cpu, cuda")
    return device
