"""geom-txt: the geom-gcn layout, two tab-separated texts with a header line, splits beside them.

    out1_graph_edges.txt           node_id <tab> node_id
    out1_node_feature_label.txt    node_id <tab> features, comma-separated <tab> label

Features are zeros and ones, one a column, or, as in the Actor graph, the numbers of the columns that hold a one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pasca.datasets.candidates import Candidate
from pasca.datasets.edge_tables import read_edge_table
from pasca.datasets.geom_splits import find_geom_splits
from pasca.datasets.ids import NodeIndex, ids_of
from pasca.datasets.node_tables import check_ids
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Parts, RawFeatures
from pasca.datasets.tables import Table, read_table
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError

EDGES, NODES = "out1_graph_edges.txt", "out1_node_feature_label.txt"
# A column number beyond this is a mistake, not a feature.
MAX_COLUMN = 2**31 - 2


def find_geom_txt(folder: Path) -> list[Candidate]:
    """The geom-txt data set of a folder."""
    files = (folder / EDGES, folder / NODES)
    if not any(file.is_file() for file in files):
        return []
    return [Candidate(EDGES, files, lambda options: read_geom_txt(folder, options), ("out1_graph_edges", "out1"))]


def read_geom_txt(folder: Path, options: LoadOptions) -> Parts:
    """Read the geom-txt data set of a folder; its own split files are numbered from 0.

    Raises:
        DataError: a file is missing, ragged, or names a node that has no row.
    """
    for name in (EDGES, NODES):
        if not (folder / name).is_file():
            raise DataError(f"{folder}: a geom-gcn data set has {EDGES} and {NODES}; {name} is missing, copy it there")
    table = read_table(TextFile(folder / NODES), options.encoding, True)
    if len(table.columns) != 3:
        raise DataError(
            f"{table.file}: expected 3 tab-separated columns, id, features and label, got {len(table.columns)}"
        )
    ids = ids_of(table.texts(0))
    check_ids(ids, table)
    # Rows come in any order; ids that are numbers, as they are, give the order.
    order = np.arange(len(ids)) if ids.integers is None else np.argsort(ids.integers, kind="stable")
    sorted_ids = ids if ids.integers is None else type(ids)(ids.integers[order])
    index = NodeIndex(sorted_ids)
    features, feature_notes = _features(table, order)
    edges = read_edge_table(TextFile(folder / EDGES), options)
    arcs, notes = edges.arcs(index, f"the {len(index)} nodes of {NODES}", options.unknown_nodes)
    given = find_geom_splits(folder, None, len(index))
    return Parts(
        name=folder.resolve().name,
        source=str(folder / NODES),
        num_nodes=len(index),
        arcs=arcs,
        features=features,
        labels=table.text_array(2)[order],
        splits=given,
        default_split=next(iter(given), None),
        node_ids=index.original(),
        notes=(*notes, *feature_notes),
    )


def _features(table: Table, order: NDArray[np.int64]) -> tuple[RawFeatures, list[str]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table.columns[1].cast(pa.string()).combine_chunks()
    lists = pc.split_pattern(values, ",")
    counts = np.asarray(pc.list_value_length(lists).to_numpy(zero_copy_only=False), dtype=np.int64)
    fields = pc.list_flatten(lists)
    try:
        numbers = np.asarray(fields.cast(pa.int64()).to_numpy(), dtype=np.int64)
    except pa.ArrowInvalid:
        row = next(
            i for i, text in enumerate(values.to_pylist()) if not all(_is_number(field) for field in text.split(","))
        )
        raise DataError(
            f"{table.file}: features are comma-separated non-negative integers, got {values[row].as_py()[:40]!r} in "
            f"{table.where(row)}"
        ) from None
    rows = np.repeat(np.arange(counts.size), counts)
    bad = np.flatnonzero((numbers < 0) | (numbers > MAX_COLUMN))
    if bad.size:
        row = int(rows[bad[0]])
        raise DataError(
            f"{table.file}: {numbers[bad[0]]} in {table.where(row)} is neither a 0 or 1 nor a column number"
        )
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    if np.unique(counts).size == 1 and (numbers <= 1).all():
        matrix = numbers.reshape(counts.size, -1)[order]
        return sparse.csr_array(matrix.astype(np.float32)), []
    ones = np.ones(numbers.size, dtype=np.float32)
    shape = (counts.size, int(numbers.max(initial=0)) + 1)
    listed = sparse.coo_array((ones, (place[rows], numbers)), shape=shape).tocsr()
    listed.sum_duplicates()
    repeated = int(np.count_nonzero(listed.data > 1))
    listed.data[:] = 1
    notes = ["features are listed by column number"]
    return listed, [*notes, f"{repeated} feature(s) listed twice by a node"] if repeated else notes


def _is_number(field: str) -> bool:
    return field.strip().isdecimal() and len(field.strip()) < 19
