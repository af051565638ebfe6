"""The reader of exported models in an environment that has numpy, scipy and onnxruntime and nothing else.

The environment is a new one; what those three need is linked into it from the running environment, so that nothing is
downloaded. Of pasca it has the two packages that the reader is made of, without the engines.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from engines.graph import Graph
from pasca.model import load_model

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("numpy", "scipy", "onnxruntime")
ABSENT = (
    "torch",
    "engines",
    "numba",
    "sklearn",
    "onnx",
    "safetensors",
    "optuna",
    "botorch",
    "mpi4py",
    "pyarrow",
    "rich",
)

READ = """
import importlib.util, sys
present = [name for name in sys.argv[4].split(",") if importlib.util.find_spec(name)]
assert not present, f"this environment was to be without {present}"
import numpy as np
from scipy import sparse
from pasca.runtime import RuntimeModel
given = np.load(sys.argv[2])
N = given["features"].shape[0]
ones = np.ones(given["indices"].size, dtype=np.float32)
adjacency = sparse.csr_array((ones, given["indices"], given["indptr"]), shape=(N, N))
np.save(sys.argv[3], RuntimeModel.load(sys.argv[1]).predict_proba(adjacency, given["features"]))
"""


def with_requirements(names: tuple[str, ...]) -> Iterator[importlib.metadata.Distribution]:
    """The distributions of some names and of all that they require."""
    left, seen = list(names), set()
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            distribution = importlib.metadata.distribution(name)
            yield distribution
            for text in distribution.requires or ():
                requirement = Requirement(text)
                if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                    left.append(requirement.name)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of such an environment."""
    home = tmp_path_factory.mktemp("alone")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=120)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(home)}))
    for distribution in with_requirements(NEEDED):
        for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(str(distribution.locate_file(name)))
    for package in ("pasca", "search_space"):
        (site / package).symlink_to(ROOT / package)
    return home / "bin" / "python"


@pytest.mark.parametrize("design", ["ppr0.1^2/adaptive/mlp-3/triangle^1", "-/-/mlp-2/augmented^3"])
def test_it_gives_the_probabilities_of_the_model(
    python: Path, export: Callable[..., Path], named_graph: Graph, tmp_path: Path, design: str
) -> None:
    folder = export(design, named_graph, normalise="standard", ensemble=True)
    adjacency = named_graph.adjacency
    np.savez(tmp_path / "given.npz", features=named_graph.features, indptr=adjacency.indptr, indices=adjacency.indices)
    given, found = str(tmp_path / "given.npz"), str(tmp_path / "found.npy")
    command = [str(python), "-I", "-c", READ, str(folder), given, found, ",".join(ABSENT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expected = load_model(folder).predict(named_graph).probabilities
    np.testing.assert_allclose(np.load(found), expected, atol=1e-5)
