"""Who may go on: the staleness bound holds for any order of events, and never stops the slowest worker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.evaluation.clocks import ClockTable, Consistency
from search_space.errors import ConfigError, ShapeError

RULES = st.one_of(
    st.just(Consistency("bsp")), st.just(Consistency("asp")), st.integers(0, 5).map(lambda s: Consistency("ssp", s))
)


@given(RULES, st.integers(1, 5), st.lists(st.integers(0, 4), max_size=60))
def test_no_worker_goes_on_without_what_it_must_have_seen(rule: Consistency, workers: int, turns: list[int]) -> None:
    table, clocks = ClockTable(rule, workers), [0] * workers
    for turn in turns:
        worker = turn % workers
        if not table.may_see(clocks[worker]):
            continue
        if rule.bound is not None:
            # all updates of clocks <= c - s - 1 means that everybody has pushed at least c - s times
            assert min(clocks) >= clocks[worker] - rule.bound
        table.record_push(worker, clocks[worker])
        clocks[worker] += 1
    if rule.bound is not None:
        assert max(clocks) - min(clocks) <= rule.bound + 1


@given(RULES, st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_the_slowest_worker_never_waits(rule: Consistency, wanted: list[int]) -> None:
    table = ClockTable(rule, len(wanted))
    for worker, pushes in enumerate(wanted):
        for clock in range(pushes):
            table.record_push(worker, clock)
    assert table.may_see(min(wanted))
    assert table.may_see(min(wanted), strictly=True)


@given(st.integers(0, 5))
def test_a_bound_of_s_lets_a_worker_be_s_clocks_ahead_and_no_more(staleness: int) -> None:
    table = ClockTable(Consistency("ssp", staleness), 2)
    for clock in range(staleness + 1):
        assert table.may_see(clock)
        table.record_push(0, clock)
    assert not table.may_see(staleness + 1)
    table.record_push(1, 0)
    assert table.may_see(staleness + 1)


def test_nobody_waits_for_a_worker_that_has_left() -> None:
    table = ClockTable(Consistency("bsp"), 2)
    table.record_push(0, 0)
    assert not table.may_see(1)
    table.leave(1)
    assert table.may_see(1)
    assert table.num_left == 1


def test_asynchronous_workers_wait_for_nothing_but_a_meeting() -> None:
    table = ClockTable(Consistency("asp"), 2)
    assert table.may_see(100)
    assert not table.may_see(1, strictly=True)


def test_a_push_out_of_order_is_refused() -> None:
    with pytest.raises(ShapeError, match="worker 1 pushed clock 3, but 0 was next"):
        ClockTable(Consistency("bsp"), 2).record_push(1, 3)


def test_pushes_of_a_clock_step_together_only_without_staleness() -> None:
    assert [Consistency(*rule).joint_steps for rule in (("bsp", 4), ("ssp", 0), ("ssp", 1), ("asp", 0))] == [
        True,
        True,
        False,
        False,
    ]


def test_unknown_rules_and_negative_bounds_are_refused() -> None:
    with pytest.raises(ConfigError, match="unknown consistency 'sync'; choose from: bsp, ssp, asp, admm"):
        Consistency("sync")
    with pytest.raises(ConfigError, match="at least 0 clocks, got -1"):
        Consistency("ssp", -1)
