"""Small data sets of every format, made on the spot, and the dense arithmetic that tests compare with."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from engines.graph import Graph

Writer = Callable[..., Path]


def _python2(value: Any) -> bytes:
    """A protocol-2 pickle with the names that Python 2's NumPy and SciPy wrote."""
    names = ((b"numpy._core.multiarray", b"numpy.core.multiarray"), (b"scipy.sparse._csr", b"scipy.sparse.csr"))
    content = pickle.dumps(value, protocol=2)
    for new, old in names:
        content = content.replace(new, old)
    return content


@pytest.fixture(scope="session")
def python2_pickle() -> Callable[[Any], bytes]:
    return _python2


@pytest.fixture(scope="session")
def hop() -> Callable[[Graph], np.ndarray]:
    """One augmented hop, done densely in float64: rows of D̃^(-1/2)(A + I)D̃^(-1/2) X."""

    def compute(graph: Graph) -> np.ndarray:
        loops = graph.adjacency.toarray().astype(np.float64) + np.eye(graph.num_nodes)
        left, right = loops.sum(axis=1) ** -0.5, loops.sum(axis=0) ** -0.5
        features = graph.features.toarray() if sparse.issparse(graph.features) else graph.features
        return left[:, None] * loops * right[None, :] @ features.astype(np.float64)

    return compute


@pytest.fixture
def write_planetoid(tmp_path: Path) -> Writer:
    """Writes the six-node set of a test index with a gap: nodes 0-2 in allx, 5 and 3 tested, 4 missing everywhere."""

    def write(name: str = "tiny", folder: Path = tmp_path, **changes: Any) -> Path:
        one_hot = np.eye(2, dtype=np.int32)
        parts: dict[str, Any] = {
            "x": sparse.csr_matrix(np.eye(4, dtype=np.float32)[:2]),
            "y": one_hot[[0, 1]],
            "allx": sparse.csr_matrix(np.eye(4, dtype=np.float32)[:3]),
            "ally": one_hot[[0, 1, 1]],
            "tx": sparse.csr_matrix(np.array([[0, 0, 0, 5], [0, 0, 0, 3]], dtype=np.float32)),
            "ty": one_hot[[0, 1]],
            "graph": {0: [1, 1, 5], 1: [0, 2], 2: [1, 3, 2], 3: [2], 4: [], 5: [0]},
            "test.index": "5\n3\n",
        }
        parts.update({part.replace("test_index", "test.index"): value for part, value in changes.items()})
        for part, value in parts.items():
            path = folder / f"ind.{name}.{part}"
            if isinstance(value, str):
                path.write_text(value)
            elif value is not None:
                path.write_bytes(value if isinstance(value, bytes) else _python2(value))
        return folder

    return write


@pytest.fixture
def write_csr(tmp_path: Path) -> Writer:
    """Writes a csr-npz of three nodes: 0->1 value 1, 1->0 value 2, 0->2, and 2->2."""

    def write(path: Path | None = None, without: tuple[str, ...] = (), **changes: Any) -> Path:
        arrays: dict[str, Any] = {
            "adj_data": np.array([1, 1, 2, 1], dtype=np.float32),
            "adj_indices": np.array([1, 2, 0, 2], dtype=np.int32),
            "adj_indptr": np.array([0, 2, 3, 4], dtype=np.int32),
            "adj_shape": np.array([3, 3]),
            "attr_data": np.ones(3, dtype=np.float32),
            "attr_indices": np.arange(3, dtype=np.int32),
            "attr_indptr": np.arange(4, dtype=np.int32),
            "attr_shape": np.array([3, 3]),
            "labels": np.array([0, 1, 0]),
        }
        kept = {key: value for key, value in {**arrays, **changes}.items() if key not in without}
        target = path or tmp_path / "tiny.npz"
        np.savez(target, **kept)
        return target

    return write


@pytest.fixture
def write_hetero(tmp_path: Path) -> Writer:
    """Writes a hetero-npz: a path of six nodes, six splits; in split 1 node 1 is in train and in test."""

    def write(without: tuple[str, ...] = (), **changes: Any) -> Path:
        train = np.array([[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0]] + [[0, 0, 1, 1, 0, 0]] * 3 + [[1, 0, 0, 0, 0, 1]])
        val = np.array([[0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 0]] + [[0, 0, 0, 0, 1, 1]] * 3 + [[0, 1, 1, 0, 0, 0]])
        test = np.array([[0, 0, 0, 0, 1, 1], [1, 1, 0, 0, 0, 0]] + [[1, 1, 0, 0, 0, 0]] * 3 + [[0, 0, 0, 1, 1, 0]])
        arrays: dict[str, Any] = {
            "node_features": np.eye(6, dtype=np.float32),
            "node_labels": np.array([0, 1, 0, 1, 0, 1]),
            "edges": np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]),
            "train_masks": train.astype(np.uint8),
            "val_masks": val.astype(np.uint8),
            "test_masks": test.astype(np.uint8),
        }
        kept = {key: value for key, value in {**arrays, **changes}.items() if key not in without}
        np.savez(tmp_path / "square.npz", **kept)
        return tmp_path / "square.npz"

    return write


@pytest.fixture
def write_musae(tmp_path: Path) -> Writer:
    """Writes a MUSAE set of four nodes whose features repeat a number; targets are listed in another order."""

    def write(name: str = "tiny", edges: str | None = None, features: Any = None, target: str | None = None) -> Path:
        contents = {
            "edges.csv": edges or "id_1,id_2\n0,1\n1,2\n2,2\n",
            "features.json": features if isinstance(features, str) else json.dumps(
                features or {"2": [0, 4], "0": [1, 1], "1": [], "3": [2]}
            ),
            "target.csv": target or "id,page_name,page_type\n3,d,b\n0,a,a\n2,c,b\n1,e,a\n",
        }  # fmt: skip
        for part, content in contents.items():
            (tmp_path / f"musae_{name}_{part}").write_text(content)
        return tmp_path

    return write


@pytest.fixture
def write_files(tmp_path: Path) -> Callable[[Mapping[str, Any]], Path]:
    """Writes texts, bytes and arrays by file name into one folder."""

    def write(files: Mapping[str, Any]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, np.ndarray):
                np.save(path, content)
            elif isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content)
        return tmp_path

    return write
