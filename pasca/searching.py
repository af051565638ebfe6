"""The `pasca.search` call: joins data, evaluator, searcher, loop, record and retraining."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engines.evaluation.base import Evaluator
from engines.graph import Graph
from engines.history import History
from engines.loop import SAME_FAILURES, Ending, Plan, run_loop
from engines.search.observations import initial_trials
from engines.search.reference import extents, reference_point
from engines.trial import Status, Trial
from pasca.config import RunConfig
from pasca.databases import find_study, open_url
from pasca.manifest import data_statement, environment, now, read_manifest, write_manifest
from pasca.problems import Problem, in_processes, keep_times, make_problem
from pasca.progress import Progress, Silence
from pasca.ranks import Ranks, ranks_of_this_job
from pasca.results import Study, open_storage
from pasca.retraining import retrain
from pasca.runs import MANIFEST_FILE, data_label, fresh_name, is_free, occupied, run_folder
from pasca.seeds import retraining_seeds, trial_seeds
from pasca.studies import StudyRecord
from pasca.tally import Tally
from search_space.classics import CLASSICS
from search_space.errors import PascaError, RunError
from search_space.space import SearchSpace, Space

if TYPE_CHECKING:
    from pasca.warm_starting import WarmStart

STARTING = "starting"
"""Status of a run whose record may not exist yet."""


def search(
    data: Any = None,
    *,
    evaluator: Any = None,
    space: Space[Any] | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
    **settings: Any,
) -> Study:
    """Search for the designs with the best trade-offs, and record the search in a run folder.

    Args:
        data: a Graph or anything else that `pasca.load` takes; `digits` when nothing is given.
        evaluator: scores designs instead of training on the data: an object with `evaluate(design, seeds)`, or a
            function of a design (and its seeds), that returns an Outcome, a mapping from objective names to values, or
            values in the order of the objectives.
        space: a restriction of the paper's space as a SearchSpace or a mapping, or a space of one's own for an
            evaluator of one's own.
        progress: told what happens; nothing is said when None.
        clock: monotonic seconds, for the time budget.
        settings: fields of RunConfig.
    Returns:
        The finished study. Its run folder holds the record.
    Raises:
        InputError: something asked for does not exist or does not fit; nothing was written.
        StorageError: the record could not be written; what it held before is intact.
        PascaError: no trial succeeded.
        KeyboardInterrupt: after the record was brought in order; `resume=True` continues.
    """
    started, watch = clock(), progress or Silence()
    graph: Graph | None = None
    if isinstance(data, (str, os.PathLike)):
        settings["data"] = os.fspath(data)
    elif data is not None:
        graph = _graph(data, settings)
        settings["data"] = graph.name
    if isinstance(space, Mapping):
        settings["space"], space = space, None
    elif isinstance(space, SearchSpace):
        settings["space"], space = space.as_mapping(), None
    try:
        with contextlib.ExitStack() as held:
            ranks = held.enter_context(ranks_of_this_job())
            config, folder, manifest = _settle(settings, held)
            config = ranks.settle(config, custom=evaluator is not None)
            if graph is None and evaluator is not None and data is None:
                config = config.with_settings({"data": "custom"})
            problem = make_problem(
                config,
                graph=graph,
                evaluator=evaluator,
                space=space,
                resumed=None if manifest is None else (folder, manifest),
                progress=watch,
            )
            if manifest is None:
                held.enter_context(occupied(folder))
                _check_free(folder)  # again: another process may have started the same run meanwhile
            return _Search(problem, config, folder, manifest, watch, started, clock, ranks).run(graph)
    finally:
        watch.close()


def _graph(data: Any, settings: Mapping[str, Any]) -> Graph:
    """The graph that an object means."""
    if isinstance(data, Graph):
        return data
    from pasca.datasets import load

    return load(data, **settings.get("load", {}))


def settled_config(settings: Mapping[str, Any]) -> RunConfig:
    """The configuration that settings lead to: over the defaults, or over those of the run that is resumed.

    Raises:
        ConfigError: a setting does not exist or has no legal value.
        RunError: the run to be resumed does not exist.
    """
    config = RunConfig().with_settings(settings)
    if not config.resume:
        return config
    if config.run is None and config.out is None:
        raise RunError("resuming needs the run's name or folder; give --run NAME or --out DIR")
    folder = run_folder(config.run, config.out)
    if not (folder / MANIFEST_FILE).is_file():
        raise RunError(f"there is no run in {folder} to resume; leave --resume out to start one")
    manifest = read_manifest(folder)
    # Where the run is and that it is resumed are said now; the rest is as it was unless said otherwise now. The recipe
    # is taken whole, so that a run goes on as it began when the defaults of a recipe have changed since.
    stored = {name: value for name, value in manifest["config"].items() if name not in ("run", "out", "resume")}
    stored["recipe"] = manifest["identity"].get("recipe") or {}
    return RunConfig().with_settings(stored, f"the manifest of {folder}").with_settings(settings)


def _settle(
    settings: Mapping[str, Any], held: contextlib.ExitStack
) -> tuple[RunConfig, Path, Mapping[str, Any] | None]:
    """Configuration and folder of the run, and the manifest of the one that is resumed, whose folder is then held."""
    config = settled_config(settings)
    config = config.with_settings({"data": _absolute(config.data)})
    if config.run is None and config.out is None:
        config = config.with_settings({"run": fresh_name(data_label(config.data))})
    folder = run_folder(config.run, config.out)
    if not config.resume:
        _check_free(folder)
        if config.storage is not None and find_study(open_url(config.storage), folder.absolute().name) is not None:
            raise RunError(f"the database of --storage has a study of the name {folder.name!r} already; choose another")
        return config, folder, None
    held.enter_context(occupied(folder))
    return config, folder, read_manifest(folder)


def _check_free(folder: Path) -> None:
    if not is_free(folder):
        if (folder / MANIFEST_FILE).is_file():
            raise RunError(f"the run {folder} exists already; continue it with --resume or choose another name")
        raise RunError(f"{folder} is not empty and holds no run; choose another folder or name")


def _absolute(data: str) -> str:
    """A path made absolute, so that the run can be resumed from elsewhere; a name stays as it is."""
    head = data if Path(data).exists() else data.rpartition(":")[0]
    return os.path.abspath(data) if head and Path(head).exists() else data


class _Search:
    """One call of `search`, from the record onwards."""

    def __init__(
        self,
        problem: Problem,
        config: RunConfig,
        folder: Path,
        manifest: Mapping[str, Any] | None,
        watch: Progress,
        started: float,
        clock: Callable[[], float],
        ranks: Ranks,
    ) -> None:
        self.problem, self.config, self.folder, self.watch = problem, config, folder, watch
        self.started, self.clock, self.ranks = started, clock, ranks
        self.run_name = folder.absolute().name
        self.extents = extents(
            {o.name: problem.known[o.name] for o in problem.objectives if o.name in problem.known}, problem.bounds
        )
        self.seeds = trial_seeds(config.seed, config.repeats)
        self.fresh_seeds = retraining_seeds(config.seed, config.retrain, config.repeats)
        self.warm_starts = self._warm_starts(manifest)
        self.standings: Any = None
        self.fixed_reference: dict[str, float] | None = None
        self.searcher = self._searcher()
        self.manifest = self._manifest(manifest)
        self.record = self._record(manifest)
        for trial in self.record.fail_interrupted():
            watch.note(f"trial {trial.number} {trial.design} was interrupted; its design is free again")
        self._write("running")
        self.tally = Tally(
            self.record.history(), problem.objectives, problem.bounds, config.evaluations, self._fixed_reference
        )

    def run(self, given: Graph | None) -> Study:
        """Search, retrain, and close the record.

        Args:
            given: the graph, where it was given as an object.
        """
        try:
            with contextlib.ExitStack() as held:
                ending = self._loop(self._with_early_stopping(self._evaluators(given, held)))
            left_out = self._retrain()
        except KeyboardInterrupt:
            self.record.fail_interrupted()
            self._write("interrupted")
            raise
        text = self._ending_text(ending, left_out)
        self._write("finished", text)
        study = Study(self.folder, self.manifest, self.record, self.problem.evaluator, self.problem.graph)
        if ending is Ending.FAILING or not self.record.history().observed:
            failed = self.record.history().with_status(Status.FAILED)
            raise PascaError(f"no result ({text}); the last reason was: {failed[-1].reason if failed else 'none'}")
        return study

    def _searcher(self) -> Any:
        from engines.search.catalogue import create_searcher

        return create_searcher(
            self.config.searcher,
            self.problem.space,
            self.problem.objectives,
            known=self.problem.known,
            seed=self.config.seed,
            num_initial=self.config.num_initial,
            bounds=self.problem.bounds,
            warm_start=[warm.design for warm in self.warm_starts],
        )

    def _warm_starts(self, before: Mapping[str, Any] | None) -> list[WarmStart]:
        """Designs of earlier runs to begin with; a run that is resumed keeps those that it began with."""
        if before is None and not self.config.warm_start:
            return []
        from pasca.warm_starting import WarmStart, warm_designs

        space = self.problem.space
        if before is None:
            data = data_statement(self.problem.graph, self.config.data)
            return warm_designs(self.config.warm_start, data, space, max(self.config.num_initial // 4, 1))
        if list(self.config.warm_start) != before["config"].get("warm_start", []):
            raise RunError("a warm start is decided when a run begins; leave it out, or choose another run")
        decode = _decoder(space)
        return [WarmStart(decode(one["design"]), one["run"], one["similarity"]) for one in before.get("warm_start", [])]

    def _record(self, before: Mapping[str, Any] | None) -> StudyRecord[Any]:
        """The record to write to: a new one, or that of the run that is resumed."""
        url = self.config.storage
        if before is None:
            # Killed from here on, the run can be resumed, though it has nothing to lose yet.
            self._write(STARTING)
        started = before is not None and before.get("status") != STARTING
        storage, where = open_storage(self.folder, url, create=not started)
        make = StudyRecord.open if started or find_study(storage, self.run_name) is not None else StudyRecord.create
        return make(
            storage,
            self.run_name,
            self.problem.objectives,
            decode=_decoder(self.problem.space),
            space=self.problem.space,
            where=where,
        )

    def _evaluators(self, given: Graph | None, held: contextlib.ExitStack) -> list[Evaluator[Any]]:
        """One evaluator for each design that is to be evaluated at the same time; `held` ends what they need."""
        if self.problem.recipe is None or not in_processes(self.config):
            return self.ranks.evaluators(self.problem, self.config, given, self.watch)
        from engines.evaluation.worker_processes import WorkerProcesses

        local: Any = self.problem.evaluator
        return list(held.enter_context(WorkerProcesses(local, self.config.workers)).evaluators)

    def _with_early_stopping(self, evaluators: list[Evaluator[Any]]) -> list[Evaluator[Any]]:
        """The evaluators, each stopping what cannot win if that was asked for."""
        if not self.config.early_stopping:
            return evaluators
        from engines.evaluation.early_stopping import EarlyStopping, Standings

        self.standings = Standings(self.problem.objectives, self.record.history(), self.config.num_initial)
        return [EarlyStopping(evaluator, self.standings) for evaluator in evaluators]

    def _loop(self, evaluators: list[Evaluator[Any]]) -> Ending:
        plan = Plan(
            objectives=self.problem.objectives,
            evaluations=self.config.evaluations,
            seeds=self.seeds,
            deterministic=self.config.deterministic,
            out_of_time=self._out_of_time,
            observe=self._observe,
        )
        return run_loop(self.searcher, evaluators, self.record, plan)

    def _retrain(self) -> int | None:
        """Retrain the front and the classics; returns how many were left out, None where nothing is retrained."""
        trainer = self.problem.trainer
        if self.config.retrain == 0 or trainer is None or not self.tally.front:
            return None
        front = sorted(self.tally.front, key=lambda trial: trial.number)
        graph = self.problem.graph
        left_out = retrain(
            trainer,
            [*(trial.design for trial in front), *CLASSICS.values()],
            self.fresh_seeds,
            self.record,
            progress=self.watch,
            test=graph is None or graph.split.test.size > 0,
            out_of_time=lambda: self._seconds_left() <= 0,
        )
        if hasattr(self.problem.evaluator, "stage_times"):
            keep_times(self.problem.evaluator, self.watch)
        return len(left_out)

    def _seconds_left(self) -> float:
        budget = self.config.time_budget
        return float("inf") if budget is None else budget - (self.clock() - self.started)

    def _out_of_time(self, history: History[Any]) -> bool:
        """Whether one more trial, and the retraining at the pace so far, would not fit the time budget.

        The first trial is always started: a search that only says it had no time is of no use.
        """
        if self.config.time_budget is None or self.tally.seconds_per_trial == 0.0:
            return False
        needed = self.tally.seconds_per_trial
        if self.config.retrain and self.problem.trainer is not None:
            num_designs = len(self.tally.front) + len(CLASSICS)
            needed *= 1 + num_designs * self.config.retrain / self.config.repeats
        return needed > self._seconds_left()

    def _observe(self, trial: Trial[Any]) -> None:
        self.tally.update(trial)
        if self.standings is not None and trial.finished:
            self.standings.update(trial, self.tally.front)
        left = self._seconds_left()
        self.watch.trial(trial, self.tally.standing(None if left == float("inf") else left))

    def _fixed_reference(self) -> dict[str, float] | None:
        """The reference point once it is fixed: before, a hypervolume would rise and fall with it."""
        if self.fixed_reference is None:
            history, num_initial = self.record.history(), self.config.num_initial
            if history.num_evaluations < num_initial:
                return None
            if initial_trials(history, num_initial) is None:  # one of them is still running
                return self._reference()
            self.fixed_reference = self._reference()
        return self.fixed_reference

    def _reference(self) -> dict[str, float] | None:
        return reference_point(self.record.history(), self.problem.objectives, self.extents, self.config.num_initial)

    def _ending_text(self, ending: Ending, left_out: int | None) -> str:
        done = self.record.history().num_evaluations
        text = {
            Ending.REACHED: f"{done} evaluations done",
            Ending.EXHAUSTED: f"space exhausted: all {len(self.problem.space)} designs were tried",
            Ending.TIME: f"the time budget is spent after {done} evaluations",
            Ending.FAILING: f"stopped: the first {SAME_FAILURES} trials all failed for the same reason",
        }[ending]
        if ending is Ending.EXHAUSTED and done < len(self.problem.space):
            text = f"space exhausted: all {done} designs that keep the bounds were tried"
        return text + (f"; {left_out} design(s) were not retrained for lack of time" if left_out else "")

    def _manifest(self, before: Mapping[str, Any] | None) -> dict[str, Any]:
        problem, config = self.problem, self.config
        return {
            "run": self.run_name,
            "created": now() if before is None else before.get("created"),
            "config": {name: value for name, value in config.as_mapping().items() if name != "resume"},
            "identity": dict(problem.identity),
            "data": data_statement(problem.graph, config.data),
            "metric": problem.metric,
            "objectives": [asdict(objective) for objective in problem.objectives],
            "seeds": {"trials": list(self.seeds), "retraining": list(self.fresh_seeds)},
            "extents": {name: list(pair) for name, pair in self.extents.items()},
            "warm_start": [
                {"design": str(warm.design), "run": warm.run, "similarity": warm.similarity}
                for warm in self.warm_starts
            ],
            "threads": getattr(problem.evaluator, "threads", None),
            **environment(config.device),
        }

    def _write(self, status: str, ending: str = "") -> None:
        self.manifest |= {
            "status": status,
            "ending": ending,
            "stage_times": self.problem.stage_times,
            **self.ranks.statement,
            "searcher": dict(self.searcher.statement()),
        }
        if hasattr(self, "record"):
            self.manifest["reference_point"] = self._reference()
        write_manifest(self.folder, self.manifest)


def _decoder(space: Space[Any]) -> Callable[[str], Any]:
    """From a design's text form back to the design."""
    if isinstance(space, SearchSpace):
        from search_space.architecture import Architecture

        return Architecture.parse
    by_text: dict[str, Any] = {}

    def decode(text: str) -> Any:
        if not by_text:
            by_text.update((str(space.design(row)), space.design(row)) for row in range(len(space)))
        if text not in by_text:
            raise RunError(f"the record holds the design {text!r}, which the space does not; was the space changed?")
        return by_text[text]

    return decode
