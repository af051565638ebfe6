"""Commands of pasca as processes that fault tests start and kill, and what must be true of a run in the end.

A command is forked from a server that has loaded the libraries (`forked`); nothing heavy is imported here.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

SECONDS = 300
"""After which a process counts as hanging; nothing here takes five, but a machine may be busy."""

SPACE = 'k_pre = [0, 1, 2]\npre_aggregator = ["augmented"]\nmessage = ["none"]\nk_trans = [1, 2]\nk_post = [0]\n'
"""Six designs."""
EVALUATIONS = 5
SETTINGS = [
    *("--space", "space.toml", "--evaluations", str(EVALUATIONS), "--num-initial", "2", "--threads", "1"),
    *("--repeats", "2", "--retrain", "2", "--recipe", "max_epochs=3", "--recipe", "hidden_width=4"),
]

_FORKS = multiprocessing.get_context("forkserver")
# A process also imports what the tests were started with.
_FORKS.set_forkserver_preload(["pytest", "forked"])


def start_server() -> None:
    """Start the server with the environment of now, which all commands get."""
    from multiprocessing import forkserver

    forkserver.ensure_running()


def _run(*arguments: Any) -> None:
    """What the process begins with; see `forked.run`."""
    import forked

    forked.run(*arguments)


class Command:
    """One command of pasca in a process of its own."""

    def __init__(
        self,
        folder: Path,
        arguments: list[str],
        stage: tuple[str, int] | None = None,
        fault: str | None = None,
    ) -> None:
        number = len(list(folder.glob("log-*")))
        self.log = folder / f"log-{number}"
        self.log.touch()
        self._told, theirs = _FORKS.Pipe(duplex=False)
        self.process: ForkServerProcess = _FORKS.Process(
            target=_run, args=(arguments, str(folder), str(self.log), stage, theirs, fault)
        )
        self.process.start()
        theirs.close()
        self.heard("started")

    def heard(self, word: str) -> bool:
        """Wait until the process tells something; False when it ended without."""
        assert self._told.poll(SECONDS), f"no {word}: {self.said}"
        try:
            assert self._told.recv() == word
        except EOFError:
            return False
        return True

    def until(self, text: str) -> None:
        """Wait until the process has said something."""
        deadline = time.monotonic() + SECONDS
        while text not in self.said:
            assert self.process.is_alive(), self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.01)

    def signal(self, number: int) -> None:
        """Send the process a signal; one that has come to its end meanwhile gets none."""
        assert self.process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def code(self) -> int:
        """Wait for the end; the exit code, or minus the signal that killed it."""
        self.process.join(SECONDS)
        assert self.process.exitcode is not None, f"hangs: {self.said}"
        return self.process.exitcode

    @property
    def said(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(encoding="utf-8")

    @property
    def last_line(self) -> str:
        """The last line that it has printed."""
        return self.said.splitlines()[-1]


def check_whole(before: Any = None, total: int = EVALUATIONS) -> Any:
    """Check that the run has come to its end; returns its study.

    Args:
        before: its history at an earlier time, whose finished trials must still be there as they were.
    """
    import optuna

    from engines.history import INTERRUPTED
    from pasca.results import Study
    from search_space.classics import CLASSICS

    study = Study.open("a-run")
    history = study.history
    counted = [trial for trial in history if trial.reason != INTERRUPTED and trial.repeats_of is None]
    assert study.status == "finished"
    assert len(counted) == total
    assert all(trial.finished for trial in history)
    designs = [str(trial.design) for trial in counted]
    assert len(set(designs)) == total, f"a design was tried twice: {designs}"
    for trial in before or ():
        if trial.finished:
            assert history[trial.number] == trial
    front = study.front()
    assert {row.design for row in front.rows} | {str(d) for d in CLASSICS.values()} == set(study.retrained())
    assert all(row.test_score is not None for row in front.rows)
    url = study.manifest["config"]["storage"] or "sqlite:///results/a-run/study.db"
    stored = optuna.load_study(study_name="a-run", storage=url).trials
    assert [trial.number for trial in stored] == list(range(len(history)))
    return study
