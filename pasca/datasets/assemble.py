"""Parts become a checked Graph: the one place where directions, weights, missing labels and splits get a meaning."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engines.graph import UNLABELLED, Features, Graph, Split
from pasca.datasets import adjacency, features, labels, splits
from pasca.datasets.options import DEFAULT_TRAIN_PER_CLASS, DEFAULT_VAL_PER_CLASS, LoadOptions
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
    matrix, feature_names, feature_notes = _features(parts, options, built)
    notes += feature_notes
    split, split_notes = _split(parts, options, numbers, class_names)
    notes += split_notes
    if options.for_training and parts.labels is not None:
        _check_trainable(parts.source, class_names, split)
    return Graph(
        name=parts.name,
        adjacency=built.adjacency,
        features=matrix,
        labels=numbers,
        class_names=class_names,
        split=split,
        node_ids=parts.node_ids,
        feature_names=feature_names,
        directed=options.directed,
        weighted=weights is not None,
        num_self_loops=built.num_self_loops,
        notes=tuple(notes),
    )


def require_trainable(graph: Graph) -> None:
    """Refuse a graph that nothing can be learned from.

    Raises:
        DataError: no labels, one class only, no training node, or no validation node.
    """
    if graph.num_labelled == 0:
        raise DataError(f"{graph.name}: no node has a label, so there is nothing to learn; add a label column or file")
    _check_trainable(graph.name, graph.class_names, graph.split)


def _check_trainable(source: str, class_names: tuple[str, ...], split: Split) -> None:
    if len(class_names) < 2:
        found = f"only {class_names[0]!r}" if class_names else "none"
        raise DataError(f"{source}: labels have at least two classes, found {found}; is it the right label column?")
    for part, nodes in (("training", split.train), ("validation", split.validation)):
        if not nodes.size:
            raise DataError(
                f"{source}: split {split.name!r} has no labelled {part} node; choose another split, or split='random'"
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
) -> tuple[Features, tuple[str, ...] | None, list[str]]:
    if parts.features is None or options.features in features.MADE:
        kind = str(options.features or "degree")
        made, names = features.make(kind, built.adjacency)
        why = "no features in the source" if parts.features is None else "features replaced, as asked"
        return made, names, [f"{why}: {made.shape[1]} {kind} feature(s) made from the structure"]
    if parts.features.shape[0] != parts.num_nodes:
        raise DataError(
            f"{parts.source}: expected one row of features for each of {parts.num_nodes} nodes, "
            f"got shape {parts.features.shape}"
        )
    return features.to_single(parts.features, parts.source, parts.node), parts.feature_names, []


def _split(
    parts: Parts, options: LoadOptions, numbers: NDArray[np.int64], class_names: tuple[str, ...]
) -> tuple[Split, list[str]]:
    if options.split is not None and options.split != "random" and options.split not in parts.splits:
        names = ", ".join([*parts.splits, "random"])
        raise DataError(f"{parts.source}: there is no split {options.split!r}; choose from: {names}")
    name = None if options.wants_random_split else options.split or parts.default_split
    if name is not None:
        return _given(parts, name, numbers)
    if not class_names:
        nothing = np.zeros(0, dtype=np.int64)
        return Split(nothing, nothing, nothing, "none"), ["no labels: the graph can be predicted on, not trained on"]
    return _random(options, numbers, class_names)


def _given(parts: Parts, name: str, numbers: NDArray[np.int64]) -> tuple[Split, list[str]]:
    train, validation, test = parts.splits[name]()
    what = f"{parts.source}, split {name!r}"
    splits.check_disjoint(train, validation, test, what, parts.node_ids)
    notes = []
    if len(parts.splits) > 1:
        notes.append(f"split {name!r} of {', '.join(parts.splits)}")
    labelled = numbers != UNLABELLED
    split = Split(train[labelled[train]], validation[labelled[validation]], test[labelled[test]], name)
    dropped = train.size + validation.size + test.size - split.num_nodes
    if dropped:
        notes.append(f"{dropped} node(s) without a label left out of the split")
    return split, notes


def _random(options: LoadOptions, numbers: NDArray[np.int64], class_names: tuple[str, ...]) -> tuple[Split, list[str]]:
    seed = options.split_seed or 0
    generator = np.random.default_rng(seed)
    C = len(class_names)
    if options.train_fraction is not None and options.val_fraction is not None:
        name = f"{options.train_fraction:g}/{options.val_fraction:g} of every class, seed {seed}"
        train, val = options.train_fraction, options.val_fraction
        return splits.by_fraction(numbers, C, train, val, generator, name), [f"random split: {name}"]
    num_train = options.train_per_class or DEFAULT_TRAIN_PER_CLASS
    num_val = options.val_per_class or DEFAULT_VAL_PER_CLASS
    name = f"{num_train}/{num_val} per class, seed {seed}"
    split, small = splits.per_class(numbers, C, num_train, num_val, generator, name)
    notes = [f"random split: {name}"]
    if small:
        sizes = np.bincount(numbers[numbers != UNLABELLED], minlength=C)
        shares = [
            f"{class_names[c]!r} ({sizes[c]} labels) {np.count_nonzero(numbers[split.train] == c)}"
            f"/{np.count_nonzero(numbers[split.validation] == c)}"
            for c in small[:5]
        ]
        more = f" and {len(small) - 5} more" if len(small) > 5 else ""
        notes.append(f"too few labels, so a smaller share for class {', '.join(shares)}{more}")
    return split, notes
