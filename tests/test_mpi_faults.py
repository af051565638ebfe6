"""A search on several ranks: it ends when a rank fails, says which and why, leaves nothing behind, and goes on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 600

SEARCH = [
    *("search", "digits", "--evaluations", "3", "--searcher", "random", "--retrain", "0", "--repeats", "1"),
    *("--recipe", "max_epochs=4", "--recipe", "hidden_width=8"),
]
# What each rank runs: the command line, after something was broken on one rank.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
rank = int(os.environ["PMI_RANK"])
folder = Path({folder!r})
def now():
    (folder / "fault").write_text(str(time.time()))
def note():
    (folder / f"pid-{{rank}}-{{os.getpid()}}").write_text("")
note()
import pasca.supervision
inner = pasca.supervision.supervised
def supervised():
    inner()
    note()
    break_it()
def break_it():
{fault}
import pasca.cli
pasca.cli.supervised = supervised
sys.exit(pasca.cli.main({arguments!r}))
"""
NOTHING = "    pass"
RAISES = """
    if rank == 1:
        import engines.evaluation.distributed as module
        def broken(self, aggregator, k):
            now()
            raise ValueError("the propagation broke")
        module.GroupEvaluator.hop = broken
"""
KILLED = """
    if rank == 2:
        import engines.evaluation.distributed as module
        def broken(*arguments):
            now()
            os.kill(os.getpid(), signal.SIGKILL)
        module.train_in_group = broken
"""
UNREADABLE = """
    if rank == 1:
        import pasca.datasets
        from search_space.errors import DataError
        def broken(*arguments, **options):
            now()
            raise DataError("cannot read /data/graph.npz: Stale file handle")
        pasca.datasets.load = broken
"""


@pytest.fixture
def mpiexec() -> str:
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("needs mpiexec: pip install mpich")
    return found


def start(
    mpiexec: str, folder: Path, num_ranks: int, arguments: list[str], fault: str = NOTHING
) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM.format(folder=str(folder), fault=fault, arguments=arguments))
    return subprocess.run(
        [mpiexec, "-n", str(num_ranks), sys.executable, str(program)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PASCA_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (RAISES, "rank 1 of 3 on {host}: ValueError: the propagation broke"),
        (KILLED, "rank 2 of 3 on {host} was killed by SIGKILL"),
        (UNREADABLE, "rank 1 of 3 on {host}: cannot read /data/graph.npz: Stale file handle"),
    ],
    ids=["raises", "killed", "unreadable"],
)
def test_a_rank_that_fails_ends_all_and_the_search_goes_on(mpiexec: str, tmp_path: Path, fault: str, said: str) -> None:
    arguments = [*SEARCH, "--out", str(tmp_path / "run"), "--ranks-per-evaluator", "2"]
    done = start(mpiexec, tmp_path, 3, arguments, fault)
    ended = time.time()
    assert done.returncode != 0
    assert said.format(host=os.uname().nodename) in done.stderr
    assert ended - float((tmp_path / "fault").read_text()) < 10
    pids = [int(path.name.rpartition("-")[2]) for path in tmp_path.glob("pid-*")]
    assert len(pids) == 6  # of each rank, the one that waits and the one that works
    while left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.time() - ended < 10, f"{left} are left"
        time.sleep(0.1)
    again = start(mpiexec, tmp_path, 1, [*arguments[:-2], "--resume", "--ranks-per-evaluator", "1"])
    assert again.returncode == 0, again.stderr
    assert "3 complete" in again.stdout


@pytest.mark.slow
def test_two_ranks_search_with_one_thread_each(mpiexec: str, tmp_path: Path) -> None:
    done = start(mpiexec, tmp_path, 2, [*SEARCH, "--out", str(tmp_path / "run")])
    assert done.returncode == 0, done.stderr
    assert "3 complete" in done.stdout
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["threads"] == 1
    assert manifest["ranks"] == 2
    assert manifest["roles"] == {"groups": [[0], [1]], "idle": []}


@pytest.mark.slow
def test_a_mistake_is_said_once_and_no_rank_stays(mpiexec: str, tmp_path: Path) -> None:
    done = start(mpiexec, tmp_path, 2, [*SEARCH, "--out", str(tmp_path / "run"), "--objectives", "speed,val_error"])
    assert done.returncode == 2
    assert done.stderr.count("unknown objective") == 1
