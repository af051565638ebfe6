"""linqs: NAME.content (id, features, label) and NAME.cites (cited id, citing id), tab-separated, perhaps gzipped."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

from pasca.datasets.candidates import Candidate
from pasca.datasets.edge_tables import read_edge_table
from pasca.datasets.ids import NodeIndex, ids_of
from pasca.datasets.node_tables import check_ids
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Arcs, Parts
from pasca.datasets.tables import read_table
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError


def find_linqs(folder: Path) -> list[Candidate]:
    """The linqs data sets of a folder."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        stem, _, suffix = path.name.removesuffix(".gz").rpartition(".")
        if suffix in ("content", "cites") and stem:
            found.setdefault(stem, {})[suffix] = path
    return [
        Candidate(f"{name}.content", tuple(files.values()), partial(_read, folder, name, files), (name,))
        for name, files in found.items()
    ]


def _read(folder: Path, name: str, files: dict[str, Path], options: LoadOptions) -> Parts:
    for part in ("content", "cites"):
        if part not in files:
            raise DataError(f"{folder}: a linqs data set has two files, {name}.{part} is missing; copy it there")
    return read_linqs(files["content"], files["cites"], name, options)


def read_linqs(content: Path, cites: Path, name: str, options: LoadOptions) -> Parts:
    """Read one linqs data set; an arc goes from the citing to the cited paper.

    Raises:
        DataError: a file is ragged or damaged, or a citation names a paper without a row.
    """
    table = read_table(TextFile(content), options.encoding, False, lambda _, i: i == 0)
    width = len(table.columns) - 2
    if width < 1:
        raise DataError(f"{content}: expected an id, features and a label in every row, got {width + 2} column(s)")
    ids = ids_of(table.texts(0))
    check_ids(ids, table)
    index = NodeIndex(ids)
    features = np.empty((table.num_rows, width), dtype=np.float32)
    with np.errstate(over="ignore"):
        for column in range(width):
            features[:, column] = table.numbers(column + 1)
    edges = read_edge_table(TextFile(cites), options, header=False)
    arcs, notes = edges.arcs(index, f"the {len(index)} papers of {content}", options.unknown_nodes)
    return Parts(
        name=name,
        source=str(content),
        num_nodes=len(index),
        arcs=Arcs(arcs.targets, arcs.sources, arcs.weights, where=arcs.where),
        features=sparse.csr_array(features),
        labels=table.text_array(width + 1, missing_ok=True),
        node_ids=index.original(),
        notes=tuple(notes),
    )
