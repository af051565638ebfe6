"""Which plain tables of a folder belong together: an edge list with its nodes, features, labels and split.

A file's role is in its name (`edges`, `nodes`, `features`, `labels`), else in its header. What is left of a name
without its role ties files together: train_edges.csv goes with train_nodes.csv.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pasca.datasets.arrays import Npz, peek_npy
from pasca.datasets.candidates import Candidate
from pasca.datasets.feature_files import is_sparse_npz
from pasca.datasets.options import LoadOptions
from pasca.datasets.plain_tables import PlainSet, feature_columns, read_plain
from pasca.datasets.sniff import EDGE_HEADERS, is_number, plain_name, sniff
from pasca.datasets.tables import columns_of
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError

_TEXT = (".csv", ".tsv", ".txt", ".edgelist", ".edges")
_TABLE = (*_TEXT, ".parquet", ".pq")
_ARRAY = (".npy", ".npz", ".mtx")
_ROLES = {
    "edges": ("edges", "edge", "edgelist", "arcs", "links", "link", "adjacency"),
    "nodes": ("nodes", "node", "vertices", "vertex"),
    "features": ("features", "feature", "feats", "feat", "attributes", "x"),
    "labels": ("labels", "label", "classes", "y", "targets", "target"),
}
_PARTS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
_PART_WORDS = {"", "idx", "index", "indices", "ids", "id", "mask", "nodes", "split"}


@dataclass(frozen=True)
class _File:
    """A file with its role and the rest of its name."""

    path: Path
    role: str
    key: str


def find_plain(folder: Path, taken: Iterable[Path]) -> list[Candidate]:
    """The plain-table data sets of a folder.

    Args:
        taken: files that belong to data sets of other formats.
    """
    skip = set(taken)
    files = [found for path in sorted(folder.iterdir()) if path not in skip and (found := _classify(path))]
    edges = [file for file in files if file.role == "edges"]
    return [candidate for file in edges for candidate in _around(file, files, alone=len(edges) == 1)]


def explicit(edges: Path, options: LoadOptions) -> Candidate:
    """The data set of an edge list, with only the companions that the options name."""
    base = edges.parent

    def beside(given: str | Path | None) -> Path | None:
        return None if given is None else resolve(base, given)

    source = options.features_file
    chosen = PlainSet(edges, beside(options.nodes), beside(source), beside(options.labels))
    return Candidate(edges.name, chosen.files, partial(read_plain, chosen))


def resolve(folder: Path, given: str | Path) -> Path:
    """A file named by an option: beside the data, else as the path says.

    Raises:
        DataError: neither exists.
    """
    for path in (folder / given, Path(given)):
        if path.is_file():
            return path
    raise DataError(f"{given}: no such file, neither in {folder} nor from the current folder")


def _classify(path: Path) -> _File | None:
    """The role of a file, or None for one that is no part of a plain-table data set."""
    suffix = TextFile(path).suffix
    if not path.is_file() or suffix not in (*_TABLE, *_ARRAY):
        return None
    stem = path.name.lower().removesuffix(".gz").removesuffix(suffix)
    words = [word for word in re.split(r"[^a-z0-9]+", stem) if word]
    part = _part(words)
    by_content = _role_of_content(path, suffix)
    if by_content is None:
        return None
    if part is not None and by_content in ("list", "unknown"):
        return _File(path, f"split {part}", "")
    for role, names in _ROLES.items():
        found = [word for word in words if word in names]
        if found and (suffix not in _ARRAY or role in ("features", "labels")):
            return _File(path, role, "_".join(word for word in words if word != found[0]))
    return None if by_content in ("list", "unknown") else _File(path, by_content, "_".join(words))


def _part(words: list[str]) -> str | None:
    """The part of a split that an index or mask file's name stands for, as in train_mask.npy."""
    if words and words[0] in _PARTS and "_".join(words[1:]) in _PART_WORDS:
        return _PARTS[words[0]]
    return None


def _role_of_content(path: Path, suffix: str) -> str | None:
    """A role by content; `list` for one column, `unknown` where only the name can tell, None for no part of ours."""
    try:
        if suffix == ".npy":
            shape = peek_npy(path)
            return "features" if len(shape) == 2 and shape[1] > 1 else "unknown"
        if suffix == ".npz":
            with Npz(path) as npz:
                return "features" if is_sparse_npz(set(npz)) else "unknown" if len(npz) == 1 else None
        if suffix == ".mtx":
            return "features"
        names = columns_of(TextFile(path), "latin-1", None)
        if names is not None and len(names) == 1:
            return "list"
        if names is None:
            return "edges" if _is_pairs(path) else "unknown"
    except DataError:
        # Whatever is wrong with it is said when the file is read, if its name makes it a part of the data set.
        return "unknown"
    plain = [plain_name(name) for name in names]
    if tuple(plain[:2]) in EDGE_HEADERS:
        return "edges"
    return "nodes" if any(name in ("id", "nodeid", "label") for name in plain) else "unknown"


def _is_pairs(path: Path) -> bool:
    """Whether a text without a header lists pairs of integers, perhaps with a weight."""
    dialect = sniff(TextFile(path), "latin-1", False)
    return dialect.num_columns in (2, 3) and all(
        len(row) == dialect.num_columns and row[0].isdecimal() and row[1].isdecimal() and is_number(row[-1])
        for row in dialect.sample
    )


def _around(edges: _File, files: list[_File], *, alone: bool) -> list[Candidate]:
    """The data sets of one edge list: one for each file that could give its features."""

    def companions(role: str) -> list[Path]:
        same = [file.path for file in files if file.role == role and file.key == edges.key]
        shared = [file.path for file in files if file.role == role and (alone or not file.key)]
        return same or shared

    nodes, features, labels = companions("nodes"), companions("features"), companions("labels")
    split = {
        part: found[0]
        for part in ("train", "val", "test")
        if len(found := [file.path for file in files if file.role == f"split {part}"]) == 1
    }
    wide = [path for path in nodes if feature_columns(path)]
    narrow = [path for path in nodes if path not in wide]
    base = PlainSet(edges.path, _single(narrow), None, _single(labels), split if {"train", "val"} <= set(split) else {})
    sources = [replace(base, nodes=path) for path in wide] + [replace(base, features=path) for path in features]
    if len(narrow) > 1:
        return [_candidate(replace(base, nodes=path), path, edges) for path in narrow]
    if len(labels) > 1:
        return [_candidate(replace(base, labels=path), path, edges) for path in labels]
    if len(sources) <= 1:
        return [_candidate(sources[0] if sources else base, None, edges)]
    return [_candidate(source, source.features or source.nodes, edges, several=not alone) for source in sources]


def _single(paths: list[Path]) -> Path | None:
    return paths[0] if len(paths) == 1 else None


def _candidate(chosen: PlainSet, source: Path | None, edges: _File, *, several: bool = False) -> Candidate:
    name = edges.path.name if source is None else source.name
    name = f"{edges.path.name}+{name}" if several and source is not None else name
    aliases = [TextFile(Path(name)).path.name.split(".")[0]]
    if source is None and edges.key:
        aliases.append(edges.key)
    return Candidate(name, chosen.files, partial(read_plain, chosen), tuple(aliases))
