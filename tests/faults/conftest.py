"""Fixtures of fault tests: a working folder, and commands started in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# `processes` and `forked` are modules beside the tests; the server and what it forks import them, too.
sys.path.insert(0, str(HERE))

from processes import EVALUATIONS, SECONDS, SETTINGS, SPACE, Command, check_whole, start_server  # noqa: E402

Start = Callable[..., Command]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text(SPACE)


@pytest.fixture(scope="session", autouse=True)
def _server(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Stage times are measured once for all."""
    environment = {
        "PASCA_CACHE": str(tmp_path_factory.mktemp("cache")),
        "OMP_NUM_THREADS": "1",  # a process that has a pool of threads must not be forked
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(HERE))),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        start_server()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a command; what is still running at the end of the test is killed."""
    started: list[Command] = []

    def begin(*arguments: str, **options: Any) -> Command:
        started.append(Command(tmp_path, list(arguments), **options))
        return started[-1]

    yield begin
    for command in started:
        command.process.kill()
        command.process.join(SECONDS)


@pytest.fixture
def search(start: Start) -> Start:
    """Start a search as the run `a-run`; further arguments are added."""

    def begin(*arguments: str, **options: Any) -> Command:
        return start("search", "digits", "--run", "a-run", *SETTINGS, *arguments, **options)

    return begin


@pytest.fixture
def resumed(start: Start) -> Callable[..., None]:
    """Resume a run and check that it reaches its total with nothing lost, nothing twice, and opens in Optuna."""

    def go_on(*arguments: str, before: Any = None, total: int = EVALUATIONS) -> Any:
        command = start("search", "--run", "a-run", "--resume", *arguments)
        assert command.code() == 0, command.said
        return check_whole(before, total)

    return go_on
