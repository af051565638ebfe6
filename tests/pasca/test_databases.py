"""A record in PostgreSQL: a real server, private to these tests, in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest

import pasca
from engines.history import INTERRUPTED
from engines.trial import Outcome, Status
from pasca.cli import main
from pasca.databases import open_url
from pasca.results import Study
from search_space.architecture import Architecture
from search_space.errors import RunError, StorageError

QUICK: dict[str, Any] = {"searcher": "random", "retrain": 0, "run": "a-run"}


class Server:
    """A PostgreSQL server that belongs to nobody else; run by another user where this one is root, which it refuses."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.do("initdb", "--auth=trust", "--username=pasca", "--no-sync")
        self.start()

    def do(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs on its folder."""
        command = [str(self._programs / program), "-D", str(self._folder), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/")
        assert done.returncode == 0, done.stdout

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -k {self._folder}"
        self.do("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop it at once, as a crash of its machine would."""
        self.do("pg_ctl", "-w", "-m", "immediate", "stop")

    @property
    def url(self) -> str:
        """Of its database, as a user writes it."""
        return f"postgresql://pasca@127.0.0.1:{self.port}/postgres"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("pg_ctl")
    if not found and on_path is None:
        missing = "needs a PostgreSQL server: apt-get install postgresql"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    programs = Path(on_path).parent if not found else found[-1].parent
    # Not below pytest's own folder, which the server's user may not enter.
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    server = Server(programs, folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASCA_CACHE", str(tmp_path / "cache"))
    open_url(server.url)  # makes the tables of a new database
    for study in optuna.get_all_study_names(storage=open_url(server.url)):
        optuna.delete_study(study_name=study, storage=open_url(server.url))


def cost(design: Architecture) -> Outcome:
    """More steps cost more and err less."""
    seconds = 0.001 * (1 + design.k_pre + 11 * design.k_post + 121 * design.k_trans)
    return Outcome({"val_error": 0.5 / (1 + seconds), "inference_seconds": seconds}, {"val_error": 1e-4})


def test_a_search_is_recorded_resumed_shown_and_opened_in_optuna(server: Server) -> None:
    pasca.search(evaluator=cost, evaluations=3, storage=server.url, **QUICK)
    study = pasca.search(evaluator=cost, evaluations=5, run="a-run", resume=True)
    assert len({trial.design for trial in study.history.complete}) == 5
    assert not Path("results/a-run/study.db").exists()
    again = Study.open("a-run")
    assert [(t.design, t.values) for t in again.history] == [(t.design, t.values) for t in study.history]
    stored = optuna.load_study(study_name="a-run", storage=open_url(server.url))
    assert [trial.number for trial in stored.trials] == [0, 1, 2, 3, 4]
    assert stored.trials[0].values == [again.history[0].values[name] for name in ("val_error", "inference_seconds")]


def test_the_command_line_shows_a_run_in_a_server(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--recipe", "max_epochs=3", "--recipe", "hidden_width=4", "--repeats", "2", "--retrain", "0"]
    Path("space.toml").write_text('k_pre = [0, 1]\npre_aggregator = ["augmented"]\nmessage = ["none"]\nk_post = [0]\n')
    search = ["search", "digits", "--run", "a-run", "--searcher", "random", "--space", "space.toml", "-n", "3", "-q"]
    for command in (
        [*search, "--storage", server.url, *settings],
        ["front", "a-run"],
        ["runs"],
        ["report", "a-run", "--out", "page.html"],
        ["export", "a-run", "--out", "model"],
    ):
        assert main(command) == 0, capsys.readouterr().err
    assert Path("page.html").exists()
    assert Path("model/model.json").exists()


def test_values_that_are_not_finite_are_failures_there_too(server: Server) -> None:
    values = iter(
        [(0.3, 0.01), (0.2, 0.02), (float("nan"), 0.01), (0.1, 0.04), (float("inf"), 0.01)] + [(0.4, 0.1)] * 3
    )
    pasca.search(evaluator=lambda design: next(values), evaluations=8, storage=server.url, **QUICK)
    history = Study.open("a-run").history
    assert [trial.number for trial in history.with_status(Status.FAILED)] == [2, 4]
    assert len(history.complete) == 6


def test_a_server_that_is_restarted_in_mid_search_is_waited_for(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[Architecture] = []

    def evaluate(design: Architecture) -> Outcome:
        calls.append(design)
        if len(calls) == 3:
            server.stop()
            threading.Timer(2.0, server.start).start()
        return cost(design)

    study = pasca.search(evaluator=evaluate, evaluations=6, storage=server.url, **QUICK)
    assert len(study.history.complete) == len(calls) == 6
    assert [trial.design for trial in Study.open("a-run").history] == calls
    assert "trying again" in caplog.text


def test_a_server_that_stays_away_ends_the_search_with_a_line_and_loses_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pasca.databases._PATIENCE_SECONDS", 1.0)
    calls: list[Architecture] = []

    def evaluate(design: Architecture) -> Outcome:
        calls.append(design)
        if len(calls) == 3:
            server.stop()
        return cost(design)

    try:
        with pytest.raises(StorageError, match=r"cannot write the database of --storage: .*connection"):
            pasca.search(evaluator=evaluate, evaluations=6, storage=server.url, **QUICK)
        with pytest.raises(RunError, match=r"cannot open the database postgresql://pasca@127.0.0.1.*connection"):
            Study.open("a-run")
    finally:
        server.start()
    study = pasca.search(evaluator=cost, run="a-run", resume=True)
    assert len({trial.design for trial in study.history.complete}) == 6
    assert [trial.reason for trial in study.history.with_status(Status.FAILED)] == [INTERRUPTED]


def test_several_processes_work_on_one_run(server: Server) -> None:
    """Two threads with connections and places of their own, as two processes have; test_joining.py has processes."""
    together, studies = threading.Barrier(2, timeout=60), []

    def evaluate(design: Architecture) -> Outcome:
        time.sleep(0.05)
        return cost(design)

    def join() -> None:
        together.wait()
        studies.append(pasca.search(evaluator=evaluate, run="a-run", join=True))

    def begun(design: Architecture) -> Outcome:
        if together.n_waiting == 1:
            together.wait()
        return evaluate(design)

    thread = threading.Thread(target=join)
    thread.start()
    studies.append(pasca.search(evaluator=begun, evaluations=30, storage=server.url, **QUICK))
    thread.join(60)
    assert len(studies) == 2
    stored = optuna.load_study(study_name="a-run", storage=open_url(server.url)).trials
    assert len(stored) == 30
    assert len({trial.user_attrs["pasca"]["design"] for trial in stored}) == 30
    assert len({trial.user_attrs["pasca"]["process"] for trial in stored}) == 2


def test_runs_of_the_same_name_do_not_mix(server: Server) -> None:
    pasca.search(evaluator=cost, evaluations=1, storage=server.url, **QUICK)
    shutil.rmtree("results/a-run")
    with pytest.raises(RunError, match="has a study of the name 'a-run' already"):
        pasca.search(evaluator=cost, evaluations=1, storage=server.url, **QUICK)


def test_an_address_where_nobody_answers_is_refused_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(RunError, match=r"cannot open the database postgresql://me@127.0.0.1:1/x: .*refused"):
        open_url("postgresql://me:secret@127.0.0.1:1/x")
    assert time.monotonic() - began < 30
