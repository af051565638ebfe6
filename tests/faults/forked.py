"""What a forked process of a fault test runs: the command line, with something broken and its stages told.

Not a test. A server that has loaded the libraries once forks a process for each search, which then is a process like
any other and can be killed; that saves the seconds in which each would load them again.
"""

from __future__ import annotations

import datetime
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import engines.search.ehvi
import pasca
import pasca.cli
import pasca.databases
import pasca.export
import pasca.onnx_export
import pasca.searching
from engines.evaluation.design_training import DesignTrainer

STAGES: Mapping[str, tuple[Any, str]] = {
    "suggestion": (engines.search.ehvi.EHVISearcher, "ask"),
    "training": (DesignTrainer, "train"),
    "record": (pasca.studies.StudyRecord, "finish"),
    "retraining": (pasca.studies.StudyRecord, "add_retrained"),
    "export": (pasca.export, "export_design"),
}
"""Stages that a process tells the entry of, and the call in which each begins."""


def run(
    arguments: Sequence[str],
    folder: str,
    log: str,
    stage: tuple[str, int] | None,
    told: Connection,
    fault: str | None,
) -> None:
    """Run one command as `pasca` does.

    Args:
        folder: where to work.
        log: file for stdout and stderr.
        stage: name and number of the entry that is told on `told`.
        fault: name of a function of this module that breaks something.
    """
    os.chdir(folder)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if fault is not None:
        globals()[fault]()
    if stage is not None:
        _tell(*stage, told)
    told.send("started")
    code = pasca.cli.main(list(arguments))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _tell(stage: str, number: int, told: Connection) -> None:
    owner, name = STAGES[stage]
    inner, entries = getattr(owner, name), 0

    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal entries
        entries += 1
        if entries == number:
            told.send(stage)
        return inner(*arguments, **options)

    setattr(owner, name, call)


def _around_training(around: Callable[[str, Callable[[], Any]], Any]) -> None:
    inner = DesignTrainer.train

    def train(self: DesignTrainer, design: Any, seeds: Sequence[int]) -> Any:
        return around(str(design), lambda: inner(self, design, seeds))

    DesignTrainer.train = train  # type: ignore[method-assign]


def slow() -> None:
    """Every training takes a quarter of a second more."""

    def around(design: str, train: Callable[[], Any]) -> Any:
        time.sleep(0.25)
        return train()

    _around_training(around)


def hung() -> None:
    """No training ends."""
    _around_training(lambda design, train: time.sleep(3600))


def slow_at_third() -> None:
    """The third training of the process takes five seconds more."""
    trainings = 0

    def around(design: str, train: Callable[[], Any]) -> Any:
        nonlocal trainings
        trainings += 1
        if trainings == 3:
            time.sleep(5)
        return train()

    _around_training(around)


def hung_at_third() -> None:
    """The third training of the process does not end."""
    trainings = 0

    def around(design: str, train: Callable[[], Any]) -> Any:
        nonlocal trainings
        trainings += 1
        if trainings == 3:
            time.sleep(3600)
        return train()

    _around_training(around)


def nan_and_raise() -> None:
    """Designs of one hop have an error of NaN, those of two raise."""

    def around(design: str, train: Callable[[], Any]) -> Any:
        if "^2" in design:
            raise ValueError("the second hop is broken")
        trained = train()
        if "^1" in design:
            trained.val_errors[:] = float("nan")
        return trained

    _around_training(around)


def little_memory() -> None:
    """While designs with three layers train, the process may grow by 5 MB only: a real limit, and real allocations."""

    def around(design: str, train: Callable[[], Any]) -> Any:
        if "mlp-3" not in design:
            return train()
        before = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm", encoding="ascii") as sizes:
            pages = int(sizes.read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 5_000_000, before[1]))
        try:
            return train()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    _around_training(around)


def impatient() -> None:
    """A locked database is waited for less long than two minutes."""
    pasca.databases._PATIENCE_SECONDS = 1.0
    pasca.databases._LOCK_SECONDS = 0.1


def clock_jumps_back() -> None:
    """Every look at the calendar is an hour before the last one. Faked: a real jump would move the machine's clock."""
    looks = 0

    class Jumping(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            nonlocal looks
            looks += 1
            return datetime.datetime.fromtimestamp(real() - 3600 * looks, tz)

    real = time.time
    time.time = lambda: real() - 3600 * looks
    for module in list(sys.modules.values()):
        if getattr(module, "datetime", None) is datetime.datetime:
            module.datetime = Jumping  # type: ignore[attr-defined]


def _load_all() -> None:
    """Search and export once, so that whatever is loaded on first use is there in every process that is forked."""
    with tempfile.TemporaryDirectory() as folder:
        study = pasca.search(
            out=f"{folder}/run",
            space={"k_pre": [0, 1, 2], "pre_aggregator": ["augmented"], "message": ["none"], "k_post": [0]},
            evaluations=4,
            num_initial=2,
            repeats=2,
            retrain=1,
            threads=1,
            recipe={"max_epochs": 3, "hidden_width": 4},
        )
        study.export(out=f"{folder}/model")


_load_all()
