"""digits: the embedded data set, scikit-learn's 1,797 handwritten digits as a nearest-neighbour graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pasca.datasets import splits
from pasca.datasets.parts import Arcs, Parts

NEIGHBOURS = 10
TRAIN_PER_CLASS = 5
VAL_PER_CLASS = 20
SPLIT_SEED = 0


def read_digits() -> Parts:
    """Return the digits: 8 x 8 pixels as 64 features of 0..16, ten classes, an edge to each of the 10 nearest images.

    The split has 5 training and 20 validation nodes a class, drawn by a fixed seed; the rest tests.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels = np.asarray(bunch.data, dtype=np.float32)
    labels = np.asarray(bunch.target, dtype=np.int64)
    nearest = _nearest(pixels.astype(np.int64))
    generator = np.random.default_rng(SPLIT_SEED)
    split, _ = splits.per_class(labels, 10, TRAIN_PER_CLASS, VAL_PER_CLASS, generator, "embedded")
    return Parts(
        name="digits",
        source="digits",
        num_nodes=labels.size,
        arcs=Arcs(np.repeat(np.arange(labels.size), NEIGHBOURS), nearest.ravel()),
        features=pixels,
        labels=labels,
        splits={"embedded": lambda: (split.train, split.validation, split.test)},
        default_split="embedded",
        feature_names=tuple(str(name) for name in bunch.feature_names),
    )


def _nearest(pixels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The nearest images of each, (N, NEIGHBOURS), by Euclidean distance; the lower number first among equals.

    Whole pixels give many equal distances, and a library that breaks such ties as its threads come gives another graph
    on another machine. Here squared distances are whole numbers, and every pair of images has a rank of its own.
    """
    N = len(pixels)
    squares = (pixels**2).sum(axis=1)
    distances = squares[:, None] - 2 * (pixels.astype(np.float64) @ pixels.T).astype(np.int64) + squares
    ranks = distances * N + np.arange(N)
    np.fill_diagonal(ranks, np.iinfo(np.int64).max)
    return np.sort(np.argpartition(ranks, NEIGHBOURS, axis=1)[:, :NEIGHBOURS], axis=1)
