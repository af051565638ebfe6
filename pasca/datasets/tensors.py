"""Graphs as named tensors: PyTorch Geometric's `Data`, and .pt files saved from one.

    x (N, F)   edge_index (2, E)   y (N,)   edge_weight (E,)   train_mask, val_mask, test_mask (N,) or (N, S)

A .pt file is loaded with weights_only=True. The classes of PyTorch Geometric that it names are replaced by stand-ins
that only keep what was stored, so none of their code runs and the library need not be installed.
"""

from __future__ import annotations

import contextlib
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.graph import Nodes
from pasca.datasets.arrays import refuse_bomb
from pasca.datasets.candidates import Candidate
from pasca.datasets.csr import from_coo
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Arcs, GivenSplit, Parts
from pasca.datasets.splits import nodes_of_list, nodes_of_mask
from pasca.datasets.text_files import DAMAGE
from search_space.errors import DataError

_CLASSES = (
    "torch_geometric.data.data.Data",
    "torch_geometric.data.data.DataEdgeAttr",
    "torch_geometric.data.data.DataTensorAttr",
    "torch_geometric.data.storage.BaseStorage",
    "torch_geometric.data.storage.NodeStorage",
    "torch_geometric.data.storage.EdgeStorage",
    "torch_geometric.data.storage.GlobalStorage",
)
_MASKS = ("train_mask", "val_mask", "test_mask")
_FOREIGN = re.compile(r"(?:GLOBAL|global) (?P<name>[\w.]+)")


class _StandIn:
    """Keeps the state of an object whose class is not loaded."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def is_data(value: object) -> bool:
    """Whether an object is a `Data` of PyTorch Geometric, or made like one."""
    return hasattr(value, "edge_index") and hasattr(value, "to_dict")


def find_pt(folder: Path) -> list[Candidate]:
    """The .pt files of a folder."""
    return [
        Candidate(path.name, (path,), partial(_read, path), (path.stem,))
        for path in sorted(folder.glob("*.pt"))
        if path.is_file()
    ]


def _read(path: Path, _: LoadOptions) -> Parts:
    return read_pt(path)


def read_pt(path: Path) -> Parts:
    """Read a .pt file that holds a `Data`, its `to_dict()`, or the pair that PyTorch Geometric's data sets store.

    Raises:
        DataError: the file names a foreign global, is damaged, or holds something else.
    """
    import torch

    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                refuse_bomb(info, str(path))
    except (*DAMAGE, OSError, ValueError, OverflowError) as error:
        raise DataError(f"{path}: not a complete .pt file of torch 1.6 or later ({error}); save it again") from None
    try:
        with _only_stand_ins():
            value = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        foreign = _FOREIGN.search(str(error))
        if foreign:
            raise DataError(
                f"{path}: the file asks for {foreign['name']}, which is not among the types it may hold; nothing was "
                "run; save the graph as torch.save(data.to_dict(), ...)"
            ) from None
        raise DataError(f"{path}: the .pt file is damaged; save it again") from None
    except (*DAMAGE, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError, RuntimeError,
            TypeError, ValueError) as error:  # fmt: skip
        reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
        raise DataError(f"{path}: the .pt file is damaged ({reason}); save it again") from None
    return read_tensors(_mapping(value, str(path)), path.stem, str(path))


def read_data(data: Any) -> Parts:
    """Read a `Data` object of PyTorch Geometric.

    Raises:
        DataError: it has no edge_index, or parts that do not fit together.
    """
    return read_tensors(data.to_dict(), "data", "the Data object")


@contextlib.contextmanager
def _only_stand_ins() -> Iterator[None]:
    """Let torch load stand-ins and nothing else, whatever the program has allowed before."""
    from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals

    allowed = get_safe_globals()
    clear_safe_globals()
    try:
        add_safe_globals([(_StandIn, name) for name in _CLASSES])
        yield
    finally:
        clear_safe_globals()
        add_safe_globals(allowed)


def _mapping(value: Any, source: str) -> Mapping[str, Any]:
    """The tensors by name, out of whatever they were wrapped in."""
    for _ in range(6):
        if isinstance(value, Mapping) and "edge_index" in value:
            return value
        if isinstance(value, tuple) and value:
            value = value[0]
        elif is_data(value):
            value = value.to_dict()
        elif isinstance(value, _StandIn):
            value = value.state
        elif isinstance(value, Mapping) and ("_store" in value or "_mapping" in value):
            value = value.get("_store", value.get("_mapping"))
        else:
            break
    found = f" with {', '.join(map(str, list(value)[:8]))}" if isinstance(value, Mapping) else ""
    raise DataError(f"{source}: expected a graph with edge_index, got {type(value).__name__}{found}")


def read_tensors(tensors: Mapping[str, Any], name: str, source: str) -> Parts:
    """Read a graph from tensors by name.

    Raises:
        DataError: edge_index is missing or not (2, E), or parts do not fit together.
    """
    arrays = {key: _array(tensors[key], f"{source}: {key}") for key in tensors if _is_tensor(tensors[key])}
    edges = arrays.get("edge_index")
    if edges is None or sparse.issparse(edges):
        raise DataError(
            f"{source}: edge_index is missing or sparse; it holds {', '.join(map(str, tensors)) or 'nothing'}"
        )
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise DataError(f"{source}: edge_index has shape (2, E) of integers, got {edges.dtype} of {edges.shape}")
    N = _num_nodes(tensors, arrays, edges, source)
    outside = np.flatnonzero(((edges < 0) | (edges >= N)).any(axis=0))
    if outside.size:
        column = int(outside[0])
        raise DataError(
            f"{source}: column {column} of edge_index is {edges[:, column].tolist()}, but nodes run from 0 to {N - 1}"
        )
    weights = arrays.get("edge_weight")
    if weights is not None and (sparse.issparse(weights) or weights.size != edges.shape[1]):
        raise DataError(f"{source}: expected one edge_weight for each of {edges.shape[1]} edges, got {weights.shape}")
    features = arrays.get("x")
    if features is not None and features.ndim == 1:
        features = features.reshape(-1, 1)
    given = _splits(arrays, N, source)
    return Parts(
        name=name,
        source=source,
        num_nodes=N,
        arcs=Arcs(
            edges[0].astype(np.int64),
            edges[1].astype(np.int64),
            None if weights is None else weights.reshape(-1).astype(np.float64),
            where=lambda i: f"column {i} of edge_index",
        ),
        features=features,
        labels=arrays.get("y"),
        splits=given,
        default_split=next(iter(given), None),
    )


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "detach") or isinstance(value, np.ndarray)


def _array(value: Any, what: str) -> Any:
    """A tensor as an array, a sparse one as CSR; refuses a view that claims more than is stored."""
    if isinstance(value, np.ndarray):
        return value
    import torch

    tensor = value.detach().cpu()
    if tensor.layout != torch.strided:
        coo = tensor.to_sparse_coo().coalesce()
        if tensor.ndim != 2:
            raise DataError(f"{what}: a sparse tensor has two dimensions here, got {tensor.ndim}")
        rows, columns = coo.indices().numpy()
        try:
            return from_coo(coo.values().float().numpy(), rows, columns, tuple(tensor.shape))
        except ValueError as error:
            raise DataError(f"{what}: not a matrix: {error}") from None
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise DataError(
            f"{what}: a tensor of shape {tuple(tensor.shape)} is stored in too few bytes; clone it and save again"
        )
    return tensor.float().numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _num_nodes(tensors: Mapping[str, Any], arrays: Mapping[str, Any], edges: NDArray[Any], source: str) -> int:
    stated = tensors.get("num_nodes")
    if isinstance(stated, int):
        if stated > max(10_000_000, 100 * edges.size) and "x" not in arrays:
            raise DataError(
                f"{source}: num_nodes is {stated}, but there are only {edges.shape[1]} edges and no features"
            )
        return stated
    for key in ("x", "y", "train_mask"):
        if key in arrays and arrays[key].ndim:
            return int(arrays[key].shape[0])
    raise DataError(f"{source}: neither x nor y nor num_nodes says how many nodes there are; set num_nodes")


def _splits(arrays: Mapping[str, Any], num_nodes: int, source: str) -> dict[str, GivenSplit]:
    indices = [arrays.get(key) for key in ("train_idx", "val_idx", "test_idx")]
    if all(isinstance(index, np.ndarray) for index in indices):
        lists = [nodes_of_list(i, num_nodes, f"{source}: split index") for i in indices if i is not None]
        return {"given": lambda: (lists[0], lists[1], lists[2])}
    masks = {key: arrays[key] for key in _MASKS if key in arrays}
    if not {"train_mask", "val_mask"} <= set(masks):
        return {}
    masks.setdefault("test_mask", np.zeros(masks["train_mask"].shape, dtype=bool))
    shapes = {mask.shape for mask in masks.values()}
    # Some data sets have several training and validation masks and one test mask.
    several = max((mask.shape[1] for mask in masks.values() if mask.ndim == 2), default=1)
    for key, mask in masks.items():
        if (
            mask.ndim not in (1, 2)
            or mask.shape[0] != num_nodes
            or (mask.ndim == 2 and mask.shape[1] not in (1, several))
        ):
            raise DataError(f"{source}: {key} has shape ({num_nodes},) or ({num_nodes}, S), got {mask.shape}")

    def read(number: int) -> tuple[Nodes, Nodes, Nodes]:
        columns = {
            key: mask if mask.ndim == 1 else mask[:, min(number, mask.shape[1] - 1)] for key, mask in masks.items()
        }
        train, validation, test = (nodes_of_mask(columns[key], num_nodes, f"{source}: {key}") for key in _MASKS)
        return train, validation, test

    if all(len(shape) == 1 for shape in shapes):
        return {"given": partial(read, 0)}
    return {str(number): partial(read, number) for number in range(several)}
