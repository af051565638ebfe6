"""Problem: everything that a search needs before its first trial, made from a configuration and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engines.evaluation.base import Evaluator
from engines.graph import Graph
from engines.objectives import Bound, Floats, Objective, parse_bound, parse_objectives
from engines.search.reference import Extents, extents
from engines.search.wide import KnownCosts, NothingKnown
from pasca.config import RunConfig
from pasca.evaluators import CustomEvaluator
from pasca.manifest import check_identity, data_statement
from pasca.progress import Progress
from pasca.retraining import Trainer
from pasca.stage_cache import cache_folder, store_times, stored_times, times_of_run
from search_space.errors import ConfigError, SpaceError, StorageError
from search_space.extended import BASE as EXTENDED
from search_space.extended import ExtendedSpace
from search_space.space import SearchSpace, Space, Unlisted

PASCAS = (SearchSpace, ExtendedSpace)
"""Spaces of architectures, which pasca's own evaluator can train."""


@dataclass(frozen=True)
class Problem:
    """What is searched, by what.

    Attributes:
        graph: None for a custom evaluator without data.
        space, objectives, bounds: as asked for; a known objective without known values counts as measured.
        evaluator: scores the designs; a LocalEvaluator unless a custom one was given.
        known: values of the known objectives, each of shape (len(space),); what computes them in an extended space.
        recipe: of training; None for a custom evaluator.
        identity: what a resumed run must share.
        trainer: what trains the front and the classics again; None where the evaluator cannot.
    """

    graph: Graph | None
    space: Space[Any]
    objectives: tuple[Objective, ...]
    bounds: tuple[Bound, ...]
    evaluator: Evaluator[Any]
    known: Mapping[str, Floats] | KnownCosts[Any]
    recipe: Mapping[str, Any] | None
    identity: Mapping[str, Any]
    trainer: Trainer | None = None

    @property
    def metric(self) -> str:
        """What validation and test scores measure."""
        return "custom" if self.recipe is None else str(self.recipe["metric"])

    @property
    def extents(self) -> Extents:
        """Least and largest values of the objectives that are known beforehand."""
        names = [objective.name for objective in self.objectives]
        if isinstance(self.known, Mapping):
            return extents({name: self.known[name] for name in names if name in self.known}, self.bounds)
        return {name: pair for name, pair in self.known.extents(self.bounds).items() if name in names}

    @property
    def stage_times(self) -> dict[str, Any] | None:
        """The stage times of the evaluator, JSON types."""
        times = getattr(self.evaluator, "stage_times", None)
        return None if times is None else dict(times.as_mapping())


def make_problem(
    config: RunConfig,
    *,
    graph: Graph | None,
    evaluator: Any,
    space: Space[Any] | None,
    resumed: tuple[Path, Mapping[str, Any]] | None,
    progress: Progress,
) -> Problem:
    """Read the data, check the settings against one another and measure what is known beforehand.

    Args:
        graph: in place of the configuration's data.
        evaluator: a custom one, or None for the local one; see `CustomEvaluator`.
        space: in place of the configuration's restrictions of the paper's space.
        resumed: folder and manifest of the run that is resumed. What is asked for must be what it was, and its stage
            times take precedence over all others.
    Raises:
        InputError: something asked for does not exist or does not fit; nothing has been written.
        RunError: the resumed run was on other terms.
    """
    space = _space(config) if space is None else space
    objectives = parse_objectives(config.objectives)
    bounds = tuple(parse_bound(text) for text in config.at_most)
    _check_searcher(config.searcher)
    if config.early_stopping and (evaluator is not None or "val_error" not in config.objectives):
        raise ConfigError(
            "early_stopping needs pasca's own training and val_error among the objectives, got "
            f"{'an evaluator of your own' if evaluator is not None else ', '.join(config.objectives)}; leave it out"
        )
    if config.trial_timeout is not None and (evaluator is not None or config.device != "cpu"):
        raise ConfigError(
            "trial_timeout ends the process that trains a design, so it needs pasca's own training on the CPU, got "
            f"{'an evaluator of your own' if evaluator is not None else config.device}; leave it out"
        )
    if evaluator is not None:
        return _custom(config, graph, space, objectives, bounds, evaluator, resumed)
    from engines.evaluation.recipe import Recipe
    from pasca.datasets import load, summary_lines

    if not isinstance(space, PASCAS):
        raise ConfigError("a space of one's own needs an evaluator of one's own; give evaluator=...")
    recipe = Recipe.from_mapping(config.recipe)
    if graph is None:
        graph = load(config.data, **config.load)
    identity = _identity(config, graph, space, objectives, recipe.as_mapping(), resumed)
    recorded_times = None if resumed is None else resumed[1].get("stage_times")
    local = make_local_evaluator(config, graph, recipe, recorded_times, progress)
    for line in summary_lines(graph):
        progress.note(line)
    known = local.known(space) if isinstance(space, SearchSpace) else local.known_costs(space)
    if recorded_times is None:
        keep_times(local, progress)
    return Problem(
        graph=graph,
        space=space,
        objectives=objectives,
        bounds=bounds,
        evaluator=local,
        known=known,
        recipe=recipe.as_mapping(),
        identity=identity,
        trainer=local,
    )


def _space(config: RunConfig) -> SearchSpace | ExtendedSpace:
    """The space that the configuration asks for: the paper's, or what its `base` names."""
    base = config.space.get("base", "paper")
    if base == EXTENDED:
        from engines.evaluation.recipe import Recipe

        return ExtendedSpace.from_mapping(config.space, Recipe.from_mapping(config.recipe).as_mapping())
    if base != "paper":
        raise SpaceError(f"unknown base {base!r} of a search space; choose from: paper, {EXTENDED}")
    return SearchSpace.from_mapping({name: values for name, values in config.space.items() if name != "base"})


def make_local_evaluator(
    config: RunConfig, graph: Graph, recipe: Any, recorded_times: Mapping[str, Any] | None, progress: Progress
) -> Any:
    """A LocalEvaluator that starts from the stage times there are: recorded, of another run, or stored."""
    from engines.evaluation.local import LocalEvaluator
    from engines.evaluation.stage_times import StageTimes, stage_key
    from engines.evaluation.threads import available_cores

    threads = config.threads or max(available_cores() // config.workers, 1)
    times: StageTimes | None = None
    if recorded_times is not None:
        times = StageTimes.from_mapping(recorded_times)
    elif config.stage_times is not None:
        times = times_of_run(config.stage_times, graph.structure_checksum)
    elif not config.retime:
        try:
            times = stored_times(stage_key(graph, recipe.hidden_width, recipe.normalise, threads))
        except ConfigError as error:
            # What can be measured again is no reason to refuse a search.
            progress.note(f"{error}; measuring anew")
    return LocalEvaluator(
        graph,
        recipe=recipe,
        threads=threads,
        device=config.device,
        stage_times=times,
        memory_bytes=config.memory,
        hop_storage=_hop_storage(config),
        trainings_at_once=config.workers,
    )


def _hop_storage(config: RunConfig) -> Any:
    """Where and how hops are kept: in a folder that stays, in one that worker processes share, or by the evaluator."""
    from engines.evaluation.hop_store import HopStore
    from engines.evaluation.local import HopStorage

    store = None
    if config.hop_store is not None:
        folder = cache_folder() / "hops" if config.hop_store == "cache" else Path(config.hop_store)
        store = HopStore(folder.absolute(), config.hop_store_limit)
    elif in_processes(config):
        store = HopStore.temporary()
    return HopStorage(config.hop_dtype, store)


def in_processes(config: RunConfig) -> bool:
    """Whether a search that trains evaluates in processes of their own. A CUDA device is one for all: threads do."""
    return config.device == "cpu" and (config.workers > 1 or config.trial_timeout is not None)


def keep_times(evaluator: Any, progress: Progress) -> None:
    """Store an evaluator's stage times for later runs; where that is impossible, say so and go on."""
    from engines.evaluation.stage_times import stage_key

    recipe, times = evaluator.recipe, evaluator.stage_times
    if times.key != stage_key(evaluator.graph, recipe.hidden_width, recipe.normalise, evaluator.threads):
        return  # taken from a run on other hardware
    try:
        store_times(times)
    except (StorageError, OSError) as error:
        progress.note(f"stage times are not kept for later runs: {error}")


def _custom(
    config: RunConfig,
    graph: Graph | None,
    space: Space[Any],
    objectives: tuple[Objective, ...],
    bounds: tuple[Bound, ...],
    evaluator: Any,
    resumed: tuple[Path, Mapping[str, Any]] | None,
) -> Problem:
    identity = _identity(config, graph, space, objectives, None, resumed)
    known: Mapping[str, Floats] | KnownCosts[Any] = NothingKnown()
    if not isinstance(space, Unlisted):
        known = dict(evaluator.known(space)) if hasattr(evaluator, "known") else {}
    names = known if isinstance(known, Mapping) else known.names
    settled = tuple(o if o.kind == "measured" or o.name in names else replace(o, kind="measured") for o in objectives)
    return Problem(
        graph=graph,
        space=space,
        objectives=settled,
        bounds=tuple(
            replace(b, objective={o.name: o for o in settled}.get(b.objective.name, b.objective)) for b in bounds
        ),
        evaluator=CustomEvaluator(evaluator, objectives),
        known=known,
        recipe=None,
        identity=identity,
        trainer=evaluator if isinstance(evaluator, Trainer) and isinstance(space, PASCAS) else None,
    )


def _identity(
    config: RunConfig,
    graph: Graph | None,
    space: Space[Any],
    objectives: tuple[Objective, ...],
    recipe: Mapping[str, Any] | None,
    resumed: tuple[Path, Mapping[str, Any]] | None,
) -> dict[str, Any]:
    """What a resumed run must share; checked against the run that is resumed, if any."""
    identity = {
        "data": data_statement(graph, config.data)["checksum"],
        "space": space_statement(space),
        "objectives": [objective.name for objective in objectives],
        "at_most": list(config.at_most),
        "recipe": recipe,
        "repeats": config.repeats,
        "seed": config.seed,
        "searcher": config.searcher,
        "num_initial": config.num_initial,
        **({} if config.hop_dtype == "float32" else {"hop_dtype": config.hop_dtype}),
        **({"early_stopping": True} if config.early_stopping else {}),
    }
    if resumed is not None:
        folder, manifest = resumed
        check_identity(folder, manifest["identity"], identity)
    return identity


def space_statement(space: Space[Any]) -> dict[str, Any]:
    """What the record says of a space, JSON types."""
    if isinstance(space, PASCAS):
        return space.as_mapping()
    return {choice.name: list(choice.values) for choice in space.choices}


def _check_searcher(name: str) -> None:
    from engines.search.catalogue import SEARCHERS

    if name not in SEARCHERS:
        raise ConfigError(f"unknown searcher {name!r}; choose from: {', '.join(SEARCHERS)}")
