"""GroupEvaluator: one design at a time, by all ranks of a group; what LocalEvaluator does, spread out.

Every rank of the group makes one and calls its methods alike, with equal arguments. Each holds the hop features of its
own nodes only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engines.evaluation.admm import AdmmSettings, train_by_admm
from engines.evaluation.communicator import Communicator
from engines.evaluation.feature_slices import FeatureSlices
from engines.evaluation.graph_share import GraphShare
from engines.evaluation.group_training import OwnRows, gather_in_order, train_in_group
from engines.evaluation.inference import stack_rows, transform
from engines.evaluation.metrics import check_metric, score
from engines.evaluation.parameter_server import ServerSettings
from engines.evaluation.plan_model import Layout, Rates, choose_plan
from engines.evaluation.plans import USUAL_BUFFER_BYTES, PropagationPlan, Rows, Walk
from engines.evaluation.recipe import Recipe, recipe_of
from engines.evaluation.row_blocks import RowBlocks
from engines.evaluation.training import Trained
from engines.graph import Nodes
from search_space.architecture import Architecture
from search_space.errors import ConfigError, TrialFailure
from search_space.graph_operators import graph_operator
from search_space.hops import required_hops
from search_space.names import AggregatorName

USUAL_RATES = Rates(multiply_adds=1e9, wire_bytes=1e9)
"""For choosing a plan, which needs no more than their ratio: a core's propagation against a fast network's share."""

DEEPEST = 10
"""Hops that the choice of a plan reckons with."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """How the ranks of a group share their work.

    Attributes:
        plan: `rows`, `features`, or `auto`.
        partition: of the nodes: `contiguous`, `hash` or `metis`; None for that of a prepared graph, else contiguous.
        servers: how weights are served.
        admm: how ranks come to agree, where `servers` says that they train by admm.
        batch_rows: of the global batch; None for all training rows.
        buffer_bytes: working buffers of one rank.
        memory_bytes: what propagation may take on one rank; None for no limit.
    """

    plan: str = "auto"
    partition: str | None = None
    servers: ServerSettings = field(default_factory=ServerSettings)
    admm: AdmmSettings = field(default_factory=AdmmSettings)
    batch_rows: int | None = None
    buffer_bytes: int = USUAL_BUFFER_BYTES
    memory_bytes: int | None = None


class GroupEvaluator:
    """Evaluates designs on one graph with all ranks of a group.

    Args:
        communicator: the group.
        share: this rank's share of a graph with labels and a split.
        recipe: how every design is trained.
        settings: how work is shared.
    Raises:
        GraphError, ObjectiveError: the split cannot train a model or does not define the metric.
        ConfigError: a setting is unknown, or the hops fit no plan.
    """

    def __init__(self, communicator: Communicator, share: GraphShare, recipe: Recipe, settings: GroupSettings) -> None:
        graph = share.graph
        check_metric(graph, recipe.metric)
        self._communicator, self.graph, self.recipe, self._settings = communicator, graph, recipe, settings
        chosen = choose_plan(
            settings.plan,
            Layout.counted(share.report),
            graph.num_features,
            DEEPEST,
            USUAL_RATES,
            buffer_bytes=settings.buffer_bytes,
            memory_bytes=settings.memory_bytes,
        )
        ownership = share.ownership
        self._nodes = ownership.nodes
        self._order = np.argsort(self._nodes)
        self.plan: PropagationPlan
        if chosen.plan == "rows":
            self.plan = RowBlocks(communicator, ownership, share.block, settings.buffer_bytes)
        else:
            self.plan = FeatureSlices(communicator, ownership, share.matrix, settings.buffer_bytes)
        self.statement: dict[str, Any] = {
            "ranks": communicator.size,
            "plan": chosen.plan,
            "partition": share.partition,
            **share.report.as_mapping(),
        }
        self.normaliser = share.normaliser(recipe.normalise)
        self._features = self.normaliser.apply(share.features())
        self._walks: dict[tuple[str, float], tuple[Walk, list[Rows]]] = {}

    def evaluate(self, design: Architecture, seeds: Sequence[int]) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Train once per seed.

        Returns:
            (S,) 1 - score on the validation nodes after post-processing, and details for the record (JSON types); the
            same on every rank, but for the times.
        Raises:
            TrialFailure: training diverged, or ranks cannot evaluate such a design together; on every rank alike.
        """
        _check_design(design)
        traffic, started = self._communicator.traffic.copy(), time.perf_counter()
        hops = self._joined_hops(design)
        propagated = time.perf_counter()
        trained, details = self._train(design, hops, seeds)
        fitted = time.perf_counter()
        errors = 1.0 - self._scores(design, trained, hops, self.graph.split.validation)
        finished = time.perf_counter()
        moved = self._communicator.traffic.since(traffic)
        mine = np.array(
            [finished - started, moved.send_seconds + moved.wait_seconds, moved.sent_bytes, moved.num_messages]
        )
        everybody = np.stack(self._communicator.gather(mine))
        details |= {
            "val_errors": errors.tolist(),
            "val_losses": trained.validation_losses.tolist(),
            "best_epochs": trained.best_epochs.tolist(),
            "num_epochs": trained.num_epochs,
            "curve": trained.curve,
            "seconds": {
                "propagate": propagated - started,
                "train": fitted - propagated,
                "infer": finished - fitted,
            },
            "group": {
                **self.statement,
                "sent_bytes": int(everybody[:, 2].sum()),
                "messages": int(everybody[:, 3].sum()),
                "communicating_share": [round(float(row[1] / row[0]), 4) for row in everybody],
            },
        }
        return errors, details

    def hop(self, aggregator: str, k: int) -> Rows:
        """(n, F) own rows of one hop; every rank calls this alike."""
        if k == 0:
            return self._features
        operator = graph_operator(aggregator)
        key = operator.matrix_key, operator.restart
        if key not in self._walks:
            self._walks[key] = self.plan.walk(operator.matrix_key, self._features, operator.restart), []
        walk, hops = self._walks[key]
        if len(hops) < k:
            hops.extend(walk.steps(k - len(hops)))
        return hops[k - 1]

    @property
    def nodes(self) -> Nodes:
        """(n,) the nodes of this rank, in the order of its rows."""
        return self._nodes

    def _joined_hops(self, design: Architecture) -> list[Rows]:
        if design.pre_aggregator is None:
            return [self._features]
        # The deepest first: what is missing is then propagated in one go.
        self.hop(design.pre_aggregator, design.k_pre)
        return [self.hop(design.pre_aggregator, k) for k in required_hops(design)]

    def _train(
        self, design: Architecture, hops: Sequence[Rows], seeds: Sequence[int]
    ) -> tuple[Trained, dict[str, Any]]:
        split, servers, recipe = self.graph.split, self._settings.servers, recipe_of(design, self.recipe)
        train, validation = self._own_rows(hops, split.train), self._own_rows(hops, split.validation)
        C = self.graph.num_classes
        if servers.consistency.name == "admm":
            if self._settings.batch_rows is not None:
                raise ConfigError("admm takes full-batch steps; leave the batch size out")
            trained, rounds = train_by_admm(
                self._communicator, design, recipe, train, validation, C, seeds, self._settings.admm
            )
            residuals = [[one.primal, one.dual, one.penalty] for one in rounds]
            return trained, {"admm_residuals": residuals}
        trained = train_in_group(
            self._communicator,
            design,
            recipe,
            train,
            validation,
            C,
            seeds,
            servers,
            self._settings.batch_rows,
        )
        return trained, {}

    def _places(self, part: Nodes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which of some nodes this rank owns: their places in the list, and the rows that they have here."""
        if self._nodes.size == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        at = np.searchsorted(self._nodes, part, sorter=self._order)
        rows = self._order[np.minimum(at, self._nodes.size - 1)]
        places = np.flatnonzero(self._nodes[rows] == part)
        return places, rows[places]

    def _own_rows(self, hops: Sequence[Rows], part: Nodes) -> OwnRows:
        places, rows = self._places(part)
        return OwnRows(stack_rows(hops, rows), torch.from_numpy(places), torch.from_numpy(self.graph.labels[part]))

    def _scores(self, design: Architecture, trained: Trained, hops: Sequence[Rows], part: Nodes) -> NDArray[np.float64]:
        """(S,) scores on some nodes, the same on every rank."""
        places, rows = self._places(part)
        if design.post_aggregator is None:
            # (S, n, C) -> (n, S, C): rows first, as they travel
            probabilities = self._transformed(trained, hops, rows).transpose(1, 0, 2)
        else:
            probabilities = self._post_processed(design, trained, hops)[rows]
        everybody = gather_in_order(self._communicator, np.ascontiguousarray(probabilities), places)
        labels = self.graph.labels[part]
        return np.asarray([score(self.recipe.metric, everybody[:, s], labels) for s in range(everybody.shape[1])])

    def _post_processed(self, design: Architecture, trained: Trained, hops: Sequence[Rows]) -> NDArray[np.float32]:
        """(n, S, C) probabilities of the own nodes after the last step; each row sums to one."""
        assert design.post_aggregator is not None
        operator = graph_operator(design.post_aggregator)
        probabilities = self._transformed(trained, hops, np.arange(self._nodes.size))
        S, n, C = probabilities.shape
        # (S, n, C) -> (n, S·C): all repeats travel together
        start = np.ascontiguousarray(probabilities.transpose(1, 0, 2)).reshape(n, S * C)
        spread = self.plan.walk(operator.matrix_key, start, operator.restart).steps(design.k_post)[-1]
        spread = spread.reshape(n, S, C)
        normalised: NDArray[np.float32] = spread / spread.sum(axis=2, keepdims=True)
        return normalised

    def _transformed(self, trained: Trained, hops: Sequence[Rows], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """(S, n, C) probabilities of some own rows, which may be none."""
        if rows.size == 0:
            num_repeats = len(next(trained.network.parameters()))
            return np.empty((num_repeats, 0, self.graph.num_classes), dtype=np.float32)
        return transform(trained.network, hops, rows)


def _check_design(design: Architecture) -> None:
    """Refuse what ranks have no way of doing together.

    Raises:
        TrialFailure: the design propagates by another matrix than the paper's, corrects and smooths, has further
            inputs, looks at nodes without labels, normalises batches, or features other than the recipe.
    """
    refused = ("label_steps", "adjacency", "consistency", "normalise", "structure")
    if design.norm == "batch" or any(getattr(design, name) is not None for name in refused):
        raise TrialFailure(
            "a group of ranks has no further inputs, trains on labelled nodes alone, without batch normalisation, and "
            f"normalises features as the recipe says; evaluate {design} with one rank an evaluator"
        )
    for aggregator in (design.pre_aggregator, design.post_aggregator):
        name = AggregatorName.parse(aggregator) if aggregator is not None else None
        if name is not None and (name.kind not in ("augmented", "ppr", "triangle") or name.normalisation):
            raise TrialFailure(
                f"a group of ranks propagates by augmented, ppr and triangle as usual, not by {name}; evaluate "
                f"{design} with one rank an evaluator"
            )
