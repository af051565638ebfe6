"""A search that is killed at any instant loses the trial in flight at most, and goes on.

Six instants by default, one a stage; PASCA_FAULTS=50 in the environment tries so many.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

INSTANTS = int(os.environ.get("PASCA_FAULTS", "6"))
LONGEST = {
    "start": 0.4,
    "suggestion": 0.1,
    "training": 0.05,
    "record": 0.02,
    "retraining": 0.3,
    "export": 0.2,
}
"""Seconds after the beginning of a stage in which it may be killed: a bit more than it takes."""
ENTRIES = {"suggestion": 5, "training": 5, "record": 5, "retraining": 9}
"""How often a stage comes in one search, at least."""


@pytest.mark.parametrize("number", range(INSTANTS))
def test_a_search_killed_at_any_instant_is_resumed_to_its_total(
    number: int, search: Callable[..., Any], start: Callable[..., Any], resumed: Callable[..., Any], tmp_path: Path
) -> None:
    chance = random.Random(number)
    stage = list(LONGEST)[number % len(LONGEST)]
    if stage == "export":
        killed_export(chance, search, start, tmp_path)
        return
    entry = None if stage == "start" else (stage, chance.randint(1, ENTRIES[stage]))
    command = search(stage=entry)
    if entry is not None:
        assert command.heard(stage), command.said
    time.sleep(chance.uniform(0, LONGEST[stage]))
    command.signal(signal.SIGKILL)
    assert command.code() in (-signal.SIGKILL, 0), command.said
    assert "Traceback" not in command.said
    if not Path("results/a-run/manifest.json").exists():
        again = search()  # nothing was begun: the same command starts afresh, whatever is left
        assert again.code() == 0, again.said
        before = None
    else:
        before = history_if_any()
    study = resumed(before=before)
    assert len(study.history) <= 6, "one trial was lost at most"
    assert study.front().num_test_readings <= 2
    assert not list(Path("results/a-run").glob(".pasca-*"))


def history_if_any() -> Any:
    """The history of a run that was killed; None where its record was not made yet."""
    from pasca.results import Study
    from search_space.errors import RunError

    try:
        study = Study.open("a-run")
    except RunError as error:
        if "is missing" in str(error) or "has no study" in str(error):
            return None
        raise
    assert study.status in ("interrupted", "finished")
    study.front()
    return study.history


def killed_export(chance: random.Random, search: Callable[..., Any], start: Callable[..., Any], tmp_path: Path) -> None:
    assert search().code() == 0
    command = start("export", "a-run", "--out", "model", stage=("export", 1))
    assert command.heard("export"), command.said
    time.sleep(chance.uniform(0, LONGEST["export"]))
    command.signal(signal.SIGKILL)
    command.code()
    if Path("model").exists():
        assert Path("model/model.json").exists(), "a model appears whole"
        shutil.rmtree("model")
    again = start("export", "a-run", "--out", "model")
    assert again.code() == 0, again.said
    assert Path("model/model.json").exists()
    assert not list(tmp_path.glob(".pasca-*"))


@pytest.mark.slow
def test_a_command_killed_while_it_loads_leaves_nothing(tmp_path: Path) -> None:
    """Started as a user starts it, not forked: killed before it has read its arguments."""
    command = [sys.executable, "-m", "pasca", "search", "digits", "--run", "a-run"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as process:
        time.sleep(random.Random(0).uniform(0, 0.5))
        process.kill()
        output, _ = process.communicate()
    assert output == b""
    assert not (tmp_path / "results").exists()
