"""Parts become a checked Graph: the one place where directions, weights, missing labels and splits get a meaning."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engines.graph import Features, Graph
from pasca.datasets import adjacency, features, labels
from pasca.datasets.choose_split import check_trainable, choose_split
from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Arcs, Parts
from search_space.errors import DataError


def assemble(parts: Parts, options: LoadOptions) -> Graph:
    """Interpret what a reader found.

    Raises:
        DataError: parts that do not fit together, weights that are not positive, a split that overlaps or is missing.
    """
    if parts.num_nodes == 0:
        raise DataError(f"{parts.source}: the graph has no nodes")
    notes = list(parts.notes)
    weights, weight_note = _weights(parts, options)
    built = adjacency.build(parts.arcs, parts.num_nodes, directed=options.directed, weights=weights)
    notes += _edge_notes(parts.arcs, built, options.directed, weights is not None) + weight_note
    numbers, class_names = labels.compact(parts.labels, parts.num_nodes, parts.source, parts.label_names)
    matrix, feature_names, made_features, feature_notes = _features(parts, options, built)
    notes += feature_notes
    split, split_notes = choose_split(
        parts.splits, parts.default_split, options, numbers, class_names, parts.source, parts.node_ids
    )
    notes += split_notes
    if options.for_training and parts.labels is not None:
        check_trainable(parts.source, class_names, split)
    return Graph(
        name=parts.name,
        adjacency=built.adjacency,
        features=matrix,
        labels=numbers,
        class_names=class_names,
        split=split,
        node_ids=parts.node_ids,
        feature_names=feature_names,
        made_features=made_features,
        directed=options.directed,
        weighted=weights is not None,
        num_self_loops=built.num_self_loops,
        notes=tuple(notes),
    )


def _weights(parts: Parts, options: LoadOptions) -> tuple[NDArray[np.float64] | None, list[str]]:
    """The weights to use, checked, and a note on what became of the source's values."""
    values = parts.arcs.weights
    if values is None:
        if options.weighted:
            raise DataError(f"{parts.source}: weights were asked for, but its edges have no values")
        return None, []
    if options.weighted is False:
        return None, ["edge weights ignored, as asked"]
    if options.weighted is None and parts.arcs.are_counts:
        return None, [] if (values == 1).all() else [
            "adjacency values are counts, read as 1; --weighted uses them as weights"
        ]
    with np.errstate(over="ignore", under="ignore"):
        single = values.astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(single) & (single > 0)))
    if bad.size:
        raise DataError(
            f"{parts.source}: edge weights are positive and finite, but {parts.arcs.where(int(bad[0]))} has "
            f"{values[bad[0]]} ({bad.size} such); mend them, or ignore weights with --unweighted"
        )
    return values, []


def _edge_notes(arcs: Arcs, built: adjacency.Built, directed: bool, weighted: bool) -> list[str]:
    weight = "" if weighted else " of weight 1"
    if directed:
        into = "a node gathers from the sources of the arcs into it"
        notes = [f"directed: {arcs.sources.size} listed arcs give {built.adjacency.nnz} arcs{weight}; {into}"]
    else:
        one_way = f" ({built.num_one_way} listed in one direction only)" if built.num_one_way else ""
        given = f"{arcs.sources.size} listed arcs give {built.adjacency.nnz // 2} edges{weight}{one_way}"
        notes = [f"undirected: {given}; --directed keeps directions"]
    if built.num_repeated:
        notes.append(f"{built.num_repeated} repeated arc(s) merged" + (", their weights added up" if weighted else ""))
    if built.num_self_loops:
        notes.append(f"{built.num_self_loops} self-loop(s) dropped")
    if built.num_averaged:
        notes.append(f"{built.num_averaged} edge(s) had two different weights, averaged")
    return notes


def _features(
    parts: Parts, options: LoadOptions, built: adjacency.Built
) -> tuple[Features, tuple[str, ...] | None, str | None, list[str]]:
    kind = options.made_features or ("degree" if parts.features is None else None)
    if kind is not None:
        made, names = features.make(kind, built.adjacency, directed=options.directed)
        why = "no features in the source" if parts.features is None else "features replaced, as asked"
        return made, names, kind, [f"{why}: {made.shape[1]} {kind} features made from the structure"]
    assert parts.features is not None
    if parts.features.shape[0] != parts.num_nodes:
        raise DataError(
            f"{parts.source}: expected one row of features for each of {parts.num_nodes} nodes, "
            f"got shape {parts.features.shape}"
        )
    return features.to_single(parts.features, parts.source, parts.node), parts.feature_names, None, []
