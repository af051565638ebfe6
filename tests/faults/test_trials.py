"""Trials that return NaN, raise, run out of memory or never end; and signals in every stage."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import SETTINGS

from engines.trial import Status
from pasca.results import Study
from search_space.classics import CLASSICS

ROOT = Path(__file__).parents[2]


def test_trials_that_return_nan_or_raise_are_failures_with_a_reason(search: Any) -> None:
    command = search("--evaluations", "6", "--retrain", "0", fault="nan_and_raise")
    assert command.code() == 0, command.said
    failed = {str(trial.design): trial.reason for trial in Study.open("a-run").history.with_status(Status.FAILED)}
    assert failed == {
        "augmented^1/none/mlp-1/-": "val_error is not finite: nan",
        "augmented^1/none/mlp-2/-": "val_error is not finite: nan",
        "augmented^2/none/mlp-1/-": "ValueError: the second hop is broken",
        "augmented^2/none/mlp-2/-": "ValueError: the second hop is broken",
    }
    assert "2 complete, 4 failed" in command.said
    assert "Traceback" not in command.said


def test_a_trial_that_runs_out_of_memory_says_so_and_the_search_goes_on(start: Any, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text('k_pre = [0]\nmessage = ["none"]\nk_trans = [1, 2, 3]\nk_post = [0]\n')
    command = start(
        *("search", "digits", "--run", "a-run", "--space", "space.toml", "--evaluations", "3", "--threads", "1"),
        *("--repeats", "2", "--retrain", "0", "--recipe", "hidden_width=1500", "--recipe", "max_epochs=1"),
        fault="little_memory",
    )
    assert command.code() == 0, command.said
    history = Study.open("a-run").history
    assert [str(trial.design) for trial in history.with_status(Status.FAILED)] == ["-/-/mlp-3/-"]
    assert re.fullmatch(r"out of memory: [\d.]+ MB could not be had", str(history.with_status(Status.FAILED)[0].reason))
    assert len(history.complete) == 2


SITE = """
import sys, time
if any("worker" in argument for argument in sys.orig_argv):
    from engines.evaluation import worker
    inner = worker._report
    def report(trainer, order):
        if "^1" in order.design:
            time.sleep(3600)
        return inner(trainer, order)
    worker._report = report
"""


@pytest.mark.slow
def test_a_trial_that_never_ends_is_ended_and_the_search_goes_on(tmp_path: Path) -> None:
    """Started as a user starts it. That a worker hangs at some designs is put into it when Python starts."""
    (tmp_path / "sitecustomize.py").write_text(SITE)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PASCA_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pasca", "search", "digits", "--run", "a-run", *SETTINGS, "--searcher", "random",
         "--retrain", "0", "--evaluations", "6", "--trial-timeout", "10s"],
        capture_output=True, text=True, env=environment, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    history = Study.open("a-run").history
    failed = history.with_status(Status.FAILED)
    assert {str(trial.design) for trial in failed} == {"augmented^1/none/mlp-1/-", "augmented^1/none/mlp-2/-"}
    assert {trial.reason for trial in failed} == {"not done after the 10 s that a trial may take"}
    assert len(history.complete) == 4


@pytest.mark.parametrize(
    ("number", "code", "stage", "entry"),
    [
        (signal.SIGINT, 130, "suggestion", 4),
        (signal.SIGTERM, 143, "record", 3),
        (signal.SIGINT, 130, "retraining", 5),
        (signal.SIGTERM, 143, "training", 2),
    ],
)
def test_a_signal_in_any_stage_ends_the_search_with_one_line_and_it_goes_on(
    number: int, code: int, stage: str, entry: int, search: Any, resumed: Any
) -> None:
    command = search(stage=(stage, entry), fault="slow")
    assert command.heard(stage)
    command.signal(number)
    assert command.code() == code, command.said
    assert "go on with: pasca search --run a-run --resume" in command.last_line
    before = Study.open("a-run")
    assert before.status == "interrupted"
    assert before.history.running == []
    study = resumed(before=before.history)
    assert len(study.retrained()) == len({row.design for row in study.front().rows} | set(map(str, CLASSICS.values())))


def test_a_second_process_is_refused_with_the_first_ones_number(search: Any, start: Any) -> None:
    first = search(fault="hung", stage=("training", 1))
    assert first.heard("training")
    for again in (search(), start("search", "--run", "a-run", "--resume")):
        assert again.code() == 2
        assert f"is in use by process {first.process.pid} on {os.uname().nodename}; wait for it" in again.last_line
