"""The wheel: built, looked into, installed where nothing of the checkout is in reach, and run there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("search_space", "engines", "pasca")
PIP = (sys.executable, "-m", "pip")
OFFLINE = ("--quiet", "--no-deps", "--no-index")

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed; its own words are shown when it does not."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel made from a copy of the sources, so that the checkout stays as it is."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    for name in (*ROOMS, "tests", "benchmarks"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    run(*PIP, "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", out, ".", cwd=source)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with the wheel in it.

    The dependencies are those of the running environment, by path, so that nothing is downloaded. Entries that a
    `.pth` file adds do not have their own `.pth` files read: an editable install of the checkout stays out of reach.
    """
    home = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    python = home / "bin" / "python"
    run(*PIP, "--python", python, "install", *OFFLINE, wheel, cwd=home)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(ROOMS)


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file())
    assert held == {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}


def test_the_wheel_carries_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())


def test_the_installed_packages_come_from_the_wheel(python: Path, tmp_path: Path) -> None:
    code = (
        "import search_space, engines, pasca; print(*(p.__file__ for p in (search_space, engines, pasca)), sep='\\n')"
    )
    for file in run(python, "-c", code, cwd=tmp_path).splitlines():
        assert Path(file).is_relative_to(python.parent.parent)


def test_the_installed_command_shows_its_help(python: Path, tmp_path: Path) -> None:
    shown = run(python.parent / "pasca", "--help", cwd=tmp_path)
    assert "search" in shown
    assert "front" in shown


def test_the_installed_space_has_the_papers_size(python: Path, tmp_path: Path) -> None:
    code = "from search_space.space import SearchSpace; print(len(SearchSpace.paper()))"
    assert run(python, "-c", code, cwd=tmp_path).strip() == "153510"
