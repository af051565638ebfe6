"""Who works on a run: places, turns, and what is left when a process ends."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from pasca.members import LOCK_FILE, holders, is_held, is_lock, joined, name_of, occupied, refuse_held
from search_space.errors import RunError


def test_the_first_works_alone_until_another_joins(tmp_path: Path) -> None:
    with occupied(tmp_path) as first:
        assert first.first
        assert not first.has_company()
        assert first.others() == []
        with joined(tmp_path) as second:
            assert not second.first
            assert (first.others(), second.others()) == ([second.token], [first.token])
            assert first.is_alive(second.token)
        assert first.has_company(), "whoever joined may have left trials"
        assert not first.is_alive(second.token)


def test_whoever_joins_where_nobody_is_becomes_the_first(tmp_path: Path) -> None:
    with joined(tmp_path) as alone:
        assert alone.first


def test_a_run_is_in_use_as_long_as_one_that_joined_is_at_work(tmp_path: Path) -> None:
    with joined(tmp_path / ".") as first, joined(tmp_path) as second:
        assert holders(tmp_path) == [name_of(first.token), name_of(second.token)]
    with occupied(tmp_path) as first:
        held = joined(tmp_path)
        second = held.__enter__()
    with (
        pytest.raises(RunError, match=f"in use by {name_of(second.token)}; wait for it, work beside"),
        occupied(tmp_path),
    ):
        pass
    with pytest.raises(RunError, match="in use by process"):
        refuse_held(tmp_path)
    held.__exit__(None, None, None)
    assert not is_held(tmp_path)


def test_a_third_process_takes_a_place_of_its_own(tmp_path: Path) -> None:
    with joined(tmp_path) as first, joined(tmp_path) as second, joined(tmp_path) as third:
        assert len({first.token, second.token, third.token}) == 3
        assert sorted(third.others()) == sorted((first.token, second.token))


def test_turns_exclude_each_other_and_may_be_nested(tmp_path: Path) -> None:
    said: list[str] = []
    with occupied(tmp_path) as first, joined(tmp_path) as second:

        def other() -> None:
            with second.turn():
                said.append("second")

        with first.turn():
            thread = threading.Thread(target=other)
            thread.start()
            with first.turn():
                time.sleep(0.1)
            said.append("first")
        thread.join(10)
    assert said == ["first", "second"]


def test_whoever_closes_second_is_told_to_wait(tmp_path: Path) -> None:
    said: list[str] = []
    with occupied(tmp_path) as first, joined(tmp_path) as second:

        def other() -> None:
            with second.closing(lambda: said.append("waiting")):
                said.append("second")

        with first.closing(lambda: said.append("never")):
            thread = threading.Thread(target=other)
            thread.start()
            time.sleep(0.2)
            said.append("first")
        thread.join(10)
    assert said == ["waiting", "first", "second"]


def test_a_lock_with_nothing_in_it_still_refuses(tmp_path: Path) -> None:
    with occupied(tmp_path):
        (tmp_path / LOCK_FILE).write_text("")
        with pytest.raises(RunError, match="in use by another process"), occupied(tmp_path):
            pass


def test_locks_are_told_from_other_files(tmp_path: Path) -> None:
    names = [LOCK_FILE, "lock-2", "lock-13", "lock-turn", "lock-end", "lock-", "locks", "study.db"]
    assert [is_lock(tmp_path / name) for name in names] == [True] * 5 + [False] * 3


def test_a_process_is_named_by_its_number_and_host(tmp_path: Path) -> None:
    with occupied(tmp_path) as member:
        token = json.loads((tmp_path / LOCK_FILE).read_text())["token"]
    assert token == member.token
    assert name_of("vm/17/abcd") == "process 17 on vm"
    assert name_of(None) == "another process"
