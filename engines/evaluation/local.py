"""LocalEvaluator: the plain evaluation of designs in this process, the reference that every other path must match."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.abc import InspectLoader
from importlib.util import find_spec
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from engines.evaluation.costs import Sizes, cost_of, cost_table
from engines.evaluation.design_training import DesignTrainer, Task, TrainedDesign
from engines.evaluation.extended_costs import ExtendedCosts, cover, paper_designs
from engines.evaluation.hop_cache import HopCache
from engines.evaluation.hop_store import HopStore, Section, section_key
from engines.evaluation.metrics import check_metric
from engines.evaluation.normalise import Normaliser
from engines.evaluation.recipe import Recipe
from engines.evaluation.stage_times import StageTimes, stage_key
from engines.evaluation.threads import set_threads
from engines.evaluation.timing import StageTimer
from engines.graph import Graph, Nodes
from engines.trial import Outcome
from search_space.architecture import Architecture
from search_space.errors import ConfigError, GraphError
from search_space.extended import ExtendedSpace
from search_space.graph_operators import graph_operator
from search_space.space import SearchSpace

_SHARE_OF_OTHERS = 20
"""Each normalisation other than the recipe's may keep one part in so many of the memory in hops."""
_MAKERS_OF_HOPS = (
    "search_space.graph_operators.augmented",
    "search_space.graph_operators.base",
    "search_space.graph_operators.heat",
    "search_space.graph_operators.high_pass",
    "search_space.graph_operators.triangle",
    "engines.evaluation.normalise",
    "engines.evaluation.propagation_kernel",
)


@dataclass(frozen=True, slots=True)
class HopStorage:
    """How hop features are kept.

    Attributes:
        dtype: `float32`, or `float16`, which halves what they take; its error is stated at `HalfRows`.
        store: a folder in which hops stay for later runs and other processes; None keeps them for this process only.
    """

    dtype: str = "float32"
    store: HopStore | None = None


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
        memory_bytes: budget for features, hops and training; half of what is free when None. Features and the hops
            in memory take half of it at most (features alone may take a third), what one training takes the other.
        hop_storage: how hops are kept and in which precision; as float32 for this process when None.
        trainings_at_once: among how many the memory for training is shared, in this process or others.
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
        hop_storage: HopStorage | None = None,
        trainings_at_once: int = 1,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        recipe = recipe or Recipe()
        check_metric(graph, recipe.metric)
        self.graph = graph
        self.threads = set_threads(threads)
        self.device = _device(device)
        self.memory_bytes = memory_bytes if memory_bytes is not None else free_memory_bytes() // 2
        _check_memory(graph, self.memory_bytes)
        self.normaliser = Normaliser.fit(recipe.normalise, graph.features)
        self.sizes = Sizes(
            graph.num_nodes, graph.num_features, graph.num_classes, recipe.hidden_width, int(graph.adjacency.nnz)
        )
        features = self.normaliser.apply(graph.features)
        self.hop_storage = storage = hop_storage or HopStorage()
        self.hop_section = None if storage.store is None else hop_section(graph, recipe)
        self._section = storage.store.section(self.hop_section) if storage.store and self.hop_section else None
        self.hops = HopCache(
            lambda key: graph_operator(key).matrix(graph.adjacency),
            features,
            max(self.memory_bytes // 2 - features.nbytes, 0),
            store=self._section,
            dtype=storage.dtype,
        )
        training_bytes = self.memory_bytes if self.device.type == "cpu" else free_device_bytes(self.device)
        self.task = Task(
            graph.labels,
            graph.split,
            self.sizes,
            recipe,
            self.normaliser,
            training_bytes // 2 // trainings_at_once,
        )
        self._others: dict[str, tuple[Normaliser, HopCache, Section | None]] = {}
        self._trainer = DesignTrainer(self.task, self.hops, self.device, clock, self._other_features, graph.adjacency)
        key = stage_key(graph, recipe.hidden_width, recipe.normalise, self.threads)
        self._shared = threading.RLock()
        self._timer = StageTimer(graph, recipe.hidden_width, recipe.normalise, stage_times or StageTimes(key), clock)

    @property
    def recipe(self) -> Recipe:
        """How designs are trained."""
        return self.task.recipe

    def use_recipe(self, recipe: Recipe) -> None:
        """Train by another recipe from now on, with the hops and stage times that are there.

        Raises:
            ConfigError: it differs in `normalise` or `hidden_width`, to which these belong, or its metric does not suit
                the labels.
        """
        for name in ("normalise", "hidden_width"):
            old, new = getattr(self.recipe, name), getattr(recipe, name)
            if new != old:
                raise ConfigError(f"this evaluator was made for {name} {old!r}, got {new!r}; make another one")
        check_metric(self.graph, recipe.metric)
        self.task = self._trainer.task = replace(self.task, recipe=recipe)

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

    def known_costs(self, space: ExtendedSpace) -> ExtendedCosts:
        """Known objectives of a space that is too large to list, computed where they are asked for.

        Measures the stages that are missing, which takes up to a minute the first time.
        """
        # the paper's stages first and one by one, so that what is kept for later runs does not depend on the space
        self._timer.measure(paper_designs(space), self.sizes)
        times = cover(self._timer, space, self.sizes)
        self._timer.release()
        return ExtendedCosts(space, self.sizes, times)

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
        return self._trainer.train(design, seeds)

    def test_scores(self, trained: TrainedDesign) -> NDArray[np.float64]:
        """Scores on the test nodes, (S,). It and `confusion` alone read test labels; for designs already chosen.

        Raises:
            GraphError: the split has no test nodes.
        """
        if self.graph.split.test.size == 0:
            raise GraphError(f"the test part of split {self.graph.split.name!r} of {self.graph.name} is empty")
        return self._trainer.scores(trained.design, trained.trained, self.graph.split.test)

    def confusion(self, trained: TrainedDesign, part: Literal["validation", "test"]) -> NDArray[np.int64]:
        """How often nodes of each class (row) were taken for each class (column), (C, C), over all repeats.

        `test` reads test labels, as `test_scores` does.
        """
        nodes: Nodes = getattr(self.graph.split, part)
        return self._trainer.confusion(trained.design, trained.trained, nodes)

    def probabilities(self, trained: TrainedDesign) -> NDArray[np.float32]:
        """Class probabilities of all nodes from each repeat, (S, N, C)."""
        return self._trainer.probabilities(trained.design, trained.trained, None)

    def _other_features(self, kind: str) -> tuple[Normaliser, HopCache]:
        """Features normalised in another way than the recipe's, and their hops; made when they are first asked for.

        They share the matrices. Each kind may keep some hops in memory, and what goes beyond that in files.
        """
        if kind not in self._others:
            normaliser, storage = Normaliser.fit(kind, self.graph.features), self.hop_storage
            name = hop_section(self.graph, replace(self.recipe, normalise=kind))
            section = None if storage.store is None else storage.store.section(name)
            budget = self.memory_bytes // _SHARE_OF_OTHERS
            features = normaliser.apply(self.graph.features)
            hops = HopCache(self.hops.matrix, features, budget, store=section, dtype=storage.dtype)
            self._others[kind] = normaliser, hops, section
        normaliser, hops, _ = self._others[kind]
        return normaliser, hops

    def close(self) -> None:
        """Release the hop features, in memory and on disk."""
        for _, hops, section in self._others.values():
            hops.close()
            if section is not None:
                section.close()
        self._others.clear()
        self.hops.close()
        if self._section is not None:
            self._section.close()


def hop_section(graph: Graph, recipe: Recipe) -> str:
    """Name of the section of a hop store that holds this graph's hops under this recipe.

    Matrices and steps are pasca's own, so the source code that makes them is part of what a hop depends on: hops that
    another version of it made are not found, rather than read as if they were this one's.
    """
    digest = hashlib.sha256()
    for name in _MAKERS_OF_HOPS:
        spec = find_spec(name)  # not imported: numba is loaded when it is needed
        assert spec is not None
        assert isinstance(spec.loader, InspectLoader)
        digest.update((spec.loader.get_source(name) or "").encode())
    return section_key(graph.structure_checksum, recipe.normalise, digest.hexdigest())


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


def free_device_bytes(device: torch.device) -> int:
    """Memory that is free on a CUDA device."""
    return int(torch.cuda.mem_get_info(device)[0])


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


__all__ = ["HopStorage", "LocalEvaluator", "TrainedDesign", "free_memory_bytes", "hop_section"]
