"""Choose a split, one that the source gives or a random one, and refuse what nothing could be learned from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from engines.graph import UNLABELLED, Split
from pasca.datasets import splits
from pasca.datasets.options import DEFAULT_TRAIN_PER_CLASS, DEFAULT_VAL_PER_CLASS, LoadOptions
from pasca.datasets.parts import GivenSplit
from search_space.errors import DataError


def choose_split(
    given: Mapping[str, GivenSplit],
    default: str | None,
    options: LoadOptions,
    numbers: NDArray[np.int64],
    class_names: tuple[str, ...],
    source: str,
    node_ids: NDArray[np.str_] | None,
) -> tuple[Split, list[str]]:
    """The split that the options ask for, with notes for the data summary.

    Args:
        given, default: the splits of the source by name, and the one to take when none is named.
        numbers: (N,) labels, -1 for none; a node without a label is left out of a given split.
        source, node_ids: for messages.
    Raises:
        DataError: there is no such split, or its parts overlap.
    """
    if options.split is not None and options.split != "random" and options.split not in given:
        names = ", ".join([*given, "random"])
        raise DataError(f"{source}: there is no split {options.split!r}; choose from: {names}")
    name = None if options.wants_random_split else options.split or default
    if name is not None:
        split, dropped = given_split(given[name], name, numbers, source, node_ids)
        notes = [f"split {name!r} of {', '.join(given)}"] if len(given) > 1 else []
        return split, [*notes, f"{dropped} node(s) without a label left out of the split"] if dropped else notes
    if not class_names:
        nothing = np.zeros(0, dtype=np.int64)
        return Split(nothing, nothing, nothing, "none"), ["no labels: the graph can be predicted on, not trained on"]
    return _random(options, numbers, class_names)


def given_split(
    read: GivenSplit, name: str, numbers: NDArray[np.int64], source: str, node_ids: NDArray[np.str_] | None
) -> tuple[Split, int]:
    """Read one split of a source; returns it without its unlabelled nodes, and their number.

    Raises:
        DataError: it cannot be read, or its parts overlap.
    """
    train, validation, test = read()
    splits.check_disjoint(train, validation, test, f"{source}, split {name!r}", node_ids)
    labelled = numbers != UNLABELLED
    split = Split(train[labelled[train]], validation[labelled[validation]], test[labelled[test]], name)
    return split, train.size + validation.size + test.size - split.num_nodes


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


def check_trainable(source: str, class_names: tuple[str, ...], split: Split) -> None:
    """Refuse labels that nothing could be learned from.

    Raises:
        DataError: fewer than two classes, or no training node.
    """
    if len(class_names) < 2:
        found = f"only {class_names[0]!r}" if class_names else "none"
        raise DataError(f"{source}: labels have at least two classes, found {found}; is it the right label column?")
    if not split.train.size:
        raise DataError(
            f"{source}: split {split.name!r} has no labelled training node; take another split, or split='random'"
        )
