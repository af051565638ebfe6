"""Who may know whom: the imports of every file are read, not run, and held against the table below.

The table is an allow-list. A file is judged by the longest `where` that its path begins with; the standard library is
open to all, except for what `never` lists. A new entry is a decision about the project's shape, not a formality.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {
    "torch",
    "botorch",
    "gpytorch",
    "optuna",
    "numba",
    "pyarrow",
    "mpi4py",
    "sklearn",
    "onnx",
    "onnxruntime",
    "plotly",
}


@dataclass(frozen=True)
class Room:
    """What the files under one path may import.

    Attributes:
        where: a path prefix, relative to the root.
        may_use: dotted prefixes of modules outside the standard library; `*` for all.
        never: dotted prefixes that stay closed even so; `open` also closes the built-in function.
    """

    where: str
    may_use: tuple[str, ...]
    never: tuple[str, ...] = ()


FILES = ("open", "io", "pathlib", "shutil", "tempfile", "sqlite3", "glob")
OUTSIDE = (*FILES, "os", "time", "datetime", "random", "socket", "subprocess", "threading", "multiprocessing")
COMPUTING = ("numpy", "scipy", "torch", "numba", "llvmlite", "sklearn", "pymetis")
READING = ("search_space.graph_operators", "search_space.local_structure", "search_space.errors")
RECORDS = ("engines.trial", "engines.history", "engines.objectives", "engines.pooling")

ROOMS = (
    Room("search_space/", ("search_space",), OUTSIDE),
    # Lists of designs and their codes are integer arrays.
    Room("search_space/space.py", ("search_space", "numpy"), OUTSIDE),
    Room("search_space/extended.py", ("search_space", "numpy"), OUTSIDE),
    Room("search_space/product.py", ("search_space", "numpy"), OUTSIDE),
    Room("search_space/encoding.py", ("search_space", "numpy"), OUTSIDE),
    Room("search_space/graph_operators/", ("search_space", "numpy", "scipy"), OUTSIDE),
    Room("search_space/message_operators/", ("search_space", "torch"), OUTSIDE),
    Room("search_space/local_structure.py", ("search_space", "numpy", "scipy"), OUTSIDE),
    Room("search_space/adjacency_layer.py", ("search_space", "torch"), OUTSIDE),
    Room("search_space/transform.py", ("search_space", "torch"), OUTSIDE),
    Room("search_space/assembly.py", ("search_space", "torch"), OUTSIDE),
    Room("engines/", ("search_space", "engines.graph", *RECORDS, "numpy", "scipy")),
    # The one module that knows both engines, through their interfaces.
    Room("engines/loop.py", ("search_space", *RECORDS, "engines.search.base", "engines.evaluation.base", "numpy")),
    Room(
        "engines/search/",
        (
            "search_space",
            *RECORDS,
            "engines.search",
            "numpy",
            "scipy",
            "torch",
            "botorch",
            "gpytorch",
            "linear_operator",
        ),
        FILES,
    ),
    # The evolutionary baseline is Optuna's.
    Room("engines/search/nsga2.py", ("search_space", *RECORDS, "engines.search", "numpy", "optuna"), FILES),
    Room("engines/search/wide_nsga2.py", ("search_space", *RECORDS, "engines.search", "numpy", "optuna"), FILES),
    Room(
        "engines/evaluation/",
        ("search_space", "engines.graph", *RECORDS, "engines.evaluation", *COMPUTING),
    ),
    Room(
        "engines/evaluation/mpi.py",
        ("search_space", "engines.graph", *RECORDS, "engines.evaluation", "numpy", "mpi4py"),
    ),
    Room("pasca/", ("*",), ("mpi4py", "botorch", "gpytorch", "numba", "benchmarks", "tests")),
    # What an exported model needs on the machine that runs it.
    Room("pasca/model_folder.py", (*READING, "search_space.architecture", "numpy", "scipy")),
    Room(
        "pasca/runtime.py",
        ("pasca.model_folder", *READING, "numpy", "scipy", "onnxruntime"),
    ),
    Room("benchmarks/", ("*",), ("tests",)),
)

PRINTERS = ("pasca/cli.py", "pasca/commands/", "benchmarks/")
STREAMS = ("sys.stdout", "sys.stderr", "typer.echo", "typer.secho", "click.echo", "click.secho")


def violations(root: Path) -> list[str]:
    """Lines `path:line: what is wrong` for every file below the rooms of `root`, in order."""
    found = []
    for path in python_files(root):
        where = path.relative_to(root).as_posix()
        room = max((room for room in ROOMS if where.startswith(room.where)), key=lambda room: len(room.where))
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=where)
        for line, message in (*_wrong_imports(tree, where, room), *_wrong_calls(tree, where, room)):
            found.append(f"{where}:{line}: {message}")
    return found


def python_files(root: Path) -> list[Path]:
    """Every Python file of the rooms, sorted."""
    tops = sorted({room.where.split("/")[0] for room in ROOMS})
    return [path for top in tops for path in sorted((root / top).rglob("*.py"))]


def _wrong_imports(tree: ast.AST, where: str, room: Room) -> Iterator[tuple[int, str]]:
    for line, name in _imported_names(tree, where):
        top = name.split(".")[0]
        if _under(name, room.never):
            yield line, f"imports {name}, which {room.where} leaves to others"
        elif top not in sys.stdlib_module_names and "*" not in room.may_use and not _under(name, room.may_use):
            yield line, f"imports {name}; {room.where} may use: {', '.join(room.may_use)}"
        if room.where == "benchmarks/" and any(_private(part) for part in name.split(".")):
            yield line, f"imports the private name {name}; benchmarks use public names"


def _wrong_calls(tree: ast.AST, where: str, room: Room) -> Iterator[tuple[int, str]]:
    may_print = where.startswith(PRINTERS)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "print" and not may_print:
                yield node.lineno, "calls print; return the value, the command line prints"
            if node.func.id == "open" and "open" in room.never:
                yield node.lineno, f"opens a file, which {room.where} leaves to others"
        if isinstance(node, ast.Attribute) and not may_print and ast.unparse(node) in STREAMS:
            yield node.lineno, f"uses {ast.unparse(node)}; return the value, the command line prints"


def _imported_names(tree: ast.AST, where: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of all imports in the file: anywhere in it, under TYPE_CHECKING and by import_module too."""
    package = where.removesuffix(".py").removesuffix("/__init__").split("/")
    if not where.endswith("/__init__.py"):
        package = package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from . import x` has level 1 and means the file's own package; each further dot goes one up.
            base = package[: len(package) - (node.level - 1)] if node.level else []
            prefix = ".".join((*base, node.module) if node.module else base)
            yield from ((node.lineno, f"{prefix}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "__import__",
            "import_module",
            "importlib.import_module",
        ):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def _under(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def _private(part: str) -> bool:
    return part.startswith("_") and not part.startswith("__")


def test_imports_point_one_way_and_only_the_command_line_prints() -> None:
    assert len(python_files(ROOT)) > 10, "the rooms were not found"
    assert violations(ROOT) == []


@pytest.mark.parametrize(
    ("where", "source", "message"),
    [
        ("search_space/space.py", "from engines.trial import Trial", "imports engines.trial.Trial"),
        ("search_space/space.py", "import pasca", "imports pasca"),
        ("search_space/architecture.py", "import numpy as np", "imports numpy"),
        ("search_space/message_operators/mean.py", "import scipy.sparse", "imports scipy.sparse"),
        ("search_space/graph_operators/augmented.py", "import torch", "imports torch"),
        ("search_space/space.py", "import time", "imports time"),
        ("search_space/space.py", "def f(p):\n    return open(p)", "opens a file"),
        ("engines/graph.py", "from engines.search.base import Searcher", "imports engines.search.base.Searcher"),
        ("engines/graph.py", "def f():\n    import pasca.cli", "imports pasca.cli"),
        ("engines/loop.py", "from engines.search.ehvi import EHVI", "imports engines.search.ehvi.EHVI"),
        ("engines/search/ehvi.py", "from engines.evaluation import local", "imports engines.evaluation.local"),
        ("engines/search/ehvi.py", "from ..evaluation import local", "imports engines.evaluation.local"),
        ("engines/search/__init__.py", "from .. import evaluation", "imports engines.evaluation"),
        ("engines/search/ehvi.py", "from engines.graph import Graph", "imports engines.graph.Graph"),
        ("engines/evaluation/local.py", "import engines.search.base", "imports engines.search.base"),
        ("engines/evaluation/local.py", "import engines.loop", "imports engines.loop"),
        ("engines/evaluation/local.py", "from mpi4py import MPI", "imports mpi4py.MPI"),
        ("engines/evaluation/local.py", "import importlib\nimportlib.import_module('mpi4py')", "imports mpi4py"),
        ("engines/evaluation/local.py", "if TYPE_CHECKING:\n    import botorch", "imports botorch"),
        ("pasca/studies.py", "import mpi4py", "imports mpi4py"),
        ("pasca/runtime.py", "import torch", "imports torch"),
        ("pasca/runtime.py", "from search_space.space import SearchSpace", "imports search_space.space.SearchSpace"),
        ("pasca/studies.py", "print('done')", "calls print"),
        ("engines/loop.py", "import sys\nsys.stderr.write('done')", "uses sys.stderr"),
        ("pasca/report.py", "import typer\ntyper.echo('done')", "uses typer.echo"),
        ("benchmarks/bench_search.py", "from engines.graph import _update", "imports the private name"),
    ],
)
def test_a_planted_violation_is_caught_once(tmp_path: Path, where: str, source: str, message: str) -> None:
    _plant(tmp_path, where, source)
    (found,) = violations(tmp_path)
    assert found.startswith(f"{where}:")
    assert message in found


@pytest.mark.parametrize(
    ("where", "source"),
    [
        (
            "search_space/graph_operators/augmented.py",
            "import numpy as np\nfrom scipy import sparse\nfrom . import base",
        ),
        ("engines/evaluation/mpi.py", "from mpi4py import MPI"),
        ("engines/loop.py", "from engines.search.base import Searcher\nfrom engines.evaluation.base import Evaluator"),
        ("engines/search/ehvi.py", "import botorch\nfrom engines.history import History\nimport math"),
        ("pasca/cli.py", "import engines.loop\nprint('done')"),
        ("pasca/commands/front.py", "import sys\nsys.stdout.write('done')"),
        ("pasca/runtime.py", "from search_space.graph_operators import GRAPH_OPERATORS\nimport onnxruntime"),
    ],
)
def test_what_the_table_allows_is_not_reported(tmp_path: Path, where: str, source: str) -> None:
    _plant(tmp_path, where, source)
    assert violations(tmp_path) == []


@pytest.mark.parametrize("package", ["search_space", "engines", "pasca", "pasca.reporting"])
def test_importing_a_package_loads_no_heavy_library(package: str) -> None:
    code = f"import sys, {package}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []


def _plant(root: Path, where: str, source: str) -> None:
    path = root / where
    path.parent.mkdir(parents=True)
    path.write_text(source + "\n", encoding="utf-8")
