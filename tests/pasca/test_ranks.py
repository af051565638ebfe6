"""What several ranks change in a search, and that one rank needs no MPI library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engines.evaluation.communicator import SerialCommunicator
from pasca.config import RunConfig
from pasca.preparing import prepare
from pasca.ranks import Ranks, group_settings
from search_space.errors import ConfigError, InputError

ROOT = Path(__file__).resolve().parents[2]


def of_size(size: int) -> Ranks:
    everybody = SerialCommunicator()
    everybody.size = size
    return Ranks(everybody)


def test_a_rank_has_one_thread_unless_a_number_was_asked_for() -> None:
    assert of_size(2).settle(RunConfig(), custom=False).threads == 1
    assert of_size(2).settle(RunConfig(threads=3), custom=False).threads == 3
    assert of_size(1).settle(RunConfig(), custom=False).threads is None


@pytest.mark.parametrize(
    ("size", "settings", "custom", "message"),
    [
        (2, {"workers": 2}, False, "2 ranks evaluate side by side, so --workers 2 has no place"),
        (2, {}, True, "an evaluator of one's own works in one process"),
        (2, {"ranks_per_evaluator": 3}, False, "has 1 to 2 of the 2 ranks, got 3"),
        (1, {"ranks_per_evaluator": 2}, False, "start with mpiexec -n P"),
        (1, {"group": {"plan": "rows", "color": 1}}, False, "unknown field 'color' of group; choose from: plan"),
        (1, {"group": {"consistency": "sync"}}, False, "unknown consistency 'sync'"),
        (1, {"group": {"compression": "8bit"}}, False, "unknown compression '8bit'"),
        (1, {"group": {"servers": 0}}, False, "servers is a whole number of at least 1, got 0"),
        (1, {"group": {"plan": "diagonal"}}, False, "unknown plan 'diagonal'; choose from: auto, rows, features"),
        (1, {"group": {"partition": "random"}}, False, "unknown partition 'random'"),
    ],
)
def test_what_does_not_go_together_is_refused(size: int, settings: dict[str, Any], custom: bool, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        of_size(size).settle(RunConfig(**settings), custom=custom)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ranks_per_evaluator": 3}, "is prepared for evaluators of 2 ranks, not 3"),
        ({"ranks_per_evaluator": 2, "group": {"partition": "metis"}}, "is partitioned by hash, not metis"),
        ({"ranks_per_evaluator": 2, "load": {"made_features": "svd"}}, "was prepared with its features"),
    ],
)
def test_what_a_graph_was_not_prepared_for_is_refused_at_once(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    prepare("digits", str(tmp_path / "graph"), 2, "hash", {})
    data = str(tmp_path / "graph")
    with pytest.raises(InputError, match=message):
        of_size(4).settle(RunConfig(data=data, **settings), custom=False)
    of_size(4).settle(RunConfig(data=data, ranks_per_evaluator=2), custom=False)
    of_size(4).settle(RunConfig(data=data), custom=False)


def test_the_table_group_is_what_ranks_share_work_by() -> None:
    table = {"plan": "rows", "partition": "metis", "consistency": "ssp", "staleness": 2, "servers": 2, "batch_rows": 64}
    settings = group_settings(RunConfig(group=table, memory=1 << 30))
    assert (settings.plan, settings.partition, settings.batch_rows) == ("rows", "metis", 64)
    assert (settings.servers.consistency.bound, settings.servers.num_servers) == (2, 2)
    assert (settings.memory_bytes, settings.buffer_bytes) == (1 << 30, 1 << 27)


@pytest.fixture
def without_mpi(tmp_path: Path) -> dict[str, str]:
    """An environment in which mpi4py is installed and finds no MPI library."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("")
    (tmp_path / "mpi4py" / "MPI.py").write_text("raise RuntimeError('cannot load MPI library')")
    return {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}


def test_without_an_mpi_library_only_a_distributed_search_is_refused(
    without_mpi: dict[str, str], tmp_path: Path
) -> None:
    def pasca(*arguments: str, **ranks: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pasca", *arguments],
            cwd=tmp_path,
            env={**without_mpi, **ranks},
            capture_output=True,
            text=True,
            timeout=120,
        )

    assert pasca("--help").returncode == 0
    refused = pasca("search", "digits", PMI_RANK="0", PMI_SIZE="2")
    assert refused.returncode == 2
    assert "no MPI library can be loaded through mpi4py (cannot load MPI library)" in refused.stderr
    assert list(tmp_path.glob("results/*")) == []
