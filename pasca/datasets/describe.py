"""The data summary: what was read, as a mapping and as lines."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from engines.graph import Graph


def summary(graph: Graph) -> dict[str, Any]:
    """What a graph holds, in JSON types.

    `edges` counts distinct pairs of nodes without self-loops, also for a directed graph, which has `arcs` beside it.
    """
    return {
        "name": graph.name,
        "nodes": graph.num_nodes,
        "edges": _num_pairs(graph),
        "arcs": int(graph.adjacency.nnz) if graph.directed else None,
        "features": graph.num_features,
        "sparse_features": bool(sparse.issparse(graph.features)),
        "made_features": graph.made_features,
        "classes": graph.num_classes,
        "class_names": list(graph.class_names),
        "labelled": graph.num_labelled,
        "split": graph.split.name,
        "train": int(graph.split.train.size),
        "val": int(graph.split.validation.size),
        "test": int(graph.split.test.size),
        "self_loops": graph.num_self_loops,
        "isolated": graph.num_isolated,
        "directed": graph.directed,
        "weighted": graph.weighted,
        "notes": list(graph.notes),
    }


def summary_lines(graph: Graph) -> list[str]:
    """The same for people, a few lines without markup."""
    held = summary(graph)
    arcs = f" ({held['arcs']:,} arcs)" if graph.directed else ""
    kinds = f"{'directed' if graph.directed else 'undirected'}, {'weighted' if graph.weighted else 'unweighted'}"
    features = f"{held['features']:,} {'sparse' if held['sparse_features'] else 'dense'}"
    made = f", {held['made_features']} made from the structure" if graph.made_features else ""
    return [
        f"{graph.name}: {held['nodes']:,} nodes, {held['edges']:,} edges{arcs}, {kinds}; "
        f"{held['isolated']:,} isolated, {held['self_loops']:,} self-loops dropped",
        f"features: {features}{made}",
        f"labels: {held['classes']} classes, {held['labelled']:,} nodes labelled",
        f"split {held['split']}: {held['train']:,} train, {held['val']:,} val, {held['test']:,} test",
        *graph.notes,
    ]


def _num_pairs(graph: Graph) -> int:
    if not graph.directed:
        return graph.num_edges
    N, adjacency = graph.num_nodes, graph.adjacency
    rows = np.repeat(np.arange(N, dtype=np.int64), np.diff(adjacency.indptr))
    columns = adjacency.indices.astype(np.int64)
    keys = np.minimum(rows, columns) * N + np.maximum(rows, columns)
    return int(np.unique(keys).size)
