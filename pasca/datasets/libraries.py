"""Data sets of other libraries by name, where the user has them: pyg:Planetoid/Cora, ogb:ogbn-arxiv.

Downloading and unpacking is theirs; files go to the folder that PASCA_CACHE names, else ~/.cache/pasca.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from engines.graph import Nodes
from pasca.datasets.parts import Arcs, Parts
from pasca.datasets.splits import nodes_of_list
from pasca.datasets.tensors import read_tensors
from search_space.errors import DataError

PREFIXES = ("pyg:", "ogb:")


def is_library_name(data: str) -> bool:
    """Whether a name asks for another library's data set."""
    return data.startswith(PREFIXES)


def read_library(data: str) -> Parts:
    """Read a data set of another library.

    Raises:
        DataError: the library is not installed, has no such data set, or fails to get it.
    """
    prefix, _, name = data.partition(":")
    return _read_pyg(name) if prefix == "pyg" else _read_ogb(name)


def _cache(library: str) -> Path:
    return Path(os.environ.get("PASCA_CACHE") or Path.home() / ".cache" / "pasca") / library


def _library(module: str, package: str, data: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        raise DataError(f"{data} needs the package {package}, which cannot be imported ({error}); install it") from None


def _read_pyg(name: str) -> Parts:
    data = f"pyg:{name}"
    datasets = _library("torch_geometric.datasets", "torch_geometric", data)
    kind, _, member = name.partition("/")
    known = [known for known in getattr(datasets, "__all__", dir(datasets)) if known[:1].isupper()]
    if kind not in known:
        raise DataError(f"{data}: torch_geometric has no data set class {kind!r}; it has {', '.join(known)}")
    root = str(_cache("pyg") / kind)
    try:
        dataset = getattr(datasets, kind)(root, member) if member else getattr(datasets, kind)(root)
        graph = dataset[0]
    except Exception as error:  # whatever the library does to fetch and unpack, its failure is the user's to read
        raise DataError(f"{data}: torch_geometric could not read it ({type(error).__name__}: {error})") from error
    return read_tensors(graph.to_dict(), member or kind, data)


def _read_ogb(name: str) -> Parts:
    data = f"ogb:{name}"
    module = _library("ogb.nodeproppred", "ogb", data)
    try:
        dataset = module.NodePropPredDataset(name=name, root=str(_cache("ogb")))
        graph, labels = dataset[0]
        given = dataset.get_idx_split()
    except Exception as error:  # as above
        raise DataError(f"{data}: ogb could not read it ({type(error).__name__}: {error})") from error
    N = int(graph["num_nodes"])
    edges = np.asarray(graph["edge_index"], dtype=np.int64)
    parts: list[Any] = [
        nodes_of_list(np.asarray(given[key]), N, f"{data}: {key}") for key in ("train", "valid", "test")
    ]

    def split() -> tuple[Nodes, Nodes, Nodes]:
        return parts[0], parts[1], parts[2]

    return Parts(
        name=name,
        source=data,
        num_nodes=N,
        arcs=Arcs(edges[0], edges[1], where=lambda i: f"edge {i}"),
        features=graph.get("node_feat"),
        labels=np.asarray(labels),
        splits={"given": split},
        default_split="given",
    )
