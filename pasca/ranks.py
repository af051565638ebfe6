"""A search on several ranks: what `mpiexec -n P pasca search` adds to `pasca search`.

Every rank runs the same command. Rank 0 goes on as a single process would, with an evaluator for each group of ranks;
the others serve it until it lets them go. Without a launcher of several ranks nothing here is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engines.evaluation.base import Evaluator
from engines.evaluation.communicator import Communicator, failures_end_the_job
from engines.evaluation.mpi import world
from engines.graph import Graph
from pasca.config import RunConfig
from pasca.problems import Problem
from pasca.progress import Progress
from search_space.errors import ConfigError

GROUP_FIELDS = ("plan", "partition", "servers", "consistency", "staleness", "compression", "batch_rows")
"""What the configuration's table `group` may set."""


class Ranks:
    """Rank 0's view of the ranks of its job.

    Attributes:
        size: how many there are.
        statement: what the manifest says of them.
    """

    def __init__(self, everybody: Communicator) -> None:
        self._everybody = everybody
        self._coordinator: Any = None
        self.size = everybody.size
        self.statement: dict[str, Any] = {"ranks": self.size}

    def settle(self, config: RunConfig, *, custom: bool) -> RunConfig:
        """The configuration as it applies to ranks: one thread each unless a number was asked for.

        Raises:
            ConfigError: something is asked for that does not go together with several ranks, or needs them.
        """
        group_settings(config)
        if config.ranks_per_evaluator > 1 and config.space.get("base", "paper") != "paper":
            raise ConfigError(
                f"ranks that evaluate a design together know the paper's space, not {config.space['base']!r}; use one "
                "rank an evaluator"
            )
        if self.size == 1:
            if config.ranks_per_evaluator > 1:
                raise ConfigError(
                    f"an evaluator of {config.ranks_per_evaluator} ranks needs as many; start with mpiexec -n P"
                )
            return config
        if custom:
            raise ConfigError("an evaluator of one's own works in one process; start without mpiexec")
        if config.workers > 1:
            raise ConfigError(
                f"{self.size} ranks evaluate side by side, so --workers {config.workers} has no place; leave it out"
            )
        if config.trial_timeout is not None:
            raise ConfigError(
                f"none of {self.size} ranks can be ended alone, so there is no --trial-timeout; leave it out, or start "
                "without mpiexec"
            )
        if config.hop_store is not None or config.hop_dtype != "float32":
            raise ConfigError(
                f"the {self.size} ranks keep hops in memory and in float32; leave --hop-store and --hop-dtype out"
            )
        from engines.evaluation.groups import Roles

        Roles.of(self.size, config.ranks_per_evaluator)
        if config.ranks_per_evaluator > 1 and _is_prepared(config.data):
            from pasca.datasets.prepared import describe_ranks

            _refuse_other_reading(config.data, config.load)
            describe_ranks(Path(config.data), config.ranks_per_evaluator, config.group.get("partition"))
        return config if config.threads is not None else config.with_settings({"threads": 1})

    def evaluators(
        self, problem: Problem, config: RunConfig, given: Graph | None, watch: Progress
    ) -> list[Evaluator[Any]]:
        """One evaluator for each design that is to be evaluated at the same time.

        Args:
            given: the graph, where it was given as an object and cannot be read by the other ranks.
        """
        if self.size == 1:
            return [problem.evaluator] * config.workers
        from engines.evaluation.groups import Coordinator, Setup
        from engines.evaluation.local import LocalEvaluator
        from engines.evaluation.recipe import Recipe

        assert problem.graph is not None
        assert problem.recipe is not None
        assert isinstance(problem.evaluator, LocalEvaluator)
        setup = Setup(
            ranks_per_evaluator=config.ranks_per_evaluator,
            source=given if given is not None else (config.data, dict(config.load)),
            checksum=problem.graph.checksum,
            recipe=Recipe.from_mapping(problem.recipe),
            settings=group_settings(config),
            threads=problem.evaluator.threads,
            memory_bytes=config.memory,
            device=config.device,
        )
        self._coordinator = Coordinator(self._everybody, setup, problem.graph, _share, problem.evaluator)
        roles = self._coordinator.roles
        self.statement["roles"] = roles.as_mapping()
        watch.note(f"{self.size} ranks, {len(roles.groups)} evaluator(s) of {config.ranks_per_evaluator} rank(s)")
        if roles.idle:
            watch.note(f"no evaluator can be formed of rank(s) {', '.join(map(str, roles.idle))}; they stay idle")
        return list(self._coordinator.evaluators)

    def leave(self) -> None:
        """Let the other ranks go."""
        if self.size == 1:
            return
        from engines.evaluation.groups import stop_waiting_ranks

        if self._coordinator is None:
            stop_waiting_ranks(self._everybody)
        else:
            self._coordinator.stop()

    def fail(self, error: BaseException) -> None:
        """End the job if ranks are at work, which would keep this one waiting; let them go otherwise."""
        if self._coordinator is not None and self._coordinator.busy:
            self._everybody.abort(f"{type(error).__name__}: {error}" if str(error) else "interrupted")
        self.leave()


@contextlib.contextmanager
def ranks_of_this_job() -> Iterator[Ranks]:
    """The ranks that this process was started with, on rank 0; on any other rank the search's end is the process's.

    Raises:
        ConfigError: several ranks were started, but no MPI library can be loaded.
        SystemExit: on ranks other than 0, once rank 0 has let them go.
    """
    everybody = world()
    if everybody.rank != 0:
        from engines.evaluation.groups import serve

        with failures_end_the_job(everybody):
            serve(everybody, _load, _share)
        raise SystemExit(0)
    ranks = Ranks(everybody)
    try:
        yield ranks
    except BaseException as error:
        ranks.fail(error)
        raise
    ranks.leave()


def group_settings(config: RunConfig) -> Any:
    """The configuration's table `group` as the evaluation engine takes it.

    Raises:
        ConfigError: a field is unknown or has no legal value.
    """
    table: Mapping[str, Any] = config.group
    for name in table:
        if name not in GROUP_FIELDS:
            raise ConfigError(f"unknown field {name!r} of group; choose from: {', '.join(GROUP_FIELDS)}")
    from engines.evaluation.clocks import Consistency
    from engines.evaluation.compression import Compressor
    from engines.evaluation.distributed import GroupSettings
    from engines.evaluation.parameter_server import ServerSettings
    from engines.evaluation.partition import PARTITIONS
    from engines.evaluation.plan_model import PLANS
    from engines.evaluation.plans import buffer_bytes_of

    for name, legal in (("plan", PLANS), ("partition", PARTITIONS)):
        if name in table and table[name] not in legal:
            raise ConfigError(f"unknown {name} {table[name]!r}; choose from: {', '.join(legal)}")
    consistency = Consistency(table.get("consistency", "bsp"), _count(table, "staleness", 4, 0))
    compression = table.get("compression", "none")
    Compressor(compression, 0)
    return GroupSettings(
        plan=table.get("plan", "auto"),
        partition=table.get("partition"),
        servers=ServerSettings(consistency, _count(table, "servers", 1, 1), compression),
        batch_rows=None if table.get("batch_rows") is None else _count(table, "batch_rows", 1, 1),
        memory_bytes=config.memory,
        buffer_bytes=buffer_bytes_of(config.memory),
    )


def _count(table: Mapping[str, Any], name: str, usual: int, least: int) -> int:
    value = table.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is a whole number of at least {least}, got {value!r}")
    return value


def _load(source: Any) -> Graph:
    if isinstance(source, Graph):
        return source
    from pasca.datasets import load

    data, options = source
    return load(data, **options)


def _share(setup: Any, graph: Graph, group: Communicator) -> Any:
    """This rank's share of the graph: read from its files where the data was prepared for ranks, else cut."""
    from engines.evaluation.graph_share import USUAL_PARTITION, CutShare
    from pasca.datasets.prepared import PreparedShare

    partition = setup.settings.partition
    if not isinstance(setup.source, Graph) and _is_prepared(setup.source[0]):
        return PreparedShare(Path(setup.source[0]), graph, group.rank, group.size, partition)
    return CutShare(group, graph, partition or USUAL_PARTITION)


def _is_prepared(data: Any) -> bool:
    from pasca.datasets.prepared import prepared_counts

    return isinstance(data, (str, Path)) and bool(prepared_counts(Path(data)))


def _refuse_other_reading(data: Any, options: Mapping[str, Any]) -> None:
    """Features made anew are not those that were prepared."""
    if options.get("made_features") is not None:
        raise ConfigError(f"{data}: was prepared with its features; leave --features out, or prepare the data again")
