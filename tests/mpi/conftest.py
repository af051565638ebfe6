"""Tests that run on every rank of `mpiexec -n P pytest tests/mpi`, and on one rank without it.

A test passes where it passes on all ranks: verdicts are gathered after each test, so that all ranks fail together and
go on together. A test that hangs ends the job, with the place where it hung.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from engines.evaluation.communicator import Communicator
from engines.evaluation.mpi import world
from engines.evaluation.propagation import set_threads

SECONDS_PER_TEST = 60

_all = world()
_verdicts = _all.split(0)
assert _verdicts is not None
set_threads(1)
if _all.size > 1:
    # ranks that share pytest's numbered folders remove them from under each other
    os.environ["PYTEST_DEBUG_TEMPROOT"] = _folder = tempfile.mkdtemp(prefix="pasca-rank-")
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)


@pytest.fixture
def ranks() -> Communicator:
    """All ranks."""
    return _all


@pytest.fixture(autouse=True)
def _time_limit() -> Iterator[None]:
    faulthandler.dump_traceback_later(SECONDS_PER_TEST, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report = yield
    assert _verdicts is not None
    verdicts = _verdicts.gather_objects((report.outcome, report.longreprtext))
    failed = [(rank, text) for rank, (outcome, text) in enumerate(verdicts) if outcome == "failed"]
    if failed and report.outcome != "failed":
        report.outcome = "failed"
        report.longrepr = "\n".join(f"rank {rank}:\n{text}" for rank, text in failed)
    return report
