"""One rank needs no MPI library; several do, and say so. What ranks say to one another is tested on ranks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engines.evaluation.communicator import SerialCommunicator
from engines.evaluation.mpi import world

ROOT = Path(__file__).resolve().parents[3]


def test_a_process_alone_is_a_single_rank() -> None:
    assert isinstance(world({}), SerialCommunicator)


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{folder}:{ROOT}", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_one_rank_loads_no_mpi_library(tmp_path: Path) -> None:
    code = "import sys; from engines.evaluation.mpi import world; world(); print('mpi4py' in sys.modules)"
    assert run(code, tmp_path).stdout.strip() == "False"


@pytest.mark.parametrize("broken", ["raise RuntimeError('cannot load MPI library')", "raise ImportError('no libmpi')"])
def test_several_ranks_without_an_mpi_library_are_refused_by_name(tmp_path: Path, broken: str) -> None:
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("")
    (tmp_path / "mpi4py" / "MPI.py").write_text(broken)
    code = (
        "from engines.evaluation.mpi import world\n"
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
        "from engines.evaluation.mpi import world\n"
        "from search_space.errors import ConfigError\n"
        "try: world()\n"
        "except ConfigError as error: print(error)"
    )
    said = run(code, ROOT, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2").stdout
    assert "started 2 ranks, but the MPI library" in said
    assert "use the mpiexec that belongs to that library" in said
