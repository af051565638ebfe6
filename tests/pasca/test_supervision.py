"""A rank is a pair under a launcher of several: the parent ends as the child did, and says what killed it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (
    "from pasca.supervision import supervised; supervised(); import os, sys, time; print(os.environ.get({name!r})); "
)
RANK = {"PMI_RANK": "1", "PMI_SIZE": "3"}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def run(rest: str, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(name="OMP_NUM_THREADS") + rest],
        env={**plain, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_killed_rank_is_named_with_its_signal() -> None:
    done = run("os.kill(os.getpid(), 9)", **RANK)
    assert done.returncode == 128 + signal.SIGKILL
    assert f"rank 1 of 3 on {os.uname().nodename} was killed by SIGKILL" in done.stderr


def test_an_exit_code_is_passed_on_without_a_word() -> None:
    done = run("sys.exit(7)", **RANK)
    assert (done.returncode, done.stderr) == (7, "")


def test_a_signal_is_handed_on_to_the_child() -> None:
    done = run("os.kill(os.getppid(), 15); time.sleep(60)", **RANK)
    assert done.returncode == 128 + signal.SIGTERM


def test_a_rank_has_one_thread_and_a_single_process_as_many_as_it_wants() -> None:
    assert run("", **RANK).stdout == "1\n"
    assert run("", **RANK, OMP_NUM_THREADS="2").stdout == "2\n"
    assert run("").stdout == "None\n"


def test_a_single_process_is_no_pair() -> None:
    done = run(f"sys.exit(os.getppid() != {os.getpid()})")
    assert done.returncode == 0
