"""The loop: ask for a design, evaluate it, record it. The one module that knows both engines, through their base.py.

Saving is left to the `Record` that is passed in; every call on it, and on the searcher, comes from the calling thread.
A trial is recorded as running before it is evaluated and as finished before the next suggestion, so that ending the
process at any instant loses at most the trials in flight.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from engines.evaluation.base import Evaluator
from engines.history import INTERRUPTED, History
from engines.objectives import Objective
from engines.search.base import Searcher
from engines.trial import Status, Trial
from search_space.errors import ConfigError, StorageError, TrialFailure

D = TypeVar("D")

SAME_FAILURES = 5
"""A search whose first so many trials fail for one and the same reason is stopped: the fault is not the designs'."""

_log = logging.getLogger(__name__)


class Record(Protocol[D]):
    """Where trials are kept; numbers them."""

    def history(self) -> History[D]:
        """Every trial so far, running ones included."""
        ...

    def start(
        self, design: D, seeds: Sequence[int], details: Mapping[str, Any], repeats_of: int | None = None
    ) -> Trial[D]:
        """Keep a new running trial, with the next free number; `repeats_of` as in `Trial`."""
        ...

    def finish(self, trial: Trial[D]) -> None:
        """Keep the finished form of a running trial."""
        ...


class Ending(Enum):
    """Why a loop ended."""

    REACHED = "the evaluations asked for are done"
    EXHAUSTED = "space exhausted"
    TIME = "the time budget is spent"
    FAILING = "the first trials all failed for the same reason"


@dataclass(frozen=True, slots=True)
class Again(Generic[D]):
    """A design that is to be trained with further seeds.

    Attributes:
        first: its first trial.
        seeds: of the repeats to come.
        details: JSON types, recorded with the trial.
    """

    first: Trial[D]
    seeds: tuple[int, ...]
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan(Generic[D]):
    """What a loop is to do.

    Attributes:
        objectives: the m objectives that every complete trial must have a finite value of.
        evaluations: total of evaluations in the record at which to end; see `History.num_evaluations`.
        seeds: seeds of the repeats of every trial.
        deterministic: with q evaluators, suggestion i sees trials 1..i-q as finished and the next q-1 as running,
            whatever has finished meanwhile, so that the run's seed and q fix the designs.
        further_seeds: asked before each suggestion for a trial that repeats an earlier one; such trials are no
            evaluations, and the loop ends when it has none left.
        out_of_time: asked before each suggestion; True ends the loop.
        observe: called with each trial, once when it starts and once when it has been recorded as finished.
        turn: gives a context in which a design is chosen and its trial started. Where other processes work on the same
            record, it keeps them from choosing meanwhile, and their trials are in the record's history.
        clock: seconds, rising.
    Raises:
        ConfigError: no evaluation or no seed is asked for.
    """

    objectives: Sequence[Objective]
    evaluations: int
    seeds: tuple[int, ...]
    deterministic: bool = False
    further_seeds: Callable[[History[D]], Again[D] | None] = lambda history: None
    out_of_time: Callable[[History[D]], bool] = lambda history: False
    observe: Callable[[Trial[D]], None] = lambda trial: None
    turn: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        if self.evaluations < 1:
            raise ConfigError(f"a search needs at least 1 evaluation, got {self.evaluations}")
        if not self.seeds:
            raise ConfigError("a trial needs at least 1 repeat, got 0 seeds")


def run_loop(searcher: Searcher[D], evaluators: Sequence[Evaluator[D]], record: Record[D], plan: Plan[D]) -> Ending:
    """Evaluate designs until the total is reached, the space is exhausted or the time is over.

    Args:
        evaluators: q of them, each given one design at a time. A single one works in the calling thread, so that an
            interrupt reaches it at once; several work in threads of their own.
    Raises:
        StorageError: a trial could not be recorded; what was recorded before is intact.
        KeyboardInterrupt: passed on after the running trials were recorded as failed with the reason `interrupted`.
    """
    if not evaluators:
        raise ConfigError("a search needs at least 1 evaluator, got 0")
    run = _Run(searcher, evaluators, record, plan)
    try:
        return run.to_the_end()
    except StorageError:
        raise
    except BaseException:
        run.interrupt()
        raise


class _Run(Generic[D]):
    """One call of `run_loop`: what is in flight, which evaluators are idle, and the finished trials to be recorded."""

    def __init__(
        self, searcher: Searcher[D], evaluators: Sequence[Evaluator[D]], record: Record[D], plan: Plan[D]
    ) -> None:
        self.searcher, self.record, self.plan = searcher, record, plan
        self.idle = list(evaluators)
        self.num_evaluators = len(self.idle)
        self.running: dict[int, Trial[D]] = {}
        self.done: queue.SimpleQueue[tuple[Trial[D], Evaluator[D]]] = queue.SimpleQueue()
        self.reasons: list[str | None] = []

    def to_the_end(self) -> Ending:
        ending: Ending | None = None
        while True:
            while ending is None and self.idle and self._may_suggest():
                ending = self._suggest()
            if not self.running:
                # With nothing in flight every suggestion is allowed, so the loop above ended with an ending.
                assert ending is not None
                return ending
            self._collect()
            if ending is None and self._failing():
                ending = Ending.FAILING

    def interrupt(self) -> None:
        """Record what is in flight as interrupted; its threads, if any, are left to end by themselves."""
        for trial in self.record.history().running:
            if trial.number in self.running:
                self.record.finish(trial.fail(INTERRUPTED))
        self.running.clear()

    def _counted(self) -> list[Trial[D]]:
        """Trials that count: an interrupted one is as if it had never been, which makes resuming exact."""
        return [trial for trial in self.record.history() if trial.reason != INTERRUPTED]

    def _may_suggest(self) -> bool:
        """Whether the trials that the next suggestion must see as finished are."""
        if not self.plan.deterministic or not self.running:
            return True
        counted = self._counted()
        due = counted[: max(len(counted) + 1 - self.num_evaluators, 0)]
        return all(trial.finished for trial in due)

    def _view(self) -> History[D]:
        """The history as the searcher is to see it."""
        if not self.plan.deterministic or self.num_evaluators == 1:
            return self.record.history()
        counted = self._counted()
        known = max(len(counted) + 1 - self.num_evaluators, 0)
        return History(
            [
                *counted[:known],
                *(
                    Trial(t.number, t.design, t.seeds, details=t.details, repeats_of=t.repeats_of)
                    for t in counted[known:]
                ),
            ]
        )

    def _suggest(self) -> Ending | None:
        """Start one trial, or say why there is no more to start."""
        with self.plan.turn():
            chosen = self._choose()
        if isinstance(chosen, Ending):
            return chosen
        self._evaluate(chosen)
        return None

    def _choose(self) -> Trial[D] | Ending:
        """A new running trial, or why there is none."""
        history = self.record.history()
        if self.plan.out_of_time(history):
            reached = self._num_begun(history) >= self.plan.evaluations
            return Ending.REACHED if reached else Ending.TIME
        again = self.plan.further_seeds(self._view())
        if again is not None:
            return self._started(self.record.start(again.first.design, again.seeds, again.details, again.first.number))
        if self._num_begun(history) >= self.plan.evaluations:
            return Ending.REACHED
        began = self.plan.clock()
        suggestions = self.searcher.ask(self._view(), 1)
        if not suggestions:
            return Ending.EXHAUSTED
        seconds = self.plan.clock() - began
        suggestion = suggestions[0]
        details = {"suggestion": {**suggestion.details, "seconds": seconds}}
        return self._started(self.record.start(suggestion.design, self.plan.seeds, details))

    def _num_begun(self, history: History[D]) -> int:
        """Evaluations that are finished or under way, here or in another process."""
        return history.num_evaluations + sum(trial.repeats_of is None for trial in history.running)

    def _started(self, trial: Trial[D]) -> Trial[D]:
        self.running[trial.number] = trial
        return trial

    def _evaluate(self, trial: Trial[D]) -> None:
        self.plan.observe(trial)
        evaluator = self.idle.pop()
        if self.num_evaluators == 1:
            self.done.put((_evaluate(evaluator, trial, self.plan), evaluator))
        else:
            # A daemon: an evaluation that never ends must not keep an interrupted process alive.
            threading.Thread(target=self._work, args=(evaluator, trial), daemon=True).start()

    def _work(self, evaluator: Evaluator[D], trial: Trial[D]) -> None:
        self.done.put((_evaluate(evaluator, trial, self.plan), evaluator))

    def _collect(self) -> None:
        """Wait for one trial and record it."""
        trial, evaluator = self.done.get()
        self.record.finish(trial)
        del self.running[trial.number]
        self.idle.append(evaluator)
        self.reasons.append(trial.reason if trial.status is Status.FAILED else None)
        self.plan.observe(trial)

    def _failing(self) -> bool:
        first = self.reasons[:SAME_FAILURES]
        return len(first) == SAME_FAILURES and first[0] is not None and len(set(first)) == 1


def _evaluate(evaluator: Evaluator[D], trial: Trial[D], plan: Plan[D]) -> Trial[D]:
    """The finished form of a running trial. An error of the evaluator ends the trial, never the search."""
    began = plan.clock()
    try:
        outcome = evaluator.evaluate(trial.design, trial.seeds)
        return trial.complete(outcome, plan.objectives, plan.clock() - began)
    except TrialFailure as failure:
        reason = _one_line(str(failure))
    except Exception as error:
        # Any evaluator may be plugged in, so any error may come; the reason names it and the log holds the traceback.
        _log.debug("trial %d failed", trial.number, exc_info=True)
        reason = _one_line(f"{type(error).__name__}: {error}")
    return trial.fail(reason, plan.clock() - began)


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].rstrip(":") if lines else "no reason given"
