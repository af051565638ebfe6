"""Runs tests/mpi under mpiexec, with several numbers of ranks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300


@pytest.fixture
def mpiexec() -> str:
    """The launcher of the MPI library that comes with this Python, or of the system; skips where there is none."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("needs mpiexec: pip install mpich")
    return found


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4])
def test_everything_between_ranks_holds_on(num_ranks: int, mpiexec: str) -> None:
    run_tests(mpiexec, num_ranks, "tests/mpi")


def test_propagation_holds_on_7_ranks(mpiexec: str) -> None:
    run_tests(mpiexec, 7, "tests/mpi/test_plans.py")


def run_tests(mpiexec: str, num_ranks: int, what: str) -> None:
    command = [mpiexec, "-n", str(num_ranks), sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", what]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **one_thread}, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
