"""Groups: which ranks evaluate together, and how rank 0 has them evaluate designs side by side.

Rank 0 suggests and records. The other ranks form groups of equal size, each of which evaluates one design at a time.
With two ranks, and where one group takes all ranks, rank 0 evaluates as well, so that no core idles by design.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engines.evaluation.communicator import Communicator
from engines.evaluation.distributed import GroupEvaluator, GroupSettings
from engines.evaluation.graph_share import GraphShare
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.messages import Tag
from engines.evaluation.recipe import Recipe
from engines.evaluation.threads import set_threads
from engines.graph import Graph
from engines.trial import Outcome
from search_space.architecture import Architecture
from search_space.errors import ConfigError, DataError, TrialFailure


@dataclass(frozen=True, slots=True)
class Roles:
    """Who does what.

    Attributes:
        groups: the ranks of each evaluator, ascending; the first of a group leads it.
        idle: ranks that are left over.
    """

    groups: tuple[tuple[int, ...], ...]
    idle: tuple[int, ...]

    @classmethod
    def of(cls, num_ranks: int, ranks_per_evaluator: int = 1) -> Roles:
        """Divide P ranks into groups of g.

        Raises:
            ConfigError: not one group can be formed.
        """
        P, g = num_ranks, ranks_per_evaluator
        if not 1 <= g <= P:
            raise ConfigError(
                f"an evaluator has 1 to {P} of the {P} ranks, got {g}; change --ranks-per-evaluator or mpiexec -n"
            )
        first = 0 if P <= 2 or g == P else 1
        count = (P - first) // g
        groups = tuple(tuple(range(first + i * g, first + (i + 1) * g)) for i in range(count))
        return cls(groups, tuple(range(first + count * g, P)))

    def color(self, rank: int) -> int | None:
        """The number of a rank's group; None where it is in none."""
        return next((number for number, group in enumerate(self.groups) if rank in group), None)

    def as_mapping(self) -> dict[str, Any]:
        """JSON types."""
        return {"groups": [list(group) for group in self.groups], "idle": list(self.idle)}


@dataclass(frozen=True, slots=True)
class Setup:
    """What a rank must know to evaluate; travels pickled.

    Attributes:
        ranks_per_evaluator: g.
        source: what the loader of a rank turns into the graph.
        checksum: of the graph that rank 0 has.
        recipe, settings, threads, memory_bytes, device: as for the evaluators.
    """

    ranks_per_evaluator: int
    source: Any
    checksum: str
    recipe: Recipe
    settings: GroupSettings
    threads: int
    memory_bytes: int | None
    device: str


@dataclass(frozen=True, slots=True)
class _Evaluate:
    design: str
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Stop:
    pass


@dataclass(frozen=True, slots=True)
class _Report:
    """Answer to an order: validation errors and details, or the reason why the trial failed."""

    errors: tuple[float, ...]
    details: Mapping[str, Any]
    reason: str | None = None


ShareOf = Callable[[Setup, Graph, Communicator], GraphShare]
"""This rank's share of the graph that the setup's source means, in a group."""
KnownOf = Callable[[Architecture], dict[str, float]]
Score = Callable[[Architecture, Sequence[int]], tuple[Any, dict[str, Any]]]


class Coordinator:
    """Rank 0's side: sets the groups up and hands out an evaluator for each.

    Args:
        world: all ranks; this one is rank 0 and the others are in `serve`.
        setup: for all of them.
        graph: the one that the setup's source means.
        share: gives this rank's share of it in a group.
        local: what evaluates where this rank is a group of its own, and knows the costs of a design.
    Raises:
        ConfigError: the groups cannot be formed.
    """

    def __init__(self, world: Communicator, setup: Setup, graph: Graph, share: ShareOf, local: LocalEvaluator) -> None:
        self.roles = Roles.of(world.size, setup.ranks_per_evaluator)
        self._world = world
        for rank in range(1, world.size):
            world.send_object(setup, rank, Tag.ORDER)
        group = world.split(self.roles.color(0))
        self.evaluators: list[_Evaluator] = []
        for number, ranks in enumerate(self.roles.groups):
            score: Score
            if ranks == (0,):
                score = _local_score(local)
            elif ranks[0] == 0:
                assert group is not None
                evaluator = GroupEvaluator(group, share(setup, graph, group), setup.recipe, setup.settings)
                score = _LeaderScore(group, evaluator)
            else:
                score = _RemoteScore(world, ranks[0])
            self.evaluators.append(_Evaluator(number, score, local.known_of))
        self._lead = group if self.roles.groups[0][0] == 0 and len(self.roles.groups[0]) > 1 else None

    @property
    def busy(self) -> bool:
        """Whether a design is being evaluated."""
        return any(evaluator.busy for evaluator in self.evaluators)

    def stop(self) -> None:
        """Let the other ranks go; nothing is being evaluated."""
        for group in self.roles.groups:
            if group[0] != 0:
                self._world.send_object(_Stop(), group[0], Tag.ORDER)
        if self._lead is not None:
            for member in range(1, self._lead.size):
                self._lead.send_object(_Stop(), member, Tag.ORDER)


class _Evaluator:
    """An Evaluator whose training happens in a group."""

    def __init__(self, number: int, score: Score, known_of: KnownOf) -> None:
        self.number, self._score, self._known_of = number, score, known_of
        self._working = threading.Lock()

    @property
    def busy(self) -> bool:
        return self._working.locked()

    def evaluate(self, design: Architecture, seeds: Sequence[int]) -> Outcome:
        """Train once per seed and return all objectives; see LocalEvaluator."""
        with self._working:
            errors, details = self._score(design, seeds)
            errors = np.asarray(errors, dtype=np.float64)
            variances = {"val_error": float(errors.var(ddof=1) / errors.size)} if errors.size > 1 else {}
            return Outcome(
                values={"val_error": float(errors.mean()), **self._known_of(design)},
                variances=variances,
                details={**details, "evaluator": self.number},
            )


def _local_score(local: LocalEvaluator) -> Score:
    def score(design: Architecture, seeds: Sequence[int]) -> tuple[Any, dict[str, Any]]:
        trained = local.train(design, seeds)
        return trained.val_errors, dict(trained.details)

    return score


class _LeaderScore:
    """Evaluates in a group that this rank leads."""

    def __init__(self, group: Communicator, evaluator: GroupEvaluator) -> None:
        self._group, self._evaluator = group, evaluator

    def __call__(self, design: Architecture, seeds: Sequence[int]) -> tuple[Any, dict[str, Any]]:
        for member in range(1, self._group.size):
            self._group.send_object(_Evaluate(str(design), tuple(seeds)), member, Tag.ORDER)
        return self._evaluator.evaluate(design, seeds)


class _RemoteScore:
    """Has a group that another rank leads evaluate."""

    def __init__(self, world: Communicator, leader: int) -> None:
        self._world, self._leader = world, leader

    def __call__(self, design: Architecture, seeds: Sequence[int]) -> tuple[Any, dict[str, Any]]:
        self._world.send_object(_Evaluate(str(design), tuple(seeds)), self._leader, Tag.ORDER)
        report = self._world.receive_object(self._leader, Tag.REPORT)
        if report.reason is not None:
            raise TrialFailure(report.reason)
        return report.errors, dict(report.details)


def stop_waiting_ranks(world: Communicator) -> None:
    """Let ranks go that have been told nothing yet."""
    for rank in range(1, world.size):
        world.send_object(_Stop(), rank, Tag.ORDER)


def serve(world: Communicator, load: Callable[[Any], Graph], share: ShareOf) -> None:
    """The life of every rank but 0: wait for the setup, evaluate what is ordered, and return when told to stop.

    Args:
        load: turns the setup's source into the graph.
        share: gives this rank's share of it in a group.
    Raises:
        PascaError: this rank cannot do its part; the caller has to end the job, since others wait for it.
    """
    setup = world.receive_object(0, Tag.ORDER)
    if isinstance(setup, _Stop):
        return
    set_threads(setup.threads)
    roles = Roles.of(world.size, setup.ranks_per_evaluator)
    group = world.split(roles.color(world.rank))
    if group is None:
        return
    graph = load(setup.source)
    if graph.checksum != setup.checksum:
        raise DataError(
            f"{graph.name} as rank {world.rank} on {world.host} reads it is not what rank 0 read; "
            "do all hosts see the same files?"
        )
    score = _score_of_group(group, graph, setup, share)
    superior = (world, 0) if group.rank == 0 else (group, 0)
    while isinstance(order := superior[0].receive_object(superior[1], Tag.ORDER), _Evaluate):
        design = Architecture.parse(order.design)
        if group.rank == 0:
            _pass_on(group, order)
        report = _report(score, design, order.seeds)
        if group.rank == 0:
            world.send_object(report, 0, Tag.REPORT)
    if group.rank == 0:
        _pass_on(group, order)


def _score_of_group(group: Communicator, graph: Graph, setup: Setup, share: ShareOf) -> Score:
    if group.size > 1:
        return GroupEvaluator(group, share(setup, graph, group), setup.recipe, setup.settings).evaluate
    return _local_score(
        LocalEvaluator(
            graph,
            recipe=setup.recipe,
            threads=setup.threads,
            device=setup.device,
            memory_bytes=setup.memory_bytes,
        )
    )


def _pass_on(group: Communicator, order: Any) -> None:
    for member in range(1, group.size):
        group.send_object(order, member, Tag.ORDER)


def _report(score: Score, design: Architecture, seeds: tuple[int, ...]) -> _Report:
    """What comes of a trial; a failure that all ranks of the group agree on is an answer too."""
    began = time.perf_counter()
    try:
        errors, details = score(design, seeds)
    except TrialFailure as failure:
        return _Report((), {"seconds": {"total": time.perf_counter() - began}}, str(failure))
    return _Report(tuple(float(error) for error in errors), details)
