"""A design that takes too long fails; one that does not is left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from engines.evaluation.time_limit import TimeLimited
from engines.trial import Outcome
from search_space.errors import TrialFailure

GOOD = Outcome({"val_error": 0.5})


class Worker:
    """An evaluator whose process can be ended: `evaluate` waits until then, or returns at once."""

    def __init__(self, act: Callable[[Worker], Outcome]) -> None:
        self.act, self.ended, self.starts = act, threading.Event(), 0

    def get_ready(self) -> None:
        self.starts += 1

    def give_up(self) -> None:
        self.ended.set()

    def evaluate(self, design: str, seeds: Sequence[int]) -> Outcome:
        return self.act(self)


def until_ended(worker: Worker) -> Outcome:
    assert worker.ended.wait(30)
    raise TrialFailure("worker process 0 was killed by SIGKILL")


def failing(worker: Worker) -> Outcome:
    raise TrialFailure("training diverged")


def test_what_takes_too_long_is_ended_and_says_so() -> None:
    worker = Worker(until_ended)
    with pytest.raises(TrialFailure, match=r"^not done after the 0\.05 s that a trial may take$"):
        TimeLimited(worker, worker, 0.05).evaluate("design", (1,))


def test_what_is_done_in_time_is_left_alone() -> None:
    worker = Worker(lambda worker: GOOD)
    assert TimeLimited(worker, worker, 60.0).evaluate("design", (1,)) is GOOD
    assert not worker.ended.is_set()
    assert worker.starts == 1, "the time that a worker needs to start does not count"


def test_another_failure_keeps_its_reason() -> None:
    worker = Worker(failing)
    with pytest.raises(TrialFailure, match="training diverged"):
        TimeLimited(worker, worker, 60.0).evaluate("design", (1,))
