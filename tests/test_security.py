"""Nothing that comes from outside is run: read off the source of the three packages, and off the files they make."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from engines.evaluation.hop_cache import HopCache
from engines.evaluation.hop_store import HopStore

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(path for room in ("search_space", "engines", "pasca") for path in (ROOT / room).rglob("*.py"))

RUNS_WHAT_IT_READS = {
    "pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.loads", "shelve.open", "joblib.load", "eval", "exec",
    "compile", "runpy.run_path", "os.system", "os.popen", "tempfile.mktemp", "yaml.load",
}  # fmt: skip
LEAVES_THE_FOLDER = {"extract", "extractall", "unpack_archive"}
ALLOWED = {
    # What ranks of one job, of one user, say to one another.
    ("engines/evaluation/mpi.py", "pickle.loads"),
}


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call of a file with the name of what is called: `pickle.loads`, `eval`; of a method of its own, `.eval`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute):
                owner = function.value.id if isinstance(function.value, ast.Name) else ""
                yield f"{owner}.{function.attr}", node
            elif isinstance(function, ast.Name):
                yield function.id, node


def keyword(call: ast.Call, name: str) -> object:
    """The constant that a call gives a keyword; None where it gives none."""
    return next((k.value.value for k in call.keywords if k.arg == name and isinstance(k.value, ast.Constant)), None)


def test_nothing_is_called_that_runs_what_it_reads() -> None:
    found = {(path.relative_to(ROOT).as_posix(), name) for path in SOURCES for name, _ in calls(path)}
    assert {(path, name) for path, name in found if name in RUNS_WHAT_IT_READS} == ALLOWED


def test_no_member_of_an_archive_becomes_a_file() -> None:
    names = {name.rpartition(".")[2] for path in SOURCES for name, _ in calls(path)}
    assert names.isdisjoint(LEAVES_THE_FOLDER)


def test_numpy_and_torch_load_numbers_only() -> None:
    loads = [(path, name, call) for path in SOURCES for name, call in calls(path) if name in ("np.load", "torch.load")]
    assert len(loads) >= 3
    for path, name, call in loads:
        if name == "np.load":
            assert keyword(call, "allow_pickle") is False, path
        else:
            assert keyword(call, "weights_only") is True, path


def test_no_command_goes_through_a_shell() -> None:
    assert [path for path in SOURCES for _, call in calls(path) if keyword(call, "shell")] == []


def test_the_scan_sees_what_it_looks_for(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("import pickle\npickle.loads(b'')\neval('1')\nnp.load(p, allow_pickle=True)\nmodel.eval()\n")
    assert [name for name, _ in calls(path)] == ["pickle.loads", "eval", "np.load", "model.eval"]
    assert [keyword(call, "allow_pickle") for _, call in calls(path)][2] is True


@pytest.mark.parametrize("where", ["cache", "store"])
def test_temporary_hops_are_for_their_owner_only(where: str, tmp_path: Path) -> None:
    if where == "store":
        store = HopStore.temporary(tmp_path)  # its folder goes with it
        assert store.folder.stat().st_mode & 0o077 == 0
        return
    matrix, features = sparse.csr_array(np.eye(3, dtype=np.float32)), np.ones((3, 2), np.float32)
    with HopCache({"a": matrix}, features, 0, tmp_path) as hops:
        hops.hop("a", 0.0, 1)
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
