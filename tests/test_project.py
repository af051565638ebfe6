"""The project's own papers agree with one another: dependencies, pins, packages, make targets, licence, change log."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("search_space", "engines", "pasca")
MAX_TRACKED_BYTES = 600 * 1024
# Libraries that a user may have and that pasca then understands; each import is inside a try of its own.
OPTIONAL = {"networkx", "ogb", "pandas", "torch_geometric"}


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    """Pinned version by normalised package name."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            found[canonicalize_name(name)] = version
    return found


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout: lists the tracked files")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return [name for name in done.stdout.split("\0") if name]


def requirements(pyproject: dict[str, Any], *, extras: bool) -> list[Requirement]:
    lines = list(pyproject["project"]["dependencies"])
    if extras:
        lines += [line for group in pyproject["project"]["optional-dependencies"].values() for line in group]
    return [Requirement(line) for line in lines]


def test_every_package_folder_is_listed_for_the_build(pyproject: dict[str, Any]) -> None:
    folders = {path.parent.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    assert sorted(pyproject["tool"]["setuptools"]["packages"]) == sorted(".".join(folder.parts) for folder in folders)


def test_every_dependency_has_a_pin_within_its_range(pyproject: dict[str, Any], pins: dict[str, str]) -> None:
    for requirement in requirements(pyproject, extras=True):
        pin = pins.get(canonicalize_name(requirement.name))
        assert pin is not None, f"constraints.txt has no line for {requirement.name}"
        assert requirement.specifier.contains(pin), f"{requirement} does not admit the tested version {pin}"


def test_everything_that_the_dependencies_bring_is_pinned(pyproject: dict[str, Any], pins: dict[str, str]) -> None:
    waiting = requirements(pyproject, extras=False)
    seen: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if canonicalize_name(requirement.name) in seen:
            continue
        seen.add(canonicalize_name(requirement.name))
        for line in metadata.requires(requirement.name) or ():
            below = Requirement(line)
            asked = requirement.extras or {""}
            if below.marker is None or any(below.marker.evaluate({"extra": extra}) for extra in asked):
                waiting.append(below)
    # CUDA builds of torch bring libraries whose versions torch itself fixes.
    loose = {name for name in seen - pins.keys() if not name.startswith(("nvidia-", "cuda-", "triton"))}
    assert loose == set()


def test_every_imported_library_is_a_declared_dependency(pyproject: dict[str, Any]) -> None:
    declared = {canonicalize_name(requirement.name) for requirement in requirements(pyproject, extras=False)}
    providers = metadata.packages_distributions()
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        for library in _imported_libraries(path) - set(ROOMS) - OPTIONAL:
            sources = {canonicalize_name(name) for name in providers.get(library, ())}
            assert sources & declared, f"{path.relative_to(ROOT)} imports {library}, which pyproject.toml does not list"


def test_the_installed_versions_are_the_pinned_ones(pyproject: dict[str, Any], pins: dict[str, str]) -> None:
    if not Path(sys.prefix).is_relative_to(ROOT):
        pytest.skip("needs the project's own .venv: `make test`")
    for requirement in requirements(pyproject, extras=False):
        installed = metadata.version(requirement.name).split("+")[0]
        assert installed == pins[canonicalize_name(requirement.name)], requirement.name


@pytest.mark.parametrize("paper", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_that_a_paper_shows_exists(paper: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    shown = set(re.findall(r"^ {4}make ([a-z]+)", (ROOT / paper).read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert shown, f"{paper} shows no make command"
    assert shown <= targets


def test_contributing_fits_a_screen() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 40


def test_the_change_log_knows_the_version_or_an_unreleased_part(pyproject: dict[str, Any]) -> None:
    heads = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert heads
    assert heads[0] in ("Unreleased", pyproject["project"]["version"])


def test_the_licence_file_is_the_declared_one(pyproject: dict[str, Any]) -> None:
    assert pyproject["project"]["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License\n")


def test_no_tracked_file_is_large_or_built(tracked: list[str]) -> None:
    present = [ROOT / name for name in tracked if (ROOT / name).is_file()]
    assert [path.name for path in present if path.stat().st_size > MAX_TRACKED_BYTES] == []
    built = {".pyc", ".so", ".o", ".whl", ".pt", ".pth", ".safetensors", ".onnx", ".pkl", ".db"}
    assert [path.name for path in present if path.suffix in built] == []


def test_decisions_are_numbered_without_gaps(tracked: list[str]) -> None:
    numbers = sorted(int(Path(name).name[:4]) for name in tracked if name.startswith("docs/decisions/"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_no_test_folder_hides_a_package(tracked: list[str]) -> None:
    assert [name for name in tracked if name.startswith("tests/") and name.endswith("__init__.py")] == []


def _imported_libraries(path: Path) -> set[str]:
    """Top-level names outside the standard library that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names - sys.stdlib_module_names
