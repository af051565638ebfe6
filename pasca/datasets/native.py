"""The project's own folder: a checked Graph as memory-mappable arrays, which opens in milliseconds at any size.

    graph.json                                      what there is, with the size and SHA-256 of every file
    adjacency_{indptr,indices,data}.npy             CSR
    features.npy, or features_{indptr,indices,data}.npy
    labels.npy, node_ids.npy
    split_K_{train,validation,test}.npy             one triple a split

Large folders are opened on trust: sizes, shapes and types are checked, values are not read. `verify` reads everything;
small folders are always verified. Use it for a folder that somebody else made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.graph import Graph, Nodes, Split
from pasca.atomic import new_folder, write_file
from pasca.datasets import features as feature_making
from pasca.datasets.arrays import peek_npy, read_npy
from pasca.datasets.choose_split import check_trainable, choose_split
from pasca.datasets.csr import checked_csr
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import GivenSplit
from search_space.errors import DataError, InputError

DESCRIPTION = "graph.json"
FORMAT, VERSION = "pasca-graph", 1
# Reading this much takes no time worth saving.
ALWAYS_VERIFIED_BYTES = 1 << 24
_CSR = ("indptr", "indices", "data")
_PARTS = ("train", "validation", "test")


def is_native(path: Path) -> bool:
    """Whether a path is a folder of this format."""
    return (path / DESCRIPTION).is_file()


def write_folder(graph: Graph, out: Path, splits: Mapping[str, Split] | None = None) -> None:
    """Write a graph as a folder of this format; it appears whole or not at all.

    Args:
        splits: all splits to store by name; the graph's own is stored in any case, and is the one taken by default.
    Raises:
        RunError: `out` exists already.
        StorageError: it could not be written.
    """
    stored = {**(splits or {}), graph.split.name: graph.split}
    with new_folder(Path(out)) as folder:
        save_csr(folder, "adjacency", graph.adjacency)
        if sparse.issparse(graph.features):
            save_csr(folder, "features", graph.features)
        else:
            np.save(folder / "features.npy", graph.features, allow_pickle=False)
        np.save(folder / "labels.npy", graph.labels, allow_pickle=False)
        if graph.node_ids is not None:
            np.save(folder / "node_ids.npy", graph.node_ids, allow_pickle=False)
        for number, split in enumerate(stored.values()):
            for part in _PARTS:
                np.save(folder / f"split_{number}_{part}.npy", getattr(split, part), allow_pickle=False)
        description = {
            "format": FORMAT,
            "version": VERSION,
            "name": graph.name,
            "num_nodes": graph.num_nodes,
            "num_edges": graph.num_edges,
            "num_features": graph.num_features,
            "sparse_features": bool(sparse.issparse(graph.features)),
            "made_features": graph.made_features,
            "feature_names": graph.feature_names,
            "class_names": graph.class_names,
            "directed": graph.directed,
            "weighted": graph.weighted,
            "num_self_loops": graph.num_self_loops,
            "splits": list(stored),
            "split": graph.split.name,
            "notes": graph.notes,
            "structure_checksum": graph.structure_checksum,
            "checksum": graph.checksum,
            "files": {path.name: file_record(path) for path in sorted(folder.iterdir())},
        }
        write_file(folder / DESCRIPTION, json.dumps(description, indent=1, ensure_ascii=False) + "\n")


def open_folder(folder: Path, options: LoadOptions) -> Graph:
    """Open a folder of this format; arrays stay on disk until they are used.

    Raises:
        DataError: a file is missing, cut off or changed, or an option asks for what the folder cannot give.
    """
    described = _describe(folder)
    _refuse_changed_reading(folder, described, options)
    total = _check_sizes(folder, described["files"])
    checked = options.verify or total <= ALWAYS_VERIFIED_BYTES
    if checked:
        _check_sums(folder, described["files"])
    try:
        graph = _build(folder, described, options, checked=checked)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise DataError(
            f"{folder / DESCRIPTION}: does not describe this folder ({error}); convert the data again"
        ) from None
    if options.for_training and graph.class_names:
        check_trainable(str(folder), graph.class_names, graph.split)
    return graph


def save_csr(folder: Path, name: str, matrix: sparse.csr_array) -> None:
    """Write a CSR matrix as three arrays; `map_csr` opens it."""
    for part in _CSR:
        np.save(folder / f"{name}_{part}.npy", getattr(matrix, part), allow_pickle=False)


def file_record(path: Path) -> dict[str, Any]:
    """Size and checksum of a file."""
    with path.open("rb") as stream:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}


def _describe(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise DataError(f"{path}: cannot be read ({str(error)[:120]}); convert the data again") from None
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise DataError(f"{path}: expected the description of a {FORMAT} folder, which it is not")
    if described.get("version") != VERSION:
        raise DataError(
            f"{path}: version {described.get('version')!r} is not {VERSION}, the one read here; convert again"
        )
    files = described.get("files")
    if not isinstance(files, dict) or not all(isinstance(record, dict) for record in files.values()):
        raise DataError(f"{path}: lists no files; convert the data again")
    return described


def _refuse_changed_reading(folder: Path, described: dict[str, Any], options: LoadOptions) -> None:
    """Refuse options that only the source could answer."""
    for option, asked, stored in (
        ("--directed", options.directed, described.get("directed")),
        ("--weighted", options.weighted is True, described.get("weighted")),
        ("--unweighted", options.weighted is False, not described.get("weighted")),
        ("a features file", options.features_file is not None, False),
    ):
        if asked and not stored:
            raise DataError(f"{folder}: was converted without {option}; convert the source again with it")


def _check_sizes(folder: Path, files: dict[str, Any]) -> int:
    total = 0
    for name, record in files.items():
        path = folder / name
        if Path(name).name != name or not path.is_file():
            raise DataError(f"{folder}: file {name} is missing; convert the data again")
        size = path.stat().st_size
        if size != record.get("bytes"):
            raise DataError(f"{path}: has {size} bytes, expected {record.get('bytes')}; it is cut off or changed")
        total += size
    return total


def _check_sums(folder: Path, files: dict[str, Any]) -> None:
    for name, record in files.items():
        if file_record(folder / name)["sha256"] != record.get("sha256"):
            raise DataError(
                f"{folder / name}: its SHA-256 differs from the one in {DESCRIPTION}; it was changed or damaged"
            )


def _build(folder: Path, described: dict[str, Any], options: LoadOptions, *, checked: bool) -> Graph:
    N, directed = int(described["num_nodes"]), bool(described["directed"])
    known = set(described["files"])

    def array(name: str) -> NDArray[Any]:
        if name not in known:
            raise DataError(f"{folder / DESCRIPTION}: lists no file {name}; convert the data again")
        return map_array(folder / name)

    def matrix(name: str, columns: int) -> sparse.csr_array:
        parts = {part: array(f"{name}_{part}.npy") for part in _CSR}
        if checked:
            checked_csr(parts["data"], parts["indices"], parts["indptr"], (N, columns))
        return _csr(parts, (N, columns))

    adjacency = matrix("adjacency", N)
    made, names, notes = described["made_features"], described["feature_names"], list(described["notes"])
    if options.made_features is not None and options.made_features != made:
        made = options.made_features
        features, names = feature_making.make(made, adjacency, directed=directed)
        notes.append(f"features replaced, as asked: {features.shape[1]} {made} features made from the structure")
    elif described["sparse_features"]:
        features = matrix("features", int(described["num_features"]))
    else:
        features = array("features.npy")
    labels, class_names = array("labels.npy"), tuple(map(str, described["class_names"]))
    own = str(described["split"])
    given: dict[str, GivenSplit] = {
        str(name): partial(_read_split, array, number) for number, name in enumerate(described["splits"])
    }
    if options.split in (None, own) and not options.wants_random_split:
        split = Split.trusted(*given[own](), name=own)
    else:
        split, more = choose_split(given, own, options, labels, class_names, str(folder), None)
        notes += more
    fields: dict[str, Any] = {
        "name": str(described["name"]),
        "adjacency": adjacency,
        "features": features,
        "labels": labels,
        "class_names": class_names,
        "split": split,
        "node_ids": array("node_ids.npy") if "node_ids.npy" in known else None,
        "feature_names": None if names is None else tuple(map(str, names)),
        "directed": directed,
        "weighted": bool(described["weighted"]),
        "num_self_loops": int(described["num_self_loops"]),
        "notes": tuple(map(str, notes)),
        "made_features": made,
    }
    if checked:
        fields["split"] = Split(split.train, split.validation, split.test, split.name)
        return _checked(fields, folder)
    as_stored = split.name == own and made == described["made_features"]
    sums = (str(described["structure_checksum"]), str(described["checksum"])) if as_stored else None
    return Graph.trusted(checksums=sums, **fields)


def _checked(fields: dict[str, Any], folder: Path) -> Graph:
    try:
        adjacency = fields["adjacency"]
        ordered = sparse.csr_array((adjacency.data, adjacency.indices, adjacency.indptr), shape=adjacency.shape)
        return Graph(**{**fields, "adjacency": ordered})
    except InputError as error:
        raise DataError(f"{folder}: {error}; convert the data again") from None


def _read_split(array: Any, number: int) -> tuple[Nodes, Nodes, Nodes]:
    train, validation, test = (array(f"split_{number}_{part}.npy") for part in _PARTS)
    return train, validation, test


def map_array(path: Path) -> NDArray[Any]:
    """Map an array into memory, copy on write; an empty one cannot be mapped and is read."""
    try:
        peek_npy(path)  # what is no header raises anything in NumPy's parser; here it is one error
        mapped = np.load(path, mmap_mode="c", allow_pickle=False)
    except ValueError:
        return read_npy(path)
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: not a complete .npy file ({error}); convert the data again") from None
    return np.asarray(mapped)


def map_csr(folder: Path, name: str, shape: tuple[int, int]) -> sparse.csr_array:
    """Map a CSR matrix into memory.

    Raises:
        DataError: a file of it is missing, cut off, or does not fit the shape.
    """
    try:
        return _csr({part: map_array(folder / f"{name}_{part}.npy") for part in _CSR}, shape)
    except ValueError as error:
        raise DataError(f"{folder / name}: {error}; write the folder again") from None


def _csr(parts: Mapping[str, NDArray[Any]], shape: tuple[int, int]) -> sparse.csr_array:
    """A CSR array over arrays as they are; SciPy's own constructor would read 64-bit indices to narrow them."""
    entries = parts["indices"].size
    if parts["indptr"].shape != (shape[0] + 1,) or parts["data"].shape != (entries,) or parts["indices"].ndim != 1:
        raise ValueError(f"CSR parts of shapes {[part.shape for part in parts.values()]} do not make {shape}")
    matrix = sparse.csr_array(shape, dtype=np.float32)
    matrix.indptr, matrix.indices, matrix.data = parts["indptr"], parts["indices"], parts["data"]
    matrix.has_canonical_format = True
    return matrix
