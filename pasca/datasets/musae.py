"""MUSAE: an edge csv, a json map from node id to feature numbers, a target csv; also the three in one zip.

    musae_NAME_edges.csv    musae_NAME_features.json    musae_NAME_target.csv

Targets of the Twitch graphs are joined on `new_id`, not on `id`.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from pasca.datasets.candidates import Candidate
from pasca.datasets.edge_tables import read_edge_table
from pasca.datasets.geom_txt import MAX_COLUMN
from pasca.datasets.ids import NodeIndex, ids_of, union
from pasca.datasets.node_tables import check_ids
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Parts, RawFeatures
from pasca.datasets.tables import Table, read_table
from pasca.datasets.text_files import DAMAGE, TextFile, damaged
from search_space.errors import DataError

_FILE = re.compile(r"(?:.*/)?musae_(?P<name>.+)_(?P<part>edges\.csv|features\.json|target\.csv)")
_PARTS = ("edges.csv", "features.json", "target.csv")
# The Twitch graphs share one vocabulary; PTBR does not use its last feature.
TWITCH_FEATURES = 3170
_IDS = ("new_id", "id")
_LABELS = ("mature", "page_type", "ml_target", "label", "target")


def find_musae(folder: Path) -> list[Candidate]:
    """The MUSAE data sets of a folder and of the zip files in it."""
    found = _sets(TextFile(path) for path in sorted(folder.glob("musae_*")))
    for path in sorted(folder.glob("*.zip")):
        found.update(_sets(_members(path)))
    return [
        Candidate(
            name=name,
            files=tuple(dict.fromkeys(file.path for file in files.values())),
            read=partial(_read, folder, name, files),
            aliases=tuple(f"musae_{name}_{part}" for part in files),
        )
        for name, files in found.items()
    ]


def _sets(files: Iterable[TextFile]) -> dict[str, dict[str, TextFile]]:
    found: dict[str, dict[str, TextFile]] = {}
    for file in files:
        match = _FILE.fullmatch(file.path.name if file.member is None else file.member)
        if match:
            found.setdefault(match["name"], {})[match["part"]] = file
    return found


def _members(path: Path) -> list[TextFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [TextFile(path, name) for name in archive.namelist()]
    except (*DAMAGE, OSError, ValueError):  # not a zip of ours; what it is for nobody knows
        return []


def _read(folder: Path, name: str, files: Mapping[str, TextFile], options: LoadOptions) -> Parts:
    missing = [f"musae_{name}_{part}" for part in _PARTS if part not in files]
    if missing:
        raise DataError(f"{folder}: a MUSAE data set has 3 files, {', '.join(missing)} is missing; copy it there")
    return read_musae(files["edges.csv"], files["features.json"], files["target.csv"], name, options)


def read_musae(edges: TextFile, features: TextFile, target: TextFile, name: str, options: LoadOptions) -> Parts:
    """Read one MUSAE data set.

    Raises:
        DataError: a file is damaged, or names a node that has no target row.
    """
    table = read_table(target, options.encoding, True)
    ids = ids_of(table.texts(_column(table, _IDS, options.id_column, "id_column")))
    check_ids(ids, table)
    ordered = union(ids)
    index = NodeIndex(ordered)
    rows = NodeIndex(ids).find(ordered)
    label_column = _column(table, _LABELS, options.label_column, "label_column")
    label = (table.names or ())[label_column]
    described = f"the {len(index)} nodes of {target}"
    arcs, notes = read_edge_table(edges, options).arcs(index, described, options.unknown_nodes)
    matrix, feature_notes = _features(
        features, index, described, TWITCH_FEATURES if "mature" in (table.names or ()) else 1
    )
    return Parts(
        name=name,
        source=str(target),
        num_nodes=len(index),
        arcs=arcs,
        features=matrix,
        labels=table.text_array(label_column, missing_ok=True)[rows],
        node_ids=index.original(),
        notes=(f"labels from column {label!r}", *notes, *feature_notes),
    )


def _column(table: Table, wanted: tuple[str, ...], asked: str | None, option: str) -> int:
    names = table.names or ()
    for name in wanted if asked is None else (asked,):
        if name in names:
            return names.index(name)
    raise DataError(
        f"{table.file}: none of its columns is {' or '.join(wanted if asked is None else (asked,))}; "
        f"name one of {', '.join(names)} as {option}"
    )


def _features(file: TextFile, index: NodeIndex, described: str, least_columns: int) -> tuple[RawFeatures, list[str]]:
    lists = _read_json(file)
    import pyarrow as pa

    nodes = index.find(ids_of(pa.chunked_array([list(lists)], type=pa.string()))) if lists else np.zeros(0, np.int64)
    for place, (node, columns) in enumerate(lists.items()):
        if nodes[place] < 0:
            raise DataError(f"{file}: key {node[:40]!r} is not among {described}")
        if not isinstance(columns, list) or not all(type(c) is int and 0 <= c <= MAX_COLUMN for c in columns):
            raise DataError(f"{file}: key {node[:40]!r} needs a list of feature numbers, got {str(columns)[:60]}")
    counts = [len(columns) for columns in lists.values()]
    numbers = np.fromiter((c for columns in lists.values() for c in columns), dtype=np.int64, count=sum(counts))
    if not numbers.size:
        raise DataError(f"{file}: no node has a feature; expected a map from node id to feature numbers")
    columns = max(int(numbers.max()) + 1, least_columns)
    shape = (len(index), columns)
    ones = np.ones(numbers.size, dtype=np.float32)
    matrix = sparse.coo_array((ones, (np.repeat(nodes, counts), numbers)), shape=shape).tocsr()
    matrix.sum_duplicates()
    repeats = int(numbers.size - matrix.nnz)
    matrix.data[:] = 1
    return matrix, [f"{repeats} repeated feature number(s) merged"] if repeats else []


def _read_json(file: TextFile) -> dict[str, Any]:
    with file.open() as stream:
        try:
            value = json.load(stream)
        except DAMAGE as error:
            raise damaged(file, error) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{file}: not a complete json file ({str(error)[:120]}); fetch it again") from None
    if not isinstance(value, dict):
        raise DataError(f"{file}: expected a json map from node id to feature numbers, got {type(value).__name__}")
    return value
