"""DesignTrainer: trains designs and scores them from hop features and labels, in whatever process these are at hand."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.consistency import Consistency, unlabelled
from engines.evaluation.costs import Sizes
from engines.evaluation.feeding import BatchFeed, Feed, RowSource, WholeFeed
from engines.evaluation.further_inputs import FurtherInputs, as_large_as, standard_structure
from engines.evaluation.hop_cache import HopCache
from engines.evaluation.hop_files import HopRows
from engines.evaluation.inference import (
    TrainingLabels,
    post_process,
    shown_labels,
    side_by_side,
    stack_rows,
    transform,
)
from engines.evaluation.label_reuse import LabelReuse
from engines.evaluation.metrics import confusion, score
from engines.evaluation.normalise import Normaliser
from engines.evaluation.propagation import propagate_step
from engines.evaluation.recipe import Recipe, recipe_of
from engines.evaluation.side_by_side import train_side_by_side
from engines.evaluation.training import FurtherParts, Trained, together, train_from
from engines.evaluation.training_memory import plan_training
from engines.graph import Nodes, Split
from search_space.architecture import Architecture
from search_space.errors import TrialFailure
from search_space.graph_operators import channels, graph_operator
from search_space.hops import required_hops


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
        structure: how local structure was standardised, for a design that takes it.
    """

    design: Architecture
    seeds: tuple[int, ...]
    trained: Trained
    normaliser: Normaliser
    val_errors: NDArray[np.float64]
    details: Mapping[str, Any] = field(default_factory=dict)
    structure: Normaliser | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """What is learned and how, features aside; small enough to be sent to another process.

    Attributes:
        labels: (N,) int64, -1 for a node without one.
        split: which labels train and validate.
        sizes: of the graph and the network.
        recipe: how every design is trained.
        normaliser: what was done to the features.
        training_bytes: what one training may take, besides the hops.
    """

    labels: NDArray[np.int64]
    split: Split
    sizes: Sizes
    recipe: Recipe
    normaliser: Normaliser
    training_bytes: int

    @property
    def known(self) -> TrainingLabels:
        """The labels of the training nodes."""
        return TrainingLabels(self.split.train, self.labels[self.split.train])


class DesignTrainer:
    """Trains designs. Several threads may train at the same time; they wait for each other where hops are made.

    Args:
        task: what is learned.
        hops: of the normalised features; the caller's to close.
        device: where networks train.
        clock: monotonic seconds.
        other_features: gives, by name, another normalisation than the recipe's and its hops; None where there is none.
        adjacency: (N, N), for designs that take its rows or the local structure.
    """

    def __init__(
        self,
        task: Task,
        hops: HopCache,
        device: torch.device,
        clock: Callable[[], float] = time.perf_counter,
        other_features: Callable[[str], tuple[Normaliser, HopCache]] | None = None,
        adjacency: sparse.csr_array | None = None,
    ) -> None:
        self.task, self.hops, self._device, self._clock = task, hops, device, clock
        self._other_features, self._adjacency = other_features, adjacency
        self._structure: tuple[Normaliser, NDArray[np.float32]] | None = None
        self._structure_as: dict[str, tuple[Normaliser, NDArray[np.float32]]] = {}
        self._making = threading.Lock()

    def train(self, design: Architecture, seeds: Sequence[int]) -> TrainedDesign:
        """Train one design once per seed, and measure the validation error once after post-processing.

        Raises:
            TrialFailure: training diverged, or memory ran out.
        """
        task, started = self.task, self._clock()
        try:
            hops = self._joined_hops(design)
            propagated = self._clock()
            trained, batches = self._train(design, hops, seeds)
            fitted = self._clock()
            errors = 1.0 - self.scores(design, trained, task.split.validation)
        except (MemoryError, RuntimeError) as error:
            shortage = _shortage(error)
            if shortage is None:
                raise
            raise TrialFailure(f"out of memory: {shortage}") from error
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
            **batches,
        }
        normaliser, _ = self._features(design)
        structure = None if design.structure is None else self._standard_structure(design)[0]
        return TrainedDesign(design, tuple(seeds), trained, normaliser, errors, details, structure)

    def scores(self, design: Architecture, trained: Trained, nodes: Nodes) -> NDArray[np.float64]:
        """Score of each repeat on some labelled nodes, (S,)."""
        labels = self.task.labels[nodes]
        return np.asarray(
            [score(self.task.recipe.metric, repeat, labels) for repeat in self.probabilities(design, trained, nodes)]
        )

    def confusion(self, design: Architecture, trained: Trained, nodes: Nodes) -> NDArray[np.int64]:
        """How often nodes of each class (row) were taken for each class (column), (C, C), over all repeats."""
        return confusion(self.probabilities(design, trained, nodes), self.task.labels[nodes])

    def probabilities(self, design: Architecture, trained: Trained, nodes: Nodes | None) -> NDArray[np.float32]:
        """(S, n, C) of the nodes, all of them when None, after post-processing."""
        hops, shown = self._joined_hops(design), None
        if design.label_steps is not None:
            shown = shown_labels(
                design.label_steps, self.task.known, self._matrix("augmented"), self.task.sizes.num_classes
            )
        further = self._further(design)
        if design.post_aggregator is None:
            return transform(trained.network, hops, nodes, shown=shown, further=further)
        operator = graph_operator(design.post_aggregator)
        matrix = self._matrix(operator.matrix_key)
        spread = post_process(
            transform(trained.network, hops, shown=shown, further=further),
            matrix,
            operator,
            design.k_post,
            self.task.known,
        )
        return spread if nodes is None else spread[:, nodes]

    def _matrix(self, key: str) -> sparse.csr_array:
        with self._making:
            return self.hops.matrix(key)

    def _features(self, design: Architecture) -> tuple[Normaliser, HopCache]:
        """The normalisation that a design starts from, and its hops.

        Raises:
            TrialFailure: it is not the recipe's, and no other is at hand.
        """
        if design.normalise is None or design.normalise == self.task.normaliser.kind:
            return self.task.normaliser, self.hops
        if self._other_features is None:
            raise TrialFailure(
                f"{design} normalises features by {design.normalise}, but only {self.task.normaliser.kind} is at hand "
                "here; evaluate it in a single process"
            )
        with self._making:
            return self._other_features(design.normalise)

    def _joined_hops(self, design: Architecture) -> list[HopRows]:
        _, hops = self._features(design)
        if design.pre_aggregator is None:
            return [hops.reader("augmented", 0.0, 0)]
        found = []
        with self._making:
            for operator in channels(design.pre_aggregator):
                # the deepest first: what is missing is then made in one go
                hops.reader(operator.matrix_key, operator.restart, design.k_pre)
                found.append([hops.reader(operator.matrix_key, operator.restart, k) for k in required_hops(design)])
        return side_by_side(found)

    def _adjacency_of(self, design: Architecture) -> sparse.csr_array:
        if self._adjacency is None:
            raise TrialFailure(f"{design} takes adjacency rows or local structure, and there is no adjacency here")
        return self._adjacency

    def _standard_structure(self, design: Architecture) -> tuple[Normaliser, NDArray[np.float32]]:
        """Local structure of the graph, as large as the features; counted when it is first asked for."""
        adjacency = self._adjacency_of(design)
        normaliser, hops = self._features(design)
        with self._making:
            if self._structure is None:
                self._structure = standard_structure(adjacency)
            if normaliser.kind not in self._structure_as:
                standard, columns = self._structure
                made = as_large_as(standard, hops.reader("augmented", 0.0, 0)[self.task.split.train])
                self._structure_as[normaliser.kind] = made, made.apply(columns)
            return self._structure_as[normaliser.kind]

    def _further(self, design: Architecture) -> FurtherInputs | None:
        """Further inputs of all nodes, for a design that takes some."""
        if design.adjacency is None and design.structure is None:
            return None
        return FurtherInputs(
            None if design.adjacency is None else self._adjacency_of(design),
            None if design.structure is None else self._standard_structure(design)[1],
        )

    def _further_parts(self, design: Architecture) -> FurtherParts | None:
        further, split = self._further(design), self.task.split
        if further is None:
            return None
        return FurtherParts(*(further.rows(nodes, self._device) for nodes in (split.train, split.validation)))

    def _label_reuse(self, design: Architecture) -> LabelReuse | None:
        """What a design that reuses labels needs to train."""
        if design.label_steps is None:
            return None
        task, matrix = self.task, self._matrix("augmented")
        return LabelReuse(
            task.sizes.num_nodes,
            task.sizes.num_classes,
            task.known.nodes,
            task.known.classes,
            task.split.validation,
            design.label_steps,
            lambda before: propagate_step(matrix, before),
        )

    def _train(
        self, design: Architecture, hops: Sequence[HopRows], seeds: Sequence[int]
    ) -> tuple[Trained, dict[str, Any]]:
        """Train within the budget; returns details for the record where rows came in batches."""
        task, split = self.task, self.task.split
        plan = plan_training(
            design, task.sizes, split.train.size, split.validation.size, len(seeds), task.training_bytes
        )
        train, validation = (
            RowSource(hops, nodes, torch.from_numpy(task.labels[nodes])) for nodes in (split.train, split.validation)
        )
        if plan.batch_rows is not None and _needs_all_rows(design):
            raise TrialFailure(f"{design} needs all training rows at once, which do not fit the memory; raise --memory")
        reuse, further, consistency = self._label_reuse(design), self._further_parts(design), None
        if design.consistency is not None:
            others = unlabelled(task.sizes.num_nodes, split.train)
            consistency = Consistency(
                design.consistency, others, stack_rows(hops, others), self._device, self._further(design)
            )
        feed: Feed
        if plan.batch_rows is None:
            feed = WholeFeed(train.all(), validation.all(), self._device)
        else:
            feed = BatchFeed(train, validation, plan.batch_rows, self._device)

        def train_group(group: Sequence[int]) -> Trained:
            return train_from(
                feed, design, task.recipe, task.sizes.num_classes, group, self._device, reuse, further, consistency
            )

        parts: list[Trained]
        if plan.batch_rows is None and plan.repeats_together >= len(seeds) and self._device.type == "cpu":
            groups = _groups(seeds, -(-len(seeds) // min(torch.get_num_threads(), len(seeds))))
            parts = train_side_by_side(train_group, groups)
        else:
            parts = [train_group(group) for group in _groups(seeds, plan.repeats_together)]
        hidden_width = recipe_of(design, task.recipe).hidden_width
        whole = together(parts, design, feed.num_features, hidden_width, task.sizes.num_classes, task.sizes.num_nodes)
        return whole, {} if plan.batch_rows is None else {"batch_rows": plan.batch_rows}


def _needs_all_rows(design: Architecture) -> bool:
    choices = (design.label_steps, design.adjacency, design.consistency, design.structure)
    return any(choice is not None for choice in choices)


def _groups(seeds: Sequence[int], most: int) -> list[Sequence[int]]:
    """The seeds in order, in as few groups as possible, of about equal size."""
    count = -(-len(seeds) // most)
    cuts = [len(seeds) * i // count for i in range(count + 1)]
    return [seeds[first:last] for first, last in itertools.pairwise(cuts)]


def _shortage(error: MemoryError | RuntimeError) -> str | None:
    """What was lacking, if an error says that memory ran out: on the CPU torch raises a RuntimeError like any other."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return str(error) or "an allocation failed"
    found = re.search(r"can't allocate memory: you tried to allocate (\d+) bytes", str(error))
    return None if found is None else f"{int(found[1]) / 1e6:.1f} MB could not be had"
