"""A full disk, a folder that cannot be written, a database that is locked, cut short or from elsewhere."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

RUN = Path("results/a-run")
DATABASE = RUN / "study.db"
SHORT = ["--retrain", "0"]


def one_line(command: Any, code: int = 1) -> str:
    """The one line with which a command failed."""
    assert command.code() == code, command.said
    assert "Traceback" not in command.said
    assert command.last_line.startswith("pasca: error: ")
    return str(command.last_line)


@contextlib.contextmanager
def mounted(folder: Path, *arguments: str) -> Iterator[None]:
    """A file system at a folder while the block runs; skips the test where mounting is not allowed."""
    done = subprocess.run(["mount", *arguments, str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"needs the right to mount a file system: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def third_training(search: Any) -> Any:
    """A search with two finished trials that is at work on the third."""
    command = search(stage=("training", 3), fault="slow_at_third")
    assert command.heard("training")
    return command


def test_a_limit_on_the_size_of_files_loses_nothing_that_was_recorded(search: Any, resumed: Any) -> None:
    from pasca.results import Study

    command = third_training(search)
    # The database is larger already, whatever else is written is smaller.
    resource.prlimit(command.process.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    assert one_line(command).startswith("pasca: error: cannot write the record results/a-run/study.db: ")
    before = Study.open("a-run").history
    assert len(before.complete) >= 2, "what had room in the pages that were there"
    resumed(before=before)


def test_a_full_disk_loses_nothing_that_was_recorded(search: Any, resumed: Any, tmp_path: Path) -> None:
    from pasca.results import Study

    RUN.mkdir(parents=True)
    with mounted(RUN, "-t", "tmpfs", "-o", "size=2m", "tmpfs"):
        command = third_training(search)
        with contextlib.suppress(OSError), (RUN / ".pasca-filler.tmp").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        assert one_line(command).startswith("pasca: error: cannot write the record results/a-run/study.db: ")
        (RUN / ".pasca-filler.tmp").unlink()
        shutil.copytree(RUN, tmp_path / "copy")
    RUN.rmdir()
    shutil.copytree(tmp_path / "copy", RUN)
    before = Study.open("a-run").history
    assert len(before.complete) == 2
    resumed(before=before)


def test_a_read_only_run_is_shown_and_exported_but_not_continued(search: Any, start: Any) -> None:
    assert search(*SHORT).code() == 0
    with contextlib.ExitStack() as held:
        if os.geteuid() == 0:  # whom no mode of a folder keeps out
            held.enter_context(mounted(RUN, "--bind", "-o", "ro", str(RUN)))
        else:
            RUN.chmod(0o555)
            held.callback(RUN.chmod, 0o755)
        assert "cannot write to the run folder results/a-run" in one_line(
            start("search", "--run", "a-run", "--resume", "-n", "6")
        )
        shown, exported = start("front", "a-run"), start("export", "a-run", "--out", "model")
        assert shown.code() == 0, shown.said
        assert exported.code() == 0, exported.said
        refused = start("export", "a-run")
        assert "cannot write" in one_line(refused)
    assert start("search", "--run", "a-run", "--resume", "-n", "6").code() == 0


def test_a_database_that_is_locked_for_a_while_is_waited_for(search: Any, resumed: Any) -> None:
    command = search(fault="slow")
    command.until("trial 1 ")
    with contextlib.closing(sqlite3.connect(DATABASE, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        command.until("database is locked; trying again")
        other.rollback()
    assert command.code() == 0, command.said
    resumed()


def test_a_database_that_stays_locked_ends_the_search_and_loses_nothing(search: Any, resumed: Any) -> None:
    from pasca.results import Study

    command = search(fault="impatient", stage=("training", 3))
    assert command.heard("training")
    with contextlib.closing(sqlite3.connect(DATABASE, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert one_line(command) == "pasca: error: cannot write the record results/a-run/study.db: database is locked"
        other.rollback()
    before = Study.open("a-run").history
    assert len(before.complete) >= 2
    resumed(before=before)


@pytest.fixture
def interrupted(search: Any) -> None:
    """A run with two finished trials, whose process was killed."""
    command = search(stage=("training", 3))
    assert command.heard("training")
    command.process.kill()
    command.code()


def cut_short() -> None:
    whole = DATABASE.read_bytes()
    DATABASE.write_bytes(whole[: len(whole) // 2])


def from_another_version() -> None:
    with contextlib.closing(sqlite3.connect(DATABASE)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v1.3.0.a'")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(cut_short, "malformed"), (from_another_version, "optuna")],
    ids=["truncated", "from elsewhere"],
)
def test_a_database_that_cannot_be_used_is_refused_and_left_alone(
    interrupted: None, start: Any, resumed: Any, spoil: Callable[[], None], said: str
) -> None:
    whole = DATABASE.read_bytes()
    spoil()
    spoilt = DATABASE.read_bytes()
    for command in (start("search", "--run", "a-run", "--resume"), start("front", "a-run")):
        line = one_line(command, 2)
        assert "results/a-run/study.db" in line
        assert said in line
    assert DATABASE.read_bytes() == spoilt
    DATABASE.write_bytes(whole)
    resumed()


def test_a_clock_that_jumps_back_disturbs_nothing(search: Any, start: Any, resumed: Any) -> None:
    command = search("--evaluations", "4", fault="clock_jumps_back")
    assert command.code() == 0, command.said
    study = resumed("--evaluations", "6", total=6)
    assert all(seconds >= 0 for seconds in study.working_seconds().values())
    report = start("report", "a-run", "--out", "page.html")
    assert report.code() == 0, report.said
