"""The loop, with searchers and evaluators small enough to foresee."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from engines.history import INTERRUPTED, History
from engines.loop import SAME_FAILURES, Again, Ending, Plan, run_loop
from engines.objectives import OBJECTIVES
from engines.search.base import Suggestion
from engines.trial import Outcome, Status, Trial
from search_space.errors import ConfigError, StorageError, TrialFailure

PAIR = (OBJECTIVES["val_error"], OBJECTIVES["inference_seconds"])


class InOrder:
    """Suggests 0, 1, 2, ... below `size`, skipping what was attempted; remembers what it was shown."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.shown: list[list[tuple[int, Status]]] = []

    def ask(self, history: History[int], count: int = 1) -> list[Suggestion[int]]:
        self.shown.append([(trial.design, trial.status) for trial in history])
        free = [design for design in range(self.size) if design not in history.attempted()]
        return [Suggestion(design, {"method": "in order"}) for design in free[:count]]

    def statement(self) -> Mapping[str, Any]:
        return {"searcher": "in order"}


class Calls:
    """An evaluator that is a function of the design."""

    def __init__(self, function: Callable[[int], Outcome]) -> None:
        self.function = function
        self.seeds: list[Sequence[int]] = []

    def evaluate(self, design: int, seeds: Sequence[int]) -> Outcome:
        self.seeds.append(seeds)
        return self.function(design)


class Memory:
    """A record in memory, which also logs what it was told."""

    def __init__(self, trials: Sequence[Trial[int]] = ()) -> None:
        self.kept = History(trials)
        self.log: list[tuple[str, int]] = []

    def history(self) -> History[int]:
        return self.kept

    def start(
        self, design: int, seeds: Sequence[int], details: Mapping[str, Any], repeats_of: int | None = None
    ) -> Trial[int]:
        trial = Trial(len(self.kept), design, tuple(seeds), details=dict(details), repeats_of=repeats_of)
        self.kept = self.kept.with_trial(trial)
        self.log.append(("start", trial.number))
        return trial

    def finish(self, trial: Trial[int]) -> None:
        self.kept = self.kept.with_trial(trial)
        self.log.append(("finish", trial.number))


def good(design: int) -> Outcome:
    return Outcome({"val_error": 0.5, "inference_seconds": 1.0 + design})


def plan(**settings: Any) -> Plan[int]:
    return Plan(**{"objectives": PAIR, "evaluations": 5, "seeds": (7, 8), **settings})


def test_it_ends_when_the_total_is_reached() -> None:
    record = Memory()
    assert run_loop(InOrder(100), [Calls(good)], record, plan(evaluations=5)) is Ending.REACHED
    assert [trial.design for trial in record.kept.complete] == [0, 1, 2, 3, 4]


def test_what_was_done_before_counts_towards_the_total() -> None:
    before = [Trial(number=i, design=i).complete(good(i), PAIR, 1.0) for i in range(3)]
    record = Memory(before)
    run_loop(InOrder(100), [Calls(good)], record, plan(evaluations=5))
    assert [trial.design for trial in record.kept] == [0, 1, 2, 3, 4]


def test_an_exhausted_space_ends_it() -> None:
    record = Memory()
    assert run_loop(InOrder(3), [Calls(good)], record, plan(evaluations=10)) is Ending.EXHAUSTED
    assert len(record.kept) == 3


def test_running_out_of_time_ends_it_before_the_next_suggestion() -> None:
    record = Memory()
    ending = run_loop(InOrder(9), [Calls(good)], record, plan(out_of_time=lambda history: history.num_evaluations >= 2))
    assert ending is Ending.TIME
    assert len(record.kept) == 2


def test_a_trial_is_recorded_as_running_before_and_as_finished_after_its_evaluation() -> None:
    record = Memory()
    seen: list[Status] = []

    def evaluate(design: int) -> Outcome:
        seen.append(record.kept[design].status)
        return good(design)

    run_loop(InOrder(9), [Calls(evaluate)], record, plan(evaluations=2))
    assert seen == [Status.RUNNING, Status.RUNNING]
    assert record.log == [("start", 0), ("finish", 0), ("start", 1), ("finish", 1)]


def test_every_trial_trains_with_the_same_seeds() -> None:
    evaluator = Calls(good)
    run_loop(InOrder(9), [evaluator], Memory(), plan(evaluations=3, seeds=(3, 1, 4)))
    assert evaluator.seeds == [(3, 1, 4)] * 3


def test_what_the_searcher_said_is_recorded_with_the_trial() -> None:
    record = Memory()
    run_loop(InOrder(9), [Calls(good)], record, plan(evaluations=1))
    assert record.kept[0].details["suggestion"]["method"] == "in order"


def test_observers_see_each_trial_twice() -> None:
    seen: list[tuple[int, bool]] = []
    run_loop(
        InOrder(9), [Calls(good)], Memory(), plan(evaluations=2, observe=lambda t: seen.append((t.number, t.finished)))
    )
    assert seen == [(0, False), (0, True), (1, False), (1, True)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TrialFailure("training diverged"), "training diverged"),
        (MemoryError(), "MemoryError"),
        (MemoryError("cannot allocate 9 GB"), "MemoryError: cannot allocate 9 GB"),
        (RuntimeError("first line\nsecond line"), "RuntimeError: first line"),
    ],
)
def test_an_error_fails_the_trial_and_the_search_goes_on(error: Exception, reason: str) -> None:
    def evaluate(design: int) -> Outcome:
        if design == 1:
            raise error
        return good(design)

    record = Memory()
    assert run_loop(InOrder(9), [Calls(evaluate)], record, plan(evaluations=3)) is Ending.REACHED
    assert [trial.status for trial in record.kept] == [Status.COMPLETE, Status.FAILED, Status.COMPLETE]
    assert record.kept[1].reason == reason
    assert dict(record.kept[1].values) == {}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_is_not_finite_fails_the_trial_and_names_the_objective(value: float) -> None:
    record = Memory()
    evaluator = Calls(lambda design: Outcome({"val_error": value, "inference_seconds": 0.01}))
    run_loop(InOrder(2), [evaluator], record, plan())
    assert all(trial.status is Status.FAILED and "val_error" in str(trial.reason) for trial in record.kept)
    assert all(not trial.values for trial in record.kept)


def test_an_outcome_of_the_wrong_type_fails_the_trial() -> None:
    record = Memory()
    run_loop(InOrder(1), [Calls(lambda design: Outcome({"val_error": "low", "inference_seconds": 1}))], record, plan())  # type: ignore[dict-item]
    assert record.kept[0].status is Status.FAILED
    assert str(record.kept[0].reason).startswith("TypeError")


def test_a_stopped_trial_keeps_its_values() -> None:
    record = Memory()
    evaluator = Calls(lambda d: Outcome({"val_error": 0.9, "inference_seconds": 1.0}, stopped=True))
    run_loop(InOrder(1), [evaluator], record, plan())
    assert record.kept[0].status is Status.STOPPED
    assert record.kept[0].values["val_error"] == 0.9


def test_it_stops_when_the_first_trials_all_fail_for_the_same_reason() -> None:
    def broken(design: int) -> Outcome:
        raise TrialFailure("no such device")

    record = Memory()
    assert run_loop(InOrder(99), [Calls(broken)], record, plan(evaluations=50)) is Ending.FAILING
    assert len(record.kept) == SAME_FAILURES


def test_it_goes_on_when_the_first_trials_fail_for_different_reasons() -> None:
    def broken(design: int) -> Outcome:
        raise TrialFailure(f"design {design} is bad")

    record = Memory()
    assert run_loop(InOrder(99), [Calls(broken)], record, plan(evaluations=8)) is Ending.REACHED
    assert len(record.kept) == 8


def test_it_goes_on_when_one_of_the_first_trials_succeeds() -> None:
    def evaluate(design: int) -> Outcome:
        if design == 2:
            return good(design)
        raise TrialFailure("always the same")

    assert run_loop(InOrder(99), [Calls(evaluate)], Memory(), plan(evaluations=9)) is Ending.REACHED


def test_an_interrupt_records_the_running_trial_as_interrupted_and_passes_on() -> None:
    def interrupt(design: int) -> Outcome:
        if design == 1:
            raise KeyboardInterrupt
        return good(design)

    record = Memory()
    with pytest.raises(KeyboardInterrupt):
        run_loop(InOrder(9), [Calls(interrupt)], record, plan())
    assert record.kept[1].status is Status.FAILED
    assert record.kept[1].reason == INTERRUPTED
    assert record.kept.running == []


def test_an_interrupted_design_is_free_again_and_does_not_count() -> None:
    record = Memory([Trial(number=0, design=0).fail(INTERRUPTED)])
    run_loop(InOrder(9), [Calls(good)], record, plan(evaluations=2))
    assert [trial.design for trial in record.kept.complete] == [0, 1]


def test_deterministic_evaluators_take_interrupted_trials_as_if_they_had_never_been() -> None:
    searcher = InOrder(9)
    interrupted = Memory([Trial(number=0, design=0).fail(INTERRUPTED)])
    run_loop(searcher, [Calls(good), Calls(good)], interrupted, plan(evaluations=2, deterministic=True))
    assert searcher.shown == [[], [(0, Status.RUNNING)]]


def test_an_unwritable_record_ends_the_search() -> None:
    class Full(Memory):
        def finish(self, trial: Trial[int]) -> None:
            raise StorageError("the disk is full")

    with pytest.raises(StorageError, match="disk is full"):
        run_loop(InOrder(9), [Calls(good)], Full(), plan())


def test_several_evaluators_share_the_total_without_repeating_a_design() -> None:
    together = threading.Barrier(4, timeout=20)
    evaluators = [Calls(lambda design: (together.wait(), good(design))[1]) for _ in range(4)]
    record = Memory()
    assert run_loop(InOrder(99), evaluators, record, plan(evaluations=8)) is Ending.REACHED
    assert sorted(trial.design for trial in record.kept.complete) == list(range(8))


def test_several_evaluators_exhaust_a_small_space_without_doubles() -> None:
    record = Memory()
    assert run_loop(InOrder(3), [Calls(good) for _ in range(4)], record, plan(evaluations=10)) is Ending.EXHAUSTED
    assert sorted(trial.design for trial in record.kept.complete) == [0, 1, 2]


def test_the_searcher_is_shown_running_trials() -> None:
    searcher, release = InOrder(99), threading.Event()

    def evaluate(design: int) -> Outcome:
        if design == 1:
            release.set()
        assert release.wait(20)
        return good(design)

    run_loop(searcher, [Calls(evaluate), Calls(evaluate)], Memory(), plan(evaluations=2))
    assert searcher.shown == [[], [(0, Status.RUNNING)]]


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_deterministic_suggestions_do_not_depend_on_who_finishes_first(slow: int) -> None:
    """With q = 2, suggestion i sees trials 1..i-2 as finished and trial i-1 as running, whichever is slow."""
    searcher, others = InOrder(99), threading.Event()

    def evaluate(design: int) -> Outcome:
        if design == slow:
            others.wait(0.2)
        return good(design)

    run_loop(searcher, [Calls(evaluate), Calls(evaluate)], Memory(), plan(evaluations=5, deterministic=True))
    for place, shown in enumerate(searcher.shown[:5]):
        finished = [(design, Status.COMPLETE) for design in range(max(place - 1, 0))]
        running = [(place - 1, Status.RUNNING)] if place else []
        assert shown == [*finished, *running]


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1 evaluation, got 0"):
        plan(evaluations=0)
    with pytest.raises(ConfigError, match="at least 1 repeat"):
        plan(seeds=())
    with pytest.raises(ConfigError, match="at least 1 evaluator"):
        run_loop(InOrder(1), [], Memory(), plan())


def test_further_seeds_are_no_evaluations_and_come_before_the_end() -> None:
    def again(history: History[int]) -> Again[int] | None:
        repeated = [trial for trial in history if trial.repeats_of is not None]
        return Again(history[0], (7, 8), {"why": "a doubt"}) if len(history) >= 2 and len(repeated) < 2 else None

    record, evaluator = Memory(), Calls(good)
    plan = Plan(PAIR, evaluations=2, seeds=(0,), further_seeds=again)
    assert run_loop(InOrder(9), [evaluator], record, plan) is Ending.REACHED
    assert [(trial.design, trial.repeats_of) for trial in record.kept] == [(0, None), (1, None), (0, 0), (0, 0)]
    assert record.kept.num_evaluations == 2
    assert evaluator.seeds == [(0,), (0,), (7, 8), (7, 8)]
    assert record.kept[2].details["why"] == "a doubt"


def test_a_repeat_under_way_is_not_counted_as_an_evaluation() -> None:
    begun = threading.Event()

    def slow_repeat(design: int) -> Outcome:
        if design == 0 and begun.is_set():
            threading.Event().wait(0.05)
        begun.set()
        return good(design)

    def again(history: History[int]) -> Again[int] | None:
        due = len(history) and history[0].finished and all(trial.repeats_of is None for trial in history)
        return Again(history[0], (7,)) if due else None

    record = Memory()
    plan = Plan(PAIR, evaluations=3, seeds=(0,), further_seeds=again)
    run_loop(InOrder(9), [Calls(slow_repeat), Calls(slow_repeat)], record, plan)
    assert record.kept.num_evaluations == 3
    assert sum(trial.repeats_of == 0 for trial in record.kept) == 1
