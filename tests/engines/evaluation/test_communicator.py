"""One rank needs no MPI library; several do, and say so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engines.evaluation.communicator import SerialCommunicator, Traffic, failures_end_the_job, world
from engines.evaluation.messages import Tag
from search_space.errors import PascaError, ShapeError

ROOT = Path(__file__).resolve().parents[3]


def test_one_rank_talks_to_itself_alone() -> None:
    alone = world({})
    array = np.array([1.0, 2.0])
    np.testing.assert_array_equal(alone.sum(array), array)
    assert alone.exchange([array])[0] is array
    assert alone.gather(array)[0] is array
    assert alone.gather_objects("x") == ["x"]
    assert alone.split(None) is None
    assert isinstance(alone.split(3), SerialCommunicator)
    assert alone.receive_bytes(Tag.REQUEST) is None
    assert alone.traffic == Traffic()


def test_one_rank_cannot_send_to_another() -> None:
    with pytest.raises(ShapeError, match="there is 1 rank, so none has the number 1"):
        world({}).send_object("x", 1, Tag.ORDER)


def test_an_error_of_a_single_rank_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError), failures_end_the_job(world({})):
        raise ZeroDivisionError


def test_a_single_rank_aborts_by_raising() -> None:
    with pytest.raises(PascaError, match="out of luck"):
        world({}).abort("out of luck")


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{folder}:{ROOT}", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_one_rank_loads_no_mpi_library(tmp_path: Path) -> None:
    code = "import sys; from engines.evaluation.communicator import world; world(); print('mpi4py' in sys.modules)"
    assert run(code, tmp_path).stdout.strip() == "False"


@pytest.mark.parametrize("broken", ["raise RuntimeError('cannot load MPI library')", "raise ImportError('no libmpi')"])
def test_several_ranks_without_an_mpi_library_are_refused_by_name(tmp_path: Path, broken: str) -> None:
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("")
    (tmp_path / "mpi4py" / "MPI.py").write_text(broken)
    code = (
        "from engines.evaluation.communicator import world\n"
        "from search_space.errors import ConfigError\n"
        "try: world()\n"
        "except ConfigError as error: print(error)"
    )
    said = run(code, tmp_path, PMI_RANK="0", PMI_SIZE="2").stdout
    assert "a launcher started 2 ranks, but no MPI library can be loaded through mpi4py" in said
    assert "pip install mpi4py mpich" in said


def test_a_launcher_of_another_library_is_refused() -> None:
    pytest.importorskip("mpi4py")
    code = (
        "from engines.evaluation.communicator import world\n"
        "from search_space.errors import ConfigError\n"
        "try: world()\n"
        "except ConfigError as error: print(error)"
    )
    said = run(code, ROOT, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2").stdout
    assert "started 2 ranks, but the MPI library" in said
    assert "use the mpiexec that belongs to that library" in said


def test_traffic_is_measured_from_a_moment_on() -> None:
    traffic = Traffic(sent_bytes=10, num_messages=1)
    before = traffic.copy()
    traffic.sent_bytes += 5
    assert traffic.since(before) == Traffic(sent_bytes=5)
