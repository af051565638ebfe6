"""Graphs of tensors: Data objects, their dicts, and .pt files that run nothing."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pasca.datasets import load
from search_space.errors import DataError

torch = pytest.importorskip("torch")


def tensors(**changes: Any) -> dict[str, Any]:
    parts = {
        "x": torch.arange(8.0).reshape(4, 2),
        "edge_index": torch.tensor([[0, 1, 1], [1, 0, 2]]),
        "y": torch.tensor([0, 1, 0, 1]),
        "train_mask": torch.tensor([True, True, False, False]),
        "val_mask": torch.tensor([False, False, True, False]),
        "test_mask": torch.tensor([False, False, False, True]),
    }
    return {key: value for key, value in {**parts, **changes}.items() if value is not None}


class Data:
    """Stands in for the library's class of that name, which these tests do not need."""

    def __init__(self, **parts: Any) -> None:
        self.__dict__["_store"] = Storage(parts)

    def __getattr__(self, name: str) -> Any:
        if name == "edge_index":
            return self._store.__dict__["_mapping"]["edge_index"]
        raise AttributeError(name)

    def to_dict(self) -> dict[str, Any]:
        return dict(self._store.__dict__["_mapping"])


class Storage:
    def __init__(self, mapping: dict[str, Any]) -> None:
        self.__dict__["_mapping"] = mapping


@pytest.fixture
def library_data(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes `Data` objects that are pickled under the library's names."""
    for name in (
        "torch_geometric",
        "torch_geometric.data",
        "torch_geometric.data.data",
        "torch_geometric.data.storage",
    ):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    kinds = []
    for module, base, name in (("data", Data, "Data"), ("storage", Storage, "GlobalStorage")):
        full = f"torch_geometric.data.{module}"
        kinds.append(type(name, (base,), {"__module__": full, "__qualname__": name}))
        setattr(sys.modules[full], name, kinds[-1])

    def make(**parts: Any) -> Any:
        made = kinds[0]()
        made.__dict__["_store"] = kinds[1](parts)
        return made

    return make


def check(graph: Any) -> None:
    assert graph.features.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert graph.labels.tolist() == [0, 1, 0, 1]
    assert (graph.num_edges, graph.num_isolated) == (2, 1)
    assert [graph.split.train.tolist(), graph.split.validation.tolist(), graph.split.test.tolist()] == [
        [0, 1],
        [2],
        [3],
    ]


def test_a_data_object_is_read() -> None:
    check(load(Data(**tensors())))


def test_a_pt_file_of_a_data_object_needs_no_library(tmp_path: Path, library_data: Callable[..., Any]) -> None:
    torch.save(library_data(**tensors()), tmp_path / "d.pt")
    for name in [name for name in sys.modules if name.startswith("torch_geometric")]:
        del sys.modules[name]
    check(load(tmp_path / "d.pt"))


@pytest.mark.parametrize("wrap", [lambda parts: parts, lambda parts: (parts, None), lambda parts: (parts, {}, None)])
def test_pt_files_of_dicts_are_read(tmp_path: Path, wrap: Any) -> None:
    torch.save(wrap(tensors()), tmp_path / "d.pt")
    check(load(tmp_path))


def test_several_masks_are_several_splits_by_column() -> None:
    several = torch.tensor([[1, 0], [1, 0], [0, 1], [0, 0]], dtype=torch.bool)
    parts = tensors(train_mask=several, val_mask=several.flip(0), test_mask=torch.zeros(4, dtype=torch.bool))
    with pytest.raises(DataError, match="choose from: 0, 1, random"):
        load(Data(**parts), split="2")
    assert load(Data(**parts), split="0").split.validation.tolist() == [2, 3]


def test_edge_weights_count() -> None:
    graph = load(Data(**tensors(edge_weight=torch.tensor([1.0, 3.0, 0.5]))))
    assert graph.adjacency.toarray()[:3, :3].tolist() == [[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("kind", ["coo", "csr", "bfloat16", "float16", "int64"])
def test_features_of_any_layout_and_type_are_read(kind: str) -> None:
    x = torch.arange(8.0).reshape(4, 2)
    made = {"coo": x.to_sparse, "csr": x.to_sparse_csr}.get(kind, lambda: x.to(getattr(torch, kind)))()
    features = load(Data(**tensors(x=made))).features
    assert np.array_equal(features.toarray() if kind in ("coo", "csr") else features, x.numpy())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_index": None}, r"edge_index is missing|expected a graph"),
        ({"edge_index": torch.tensor([[0, 1], [1, 2], [2, 3]])}, r"shape \(2, E\) of integers, got int64 of \(3, 2\)"),
        ({"edge_index": torch.tensor([[0], [4]])}, r"column 0 of edge_index is \[0, 4\], but nodes run from 0 to 3"),
        ({"edge_weight": torch.ones(2)}, r"one edge_weight for each of 3 edges"),
        ({"edge_weight": torch.tensor([1.0, 0.0, 1.0])}, r"column 1 of edge_index has 0\.0"),
        ({"train_mask": torch.ones(3, dtype=torch.bool)}, r"train_mask has shape \(4,\) or \(4, S\), got \(3,\)"),
        ({"val_mask": torch.tensor([True, False, True, False])}, r"train and validation share 1 node\(s\), .* node 0"),
        ({"y": torch.tensor([0, 1])}, r"one label for each of 4 nodes"),
        ({"x": torch.full((4, 2), float("nan"))}, r"8 value\(s\) that are NaN"),
        ({"x": torch.zeros(1, 1).expand(4, 2)}, r"stored in too few bytes"),
        ({"x": None, "y": None, "train_mask": None}, r"set num_nodes"),
        ({"x": None, "num_nodes": 10**12}, r"num_nodes is 1000000000000, but there are only 3 edges"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(
            Data(**tensors(**changes)) if "edge_index" not in changes or changes["edge_index"] is not None else _Empty()
        )


class _Empty:
    edge_index = None

    def to_dict(self) -> dict[str, Any]:
        return {"x": torch.ones(2, 2)}


class Shout:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("CANARY EXECUTED",)


def test_a_foreign_global_is_named_and_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({**tensors(), "extra": Shout()}, tmp_path / "d.pt")
    with pytest.raises(DataError, match=r"d\.pt: the file asks for .*print") as caught:
        load(tmp_path / "d.pt")
    assert "CANARY" not in capsys.readouterr().out
    assert "weights_only" not in str(caught.value)


def test_what_the_program_allows_elsewhere_is_not_allowed_here(tmp_path: Path) -> None:
    torch.save({**tensors(), "extra": Shout()}, tmp_path / "d.pt")
    with torch.serialization.safe_globals([print]):
        with pytest.raises(DataError, match="asks for"):
            load(tmp_path / "d.pt")
        assert print in torch.serialization.get_safe_globals()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_a_truncated_file_is_one_line(tmp_path: Path, share: float) -> None:
    torch.save(tensors(), tmp_path / "whole.pt")
    content = (tmp_path / "whole.pt").read_bytes()
    (tmp_path / "whole.pt").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match=r"whole\.pt") as caught:
        load(tmp_path / "whole.pt")
    assert "\n" not in str(caught.value)


def test_a_file_of_something_else_says_what_it_holds(tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(2)}, tmp_path / "d.pt")
    with pytest.raises(DataError, match="expected a graph with edge_index, got dict with weight"):
        load(tmp_path / "d.pt")
