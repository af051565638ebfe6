"""Run folders: names, finding them, and holding them."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pasca.members import LOCK_FILE, is_held, occupied
from pasca.runs import (
    MANIFEST_FILE,
    argument_for,
    data_label,
    find_run,
    fresh_name,
    is_free,
    list_runs,
    run_folder,
)
from search_space.errors import RunError, StorageError

NOON = datetime(2024, 5, 6, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make_run(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / MANIFEST_FILE).write_text("{}")
    return folder


def test_a_name_is_a_folder_below_results_and_a_path_is_itself() -> None:
    assert run_folder("cora-1", None) == Path("results/cora-1")
    assert run_folder(None, "/some/where") == Path("/some/where")


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "/a", "../a", "a\\b", "-a", ".hidden", "a b", "a\n", "reference", "ä", "x" * 101, "a;b"],
)
def test_a_name_that_is_not_plain_is_refused(name: str) -> None:
    with pytest.raises(RunError) as refusal:
        run_folder(name, None)
    assert repr(name) in str(refusal.value)


def test_a_run_has_a_name_or_a_folder_not_both() -> None:
    with pytest.raises(RunError, match="either"):
        run_folder("a", "b")


def test_a_fresh_name_tells_data_and_time_and_counts_up() -> None:
    assert fresh_name("cora", NOON) == "cora-20240506-120000"
    Path("results/cora-20240506-120000").mkdir(parents=True)
    assert fresh_name("cora", NOON) == "cora-20240506-120000-2"


@pytest.mark.parametrize(
    "data", ["<img src=x onerror=alert(1)>", "../../etc", "a b", "", "[red]x[/red]", "x" * 300, "ä"]
)
def test_a_fresh_name_is_plain_whatever_the_data_is_called(data: str) -> None:
    assert run_folder(fresh_name(data), None).parent == Path("results")


@pytest.mark.parametrize(
    ("data", "label"),
    [("digits", "digits"), ("/graphs/cora", "cora"), ("graphs/a.npz", "a"), ("g/cora:tiny", "cora-tiny")],
)
def test_data_has_a_short_name(data: str, label: str) -> None:
    assert data_label(data) == label


def test_a_run_is_found_by_name_and_by_path() -> None:
    make_run(Path("results/one"))
    make_run(Path("elsewhere/two"))
    assert find_run("one") == Path("results/one")
    assert find_run("elsewhere/two") == Path("elsewhere/two")
    assert [folder.name for folder in list_runs()] == ["one"]


def test_what_a_command_line_takes_for_a_folder_finds_that_folder(tmp_path: Path) -> None:
    elsewhere = tmp_path / "my runs" / "one"
    for folder in (Path("results/one"), elsewhere):
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}")
    assert argument_for(Path("results/one").resolve()) == "one"
    assert find_run(shlex.split(argument_for(elsewhere))[0]) == elsewhere


def test_a_missing_run_lists_those_there_are() -> None:
    make_run(Path("results/one"))
    with pytest.raises(RunError, match=r"no run 'two'.*runs here: one"):
        find_run("two")


def test_a_folder_with_nothing_but_a_lock_is_free() -> None:
    folder = Path("a")
    assert is_free(folder)
    with occupied(folder):
        pass
    assert (folder / LOCK_FILE).exists()
    assert is_free(folder)
    (folder / "note.txt").write_text("mine")
    assert not is_free(folder)


def test_a_file_is_no_run_folder() -> None:
    Path("a").write_text("x")
    with pytest.raises(RunError, match="is a file"):
        is_free(Path("a"))
    with pytest.raises(StorageError, match="cannot write to the run folder a"), occupied(Path("a")):
        pass


HOLD = """
import sys, time
from pathlib import Path
from pasca.members import occupied
with occupied(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_folder_in_use_is_refused_with_the_holder_and_free_once_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True, env=environment
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert is_held(folder)
        with pytest.raises(RunError, match=f"process {holder.pid} on "), occupied(folder):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait(10)
    assert not is_held(folder)
    with occupied(folder):
        assert is_held(folder)
