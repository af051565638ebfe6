"""The `pasca.search` call: joins data, evaluator, searcher, loop, record and retraining."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from engines.evaluation.base import Evaluator
from engines.graph import Graph
from engines.history import INTERRUPTED, History
from engines.loop import SAME_FAILURES, Again, Ending, Plan, run_loop
from engines.search.observations import initial_trials
from engines.search.reference import reference_point
from engines.search.replication import Replication
from engines.trial import Status, Trial
from pasca.company import Company
from pasca.config import RunConfig
from pasca.databases import find_study
from pasca.manifest import data_statement, environment, now, read_manifest, write_manifest
from pasca.members import Member, occupied
from pasca.problems import Problem, in_processes, keep_times, make_problem
from pasca.progress import Progress, Silence
from pasca.ranks import Ranks, ranks_of_this_job
from pasca.results import Study, open_storage
from pasca.retraining import retrain
from pasca.seeds import retraining_seeds, trial_seeds
from pasca.settling import STARTING, check_free, settle
from pasca.studies import POSTERIOR, StudyRecord
from pasca.tally import Tally
from search_space.classics import CLASSICS
from search_space.errors import PascaError, RunError
from search_space.extended import ExtendedSpace
from search_space.space import SearchSpace, Space

if TYPE_CHECKING:
    from pasca.warm_starting import WarmStart


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
        space: a restriction of the paper's space as a SearchSpace or a mapping, an ExtendedSpace, or a space of one's
            own for an evaluator of one's own.
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
    elif isinstance(space, (SearchSpace, ExtendedSpace)):
        settings["space"], space = space.as_mapping(), None
    try:
        with contextlib.ExitStack() as held:
            ranks = held.enter_context(ranks_of_this_job())
            config, folder, manifest, member = settle(settings, held)
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
            if member is None:
                member = held.enter_context(occupied(folder))
                check_free(folder)  # again: another process may have started the same run meanwhile
            return _Search(problem, config, member, manifest, watch, started, clock, ranks).run(graph)
    finally:
        watch.close()


def _graph(data: Any, settings: Mapping[str, Any]) -> Graph:
    """The graph that an object means."""
    if isinstance(data, Graph):
        return data
    from pasca.datasets import load

    return load(data, **settings.get("load", {}))


class _Search:
    """One call of `search`, from the record onwards."""

    def __init__(
        self,
        problem: Problem,
        config: RunConfig,
        member: Member,
        manifest: Mapping[str, Any] | None,
        watch: Progress,
        started: float,
        clock: Callable[[], float],
        ranks: Ranks,
    ) -> None:
        self.problem, self.config, self.member, self.watch = problem, config, member, watch
        self.started, self.clock, self.ranks = started, clock, ranks
        self.folder = member.folder
        self.run_name = self.folder.absolute().name
        self.extents = problem.extents
        self.seeds = trial_seeds(config.seed, config.repeats)
        self.fresh_seeds = retraining_seeds(config.seed, config.retrain, config.repeats)
        self.warm_starts = self._warm_starts(manifest)
        self.standings: Any = None
        self.fixed_reference: dict[str, float] | None = None
        self.searcher = self._searcher()
        self.manifest = self._manifest(manifest)
        with member.turn():
            self.record = self._record(manifest)
            for trial in self.record.fail_interrupted(member.is_alive):
                watch.note(f"trial {trial.number} {trial.design} was interrupted; its design is free again")
        self.tally = Tally(
            self.record.history(), problem.objectives, problem.bounds, config.evaluations, self._fixed_reference
        )
        self.company = Company(member, self.record, self._observe, watch.note)
        self.own_budget = False
        if member.first:
            self.company.begin(self._budget())
            self._write("running")
        else:
            self._enter()

    def run(self, given: Graph | None) -> Study:
        """Search, retrain, and close the record.

        Args:
            given: the graph, where it was given as an object.
        """
        try:
            with contextlib.ExitStack() as held:
                workers = self._evaluators(given, held)
                evaluators = self._ending_in_time(workers, self._with_early_stopping(workers))
                ending = self._loop(evaluators)
                while self.company.left_work(ending, self.config.evaluations):
                    ending = self._loop(evaluators)
            text = self._leave(ending) if self._goes_on_without(ending) else self._close(ending)
        except KeyboardInterrupt:
            self.record.fail_interrupted(self.member.is_alive)
            if not self.member.others():
                self._write("interrupted")
            raise
        study = Study(self.folder, self.manifest, self.record, self.problem.evaluator, self.problem.graph)
        if ending is Ending.FAILING or not self.record.history().observed:
            failed = self.record.history().with_status(Status.FAILED)
            raise PascaError(f"no result ({text}); the last reason was: {failed[-1].reason if failed else 'none'}")
        return study

    def _budget(self) -> dict[str, float] | None:
        """The time budget as the record keeps it: for processes with clocks of their own."""
        if self.config.time_budget is None:
            return None
        return {"seconds": self.config.time_budget, "began": time.time() - (self.clock() - self.started)}

    def _enter(self) -> None:
        """Work on the run beside others: in the time that is left of its budget, unless one of its own was given."""
        self.company.enter(
            {
                "joined": now(),
                "workers": self.config.workers,
                "threads": getattr(self.problem.evaluator, "threads", None),
                **environment(self.config.device),
                **self.ranks.statement,
            }
        )
        budget = self.company.budget
        self.own_budget = self.config.time_budget != (None if budget is None else budget["seconds"])
        if budget is not None and not self.own_budget:
            self.started = min(self.started, self.clock() - (time.time() - budget["began"]))

    def _goes_on_without(self, ending: Ending) -> bool:
        """Whether this process leaves the rest, the end included, to others."""
        if not self.member.others():
            return False
        return ending is Ending.FAILING or (ending is Ending.TIME and self.own_budget and not self.company.has_ended())

    def _leave(self, ending: Ending) -> str:
        self.manifest = read_manifest(self.folder)
        text = f"{self._ending_text(ending, None)}; {self.folder} goes on without this process"
        if ending is Ending.TIME:
            self.watch.note(text)
        return text

    def _close(self, ending: Ending) -> str:
        """Retrain the front and write the end of the run, unless another process has; returns the end in words."""
        if ending is Ending.TIME:
            self.company.end()
        self.company.wait()
        with self.member.closing(lambda: self.watch.note("waiting for the process that retrains the front")):
            if self.member.has_company():
                written = read_manifest(self.folder)
                if written["status"] == "finished":
                    self.manifest = written
                    return str(written["ending"])
            self._keep_posterior()
            left_out = self._retrain()
            text = self._ending_text(ending, left_out)
            self._write("finished", text)
        return text

    def _keep_posterior(self) -> None:
        """Record what the searcher's model makes of the front, where it has one."""
        if not hasattr(self.searcher, "posterior"):
            return
        designs = [trial.design for trial in self.tally.front]
        found = self.searcher.posterior(self.record.history(), designs)
        self.record.set_attribute(POSTERIOR, {str(design): one for design, one in zip(designs, found, strict=True)})

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
            process=self.member.token,
            turn=self.member.turn,
        )

    def _evaluators(self, given: Graph | None, held: contextlib.ExitStack) -> list[Evaluator[Any]]:
        """One evaluator for each design that is to be evaluated at the same time; `held` ends what they need."""
        if self.problem.recipe is None or not in_processes(self.config):
            return self.ranks.evaluators(self.problem, self.config, given, self.watch)
        from engines.evaluation.worker_processes import WorkerProcesses

        local: Any = self.problem.evaluator
        wide = isinstance(self.problem.space, ExtendedSpace)
        processes = WorkerProcesses(local, self.config.workers, other_features=wide)
        return list(held.enter_context(processes).evaluators)

    def _ending_in_time(self, workers: list[Evaluator[Any]], evaluators: list[Evaluator[Any]]) -> list[Evaluator[Any]]:
        """The evaluators, each ending what takes too long if that was asked for.

        Args:
            workers: what each of them trains in.
        """
        if self.config.trial_timeout is None:
            return evaluators
        from engines.evaluation.time_limit import TimeLimited

        limit, trained_in = self.config.trial_timeout, [cast("Any", worker) for worker in workers]
        return [TimeLimited(*pair, limit) for pair in zip(evaluators, trained_in, strict=True)]

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
            further_seeds=self._further_seeds if self.config.replications else lambda history: None,
            out_of_time=self._out_of_time,
            observe=self._observe,
            turn=self.company.turn,
        )
        return run_loop(self.searcher, evaluators, self.record, plan)

    def _further_seeds(self, history: History[Any]) -> Again[Any] | None:
        """The next replication, where as large a share of them is due as of the evaluations, or the time, is done."""
        done = sum(trial.repeats_of is not None and trial.reason != INTERRUPTED for trial in history)
        share = min(max(history.num_evaluations / self.config.evaluations, self._share_of_time()), 1.0)
        if history.num_evaluations < self.config.num_initial or done >= int(self.config.replications * share):
            return None
        repeat = Replication().next(history, self.problem.objectives, self.problem.bounds)
        if repeat is None:
            return None
        R = self.config.repeats
        seeds = trial_seeds(self.config.seed, R * (repeat.record + 1))[R * repeat.record :]
        details = {"replication": {"record": repeat.record, "probability_on_front": repeat.probability}}
        return Again(repeat.first, seeds, details)

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

    def _share_of_time(self) -> float:
        """Share of the time budget that is spent; 0 without one."""
        return 1.0 - self._seconds_left() / self.config.time_budget if self.config.time_budget else 0.0

    def _out_of_time(self, history: History[Any]) -> bool:
        """Whether one more trial and the retraining, at the pace so far, would not fit the time budget.

        The first trial is always started: a search that only says it had no time is of no use.
        """
        if self.company.has_ended():
            return True
        if self.config.time_budget is None or self.tally.seconds_per_trial == 0.0:
            return False
        num_seeds = 0 if self.problem.trainer is None else self.config.retrain
        needed = self.tally.seconds_needed(self.config.repeats, list(CLASSICS.values()), num_seeds)
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
            "config": {name: value for name, value in config.as_mapping().items() if name not in ("resume", "join")},
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
        """Write the manifest; a process that has joined adds only where the run stands."""
        found: dict[str, Any] = {"status": status, "ending": ending, "searcher": dict(self.searcher.statement())}
        if self.member.first:
            self.manifest |= {"stage_times": self.problem.stage_times, **self.ranks.statement}
        else:
            self.manifest = read_manifest(self.folder)
        if hasattr(self, "company"):
            found["reference_point"] = self._reference()
            found |= {"joined": joined} if (joined := self.company.joined) else {}
        self.manifest |= found
        write_manifest(self.folder, self.manifest)


def _decoder(space: Space[Any]) -> Callable[[str], Any]:
    """From a design's text form back to the design."""
    if isinstance(space, (SearchSpace, ExtendedSpace)):
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
