"""Data sets of other libraries by name; small modules take the libraries' place."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pasca.datasets import load
from search_space.errors import DataError

EDGES = np.array([[0, 1, 1], [1, 0, 2]])


class Planetoid:
    def __init__(self, root: str, name: str = "") -> None:
        if name == "Broken":
            raise OSError("no network")
        self.root, self.name = root, name

    def __getitem__(self, _: int) -> Any:
        parts = {"x": np.ones((3, 2)), "edge_index": EDGES, "y": np.array([0, 1, 0])}
        return types.SimpleNamespace(to_dict=lambda: parts)


class NodePropPredDataset:
    def __init__(self, name: str, root: str) -> None:
        self.root = root

    def __getitem__(self, _: int) -> Any:
        labels = np.array([[0.0], [1.0], [np.nan]])
        return {"num_nodes": 3, "edge_index": EDGES, "node_feat": np.ones((3, 2), np.float32)}, labels

    def get_idx_split(self) -> dict[str, np.ndarray]:
        return {"train": np.array([0]), "valid": np.array([1]), "test": np.array([2])}


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pyg, ogb = types.ModuleType("torch_geometric.datasets"), types.ModuleType("ogb.nodeproppred")
    pyg.Planetoid, pyg.__all__ = Planetoid, ["Planetoid"]  # type: ignore[attr-defined]
    ogb.NodePropPredDataset = NodePropPredDataset  # type: ignore[attr-defined]
    for module in (pyg, ogb):
        monkeypatch.setitem(sys.modules, module.__name__.split(".")[0], types.ModuleType("parent"))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("PASCA_CACHE", str(tmp_path))


def test_a_pyg_data_set_is_read_by_class_and_name() -> None:
    graph = load("pyg:Planetoid/Cora")
    assert (graph.name, graph.num_edges, graph.num_features) == ("Cora", 2, 2)


def test_an_ogb_data_set_brings_its_split() -> None:
    graph = load("ogb:ogbn-arxiv")
    assert graph.labels.tolist() == [0, 1, -1]
    assert [graph.split.train.tolist(), graph.split.validation.tolist(), graph.split.test.tolist()] == [[0], [1], []]


def test_an_unknown_class_lists_what_exists() -> None:
    with pytest.raises(DataError, match="no data set class 'Planetoids'; it has Planetoid"):
        load("pyg:Planetoids/Cora")


def test_a_failure_of_the_library_is_one_line() -> None:
    with pytest.raises(
        DataError, match=r"pyg:Planetoid/Broken: torch_geometric could not read it \(OSError: no network\)"
    ):
        load("pyg:Planetoid/Broken")


@pytest.mark.parametrize(("data", "package"), [("pyg:Planetoid/Cora", "torch_geometric"), ("ogb:ogbn-arxiv", "ogb")])
def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, data: str, package: str) -> None:
    for name in ("torch_geometric.datasets", "ogb.nodeproppred"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DataError, match=f"needs the package {package}, which cannot be imported"):
        load(data)
