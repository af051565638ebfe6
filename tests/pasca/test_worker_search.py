"""A search with worker processes and with a hop store: the figures of one process, and what outlives it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pasca
from engines.graph import Graph
from engines.trial import Status
from pasca.manifest import read_manifest
from pasca.results import Study
from search_space.errors import ConfigError, RunError

ROOT = Path(__file__).parents[2]
SPACE = {
    "k_pre": [2], "pre_aggregator": ["augmented"], "message": ["none", "concat"], "k_trans": [1, 2],
    "k_post": [0],
}  # fmt: skip
RECIPE = {"hidden_width": 8, "max_epochs": 8}
QUICK: dict[str, Any] = {
    "space": SPACE, "recipe": RECIPE, "searcher": "random", "retrain": 0, "threads": 1, "evaluations": 4, "repeats": 2,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASCA_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
def test_a_search_in_processes_finds_what_one_process_finds(named_graph: Graph, tmp_path: Path) -> None:
    found = []
    for workers in (1, 2):
        study = pasca.search(named_graph, workers=workers, run=f"with-{workers}", **QUICK)
        assert len(study.history.complete) == 4
        found.append({str(trial.design): trial.values["val_error"] for trial in study.history})
    assert found[0] == found[1]
    assert {trial.details["evaluator"] for trial in study.history} == {0, 1}
    assert read_manifest(tmp_path / "results" / "with-2")["config"]["workers"] == 2


def test_hops_stay_for_later_runs_where_the_user_says(named_graph: Graph, tmp_path: Path) -> None:
    times = []
    for run in ("first", "second"):
        pasca.search(named_graph, hop_store="kept", run=run, **QUICK)
        hops = sorted((tmp_path / "kept").rglob("hop-*"))
        assert len(hops) == 2
        times.append([path.stat().st_mtime_ns for path in hops])
    assert times[0] == times[1], "the second run wrote no hop"
    assert not (tmp_path / "cache" / "hops").exists()
    pasca.search(named_graph, hop_store="cache", run="third", **QUICK)
    assert len(list((tmp_path / "cache" / "hops").rglob("hop-*"))) == 2


def test_nothing_is_kept_unless_asked_for(named_graph: Graph, tmp_path: Path) -> None:
    pasca.search(named_graph, run="plain", **QUICK)
    assert list(tmp_path.rglob("hop-*")) == []


def test_a_run_is_resumed_with_the_hops_that_it_began_with(named_graph: Graph) -> None:
    pasca.search(named_graph, hop_dtype="float16", run="half", **{**QUICK, "evaluations": 2})
    assert Study.open("half").manifest["config"]["hop_dtype"] == "float16"
    with pytest.raises(RunError, match='started with another hop_dtype: "float16" there'):
        pasca.search(named_graph, resume=True, run="half", hop_dtype="float32")
    assert len(pasca.search(named_graph, resume=True, run="half", evaluations=3).history.complete) == 3


def test_settings_of_hops_are_checked() -> None:
    with pytest.raises(ConfigError, match="unknown hop_dtype 'int8'; choose from: float32, float16"):
        pasca.search(hop_dtype="int8")
    with pytest.raises(ConfigError, match="hop_store_limit is a number of bytes"):
        pasca.search(hop_store_limit="lots")


def searching(*options: str) -> subprocess.Popen[str]:
    """A search on digits with two workers that takes far longer than any test."""
    recipe = [word for text in ("max_epochs=1000000", "patience=1000000") for word in ("--recipe", text)]
    command = ["search", "digits", "--run", "a-run", "--workers", "2", "--threads", "1", *recipe, *options]
    return subprocess.Popen(
        [sys.executable, "-m", "pasca", *command, "--searcher", "random", "--space", "space.toml", "--retrain", "0"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Worker processes of a search, once both train."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        found = [int(number) for number in listed.read_text().split()] if listed.exists() else []
        busy = [number for number in found if _cpu_seconds(number) > 2]
        if len(busy) == 2 and Path("results/a-run/study.db").exists():
            return busy
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    raise AssertionError("no workers came to work")


def _cpu_seconds(number: int) -> float:
    try:
        fields = re.sub(r".*\) ", "", Path(f"/proc/{number}/stat").read_text()).split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_space() -> None:
    Path("space.toml").write_text("".join(f"{name} = {values!r}\n" for name, values in SPACE.items()))


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_and_loses_nothing(tmp_path: Path) -> None:
    write_space()
    process = searching()
    workers = workers_of(process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert "go on with: pasca search --run a-run --resume" in said
    assert not any(Path(f"/proc/{number}").exists() for number in workers)
    history = Study.open("a-run").history
    assert {trial.reason for trial in history} == {"interrupted"}
    assert len(history) == 2


@pytest.mark.slow
def test_a_killed_worker_costs_one_trial() -> None:
    write_space()
    process = searching("--evaluations", "4")
    try:
        os.kill(workers_of(process)[0], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            failed = Study.open("a-run").history.with_status(Status.FAILED)
            if failed:
                break
            time.sleep(0.2)
        assert re.fullmatch(r"worker process \d was killed by SIGKILL; .*", str(failed[0].reason))
        assert len(failed) == 1
        assert len(Study.open("a-run").history.running) >= 1
    finally:
        process.kill()
        process.communicate()


def test_stopped_designs_are_recorded_and_never_on_the_front(
    named_graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engines.evaluation import early_stopping

    monkeypatch.setattr(early_stopping, "OPTIMISM", -100.0)  # whatever costs more than a design of the front is stopped
    settings = {**QUICK, "evaluations": 6, "space": {**SPACE, "k_pre": [0, 1, 2]}, "num_initial": 1, "run": "stopping"}
    study = pasca.search(named_graph, early_stopping=True, **settings)
    stopped = study.history.with_status(Status.STOPPED)
    assert stopped
    assert len(study.history.complete) + len(stopped) == study.history.num_evaluations == 6
    assert all(len(trial.details["val_errors"]) == 1 and trial.variances["val_error"] > 0 for trial in stopped)
    assert all(len(trial.details["val_errors"]) == 2 for trial in study.history.complete)
    assert not {row.id for row in study.front().rows} & {trial.number for trial in stopped}
    kept = Study.open("stopping").history.with_status(Status.STOPPED)
    assert [(trial.number, trial.variances) for trial in kept] == [(t.number, t.variances) for t in stopped]


def test_early_stopping_is_refused_where_it_cannot_be_kept(named_graph: Graph) -> None:
    with pytest.raises(ConfigError, match="not deterministic; leave one of the three out"):
        pasca.search(named_graph, early_stopping=True, deterministic=True, workers=2)
    with pytest.raises(ConfigError, match=r"needs pasca's own training .* got an evaluator of your own"):
        pasca.search(named_graph, evaluator=lambda design: (0.1, 0.1), early_stopping=True)
    with pytest.raises(ConfigError, match="got macs, parameters; leave it out"):
        pasca.search(named_graph, objectives="macs,parameters", early_stopping=True)
