"""digits: the embedded data set, scikit-learn's 1,797 handwritten digits as a nearest-neighbour graph."""

from __future__ import annotations

import numpy as np

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
    from sklearn.neighbors import kneighbors_graph

    bunch = load_digits()
    pixels = np.asarray(bunch.data, dtype=np.float32)
    labels = np.asarray(bunch.target, dtype=np.int64)
    nearest = kneighbors_graph(pixels, NEIGHBOURS, include_self=False).tocoo()
    generator = np.random.default_rng(SPLIT_SEED)
    split, _ = splits.per_class(labels, 10, TRAIN_PER_CLASS, VAL_PER_CLASS, generator, "embedded")
    return Parts(
        name="digits",
        source="digits",
        num_nodes=labels.size,
        arcs=Arcs(nearest.row.astype(np.int64), nearest.col.astype(np.int64)),
        features=pixels,
        labels=labels,
        splits={"embedded": lambda: (split.train, split.validation, split.test)},
        default_split="embedded",
        feature_names=tuple(str(name) for name in bunch.feature_names),
    )
