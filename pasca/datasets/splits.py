"""Splits: random ones by class with a seed, and given ones from masks or node lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engines.graph import UNLABELLED, Nodes, Split
from search_space.errors import DataError


def per_class(
    labels: NDArray[np.int64], num_classes: int, train: int, val: int, generator: np.random.Generator, name: str
) -> tuple[Split, tuple[int, ...]]:
    """Draw `train` training and `val` validation nodes of every class; the other labelled nodes test.

    A class with fewer than train + val + 1 labels is shared out instead: 40 % of it, at least one node and at most
    `train`, trains; 30 %, at most `val`, validates (at least one node from two labels on); the rest tests.

    Returns:
        The split and the numbers of the classes that got a smaller share.
    """
    shares = []
    for size in np.bincount(labels[labels != UNLABELLED], minlength=num_classes).tolist():
        enough = size > train + val
        shares.append((train, val) if enough else (min(train, _share(size, 0.4, 1)), min(val, _share(size, 0.3, 2))))
    small = tuple(c for c, share in enumerate(shares) if share != (train, val))
    return _draw(labels, shares, generator, name), small


def by_fraction(
    labels: NDArray[np.int64], num_classes: int, train: float, val: float, generator: np.random.Generator, name: str
) -> Split:
    """Draw the given fractions of every class, each at least one node while there are that many; the rest tests."""
    sizes = np.bincount(labels[labels != UNLABELLED], minlength=num_classes).tolist()
    shares = []
    for size in sizes:
        num_train = min(_share(size, train, 1), size)
        shares.append((num_train, min(_share(size, val, 2), size - num_train)))
    return _draw(labels, shares, generator, name)


def _share(size: int, fraction: float, from_size: int) -> int:
    """A fraction of `size` nodes, rounded down; at least one when there are `from_size` nodes."""
    # The small term keeps 0.3 * 10 from becoming 2.
    return max(int(size * fraction + 1e-9), 1 if size >= from_size else 0)


def _draw(labels: NDArray[np.int64], shares: list[tuple[int, int]], generator: np.random.Generator, name: str) -> Split:
    parts: tuple[list[Nodes], list[Nodes], list[Nodes]] = ([], [], [])
    for number, (train, val) in enumerate(shares):
        nodes = generator.permutation(np.flatnonzero(labels == number))
        for part, chosen in zip(parts, np.split(nodes, [train, train + val]), strict=True):
            part.append(chosen)
    train_nodes, val_nodes, test_nodes = (
        np.concatenate(part) if part else np.zeros(0, dtype=np.int64) for part in parts
    )
    return Split(train_nodes, val_nodes, test_nodes, name)


def nodes_of_mask(mask: NDArray[np.generic], num_nodes: int, what: str) -> Nodes:
    """Return the numbers of the nodes that a mask marks.

    Args:
        mask: (N,) booleans, or zeros and ones of any number type.
        what: file and array, for messages.
    Raises:
        DataError: a wrong length, or values that are not a mask.
    """
    if mask.shape != (num_nodes,):
        raise DataError(f"{what}: expected a mask of shape ({num_nodes},), one value a node, got {mask.shape}")
    if mask.dtype.kind not in "biuf":
        raise DataError(f"{what}: a mask holds booleans or zeros and ones, got type {mask.dtype}")
    values = np.asarray(mask, dtype=np.float64)
    bad = np.flatnonzero((values != 0) & (values != 1))
    if bad.size:
        raise DataError(
            f"{what}: a mask holds zeros and ones, got {mask[bad[0]]} at node {bad[0]}; is it a list of nodes?"
        )
    return np.flatnonzero(values).astype(np.int64)


def nodes_of_list(nodes: NDArray[np.generic], num_nodes: int, what: str) -> Nodes:
    """Return node numbers from a list, checked to be integers in 0..N-1 without repeats.

    Raises:
        DataError: it is not such a list.
    """
    if nodes.ndim != 1 or (nodes.size and nodes.dtype.kind not in "iu"):
        raise DataError(f"{what}: expected a list of node numbers, got {nodes.dtype} of shape {nodes.shape}")
    bad = np.flatnonzero((nodes < 0) | (nodes >= num_nodes))  # type: ignore[operator]
    if bad.size:
        raise DataError(f"{what}: entry {bad[0]} is {nodes[bad[0]]}, but node numbers run from 0 to {num_nodes - 1}")
    numbers = nodes.astype(np.int64)
    unique, counts = np.unique(numbers, return_counts=True)
    if unique.size < numbers.size:
        raise DataError(f"{what}: node {unique[counts > 1][0]} is listed {counts.max()} times; list every node once")
    return numbers


def check_disjoint(train: Nodes, validation: Nodes, test: Nodes, what: str, ids: NDArray[np.str_] | None) -> None:
    """Refuse a given split whose parts overlap.

    Raises:
        DataError: names the first overlapping node by its original id.
    """
    pairs = (
        ("train", train, "test", test),
        ("train", train, "validation", validation),
        ("validation", validation, "test", test),
    )
    for one, nodes, other, others in pairs:
        both = np.intersect1d(nodes, others)
        if both.size:
            first = both[0] if ids is None else ids[both[0]]
            raise DataError(
                f"{what}: {one} and {other} share {both.size} node(s), the first is node {first}; "
                "every node belongs to one part at most"
            )
