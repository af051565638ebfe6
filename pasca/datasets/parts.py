"""Parts: what a reader found in a source, before any of it is interpreted.

A reader states facts (these arcs, these raw labels, these splits); `assemble.py` turns them into a checked Graph in one
place, so that direction, weights, missing labels and splits mean the same for every format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.graph import Nodes

Integers = NDArray[np.int64]
RawFeatures: TypeAlias = NDArray[np.generic] | sparse.csr_array
GivenSplit = Callable[[], tuple[Nodes, Nodes, Nodes]]


@dataclass(frozen=True, eq=False)
class Arcs:
    """Arcs as listed by a source, in its order; they may repeat, be reversed or be self-loops.

    Attributes:
        sources, targets: (E',) node numbers in 0..N-1, checked by the reader.
        weights: (E',) float64, or None where the source has no values.
        are_counts: the weights come from a benchmark format, where they count repeated edges, not strengths.
        where: names the place of arc i in the source, for messages (`line 17`).
    """

    sources: Integers
    targets: Integers
    weights: NDArray[np.float64] | None = None
    are_counts: bool = False
    where: Callable[[int], str] = lambda i: f"entry {i}"


@dataclass(frozen=True, eq=False)
class Parts:
    """What a reader found.

    Attributes:
        name: of the data set, for people.
        source: the file or folder as named in messages.
        num_nodes: N.
        arcs: the edges.
        features: (N, F) in any numeric type, or None.
        labels: (N,), (N, 1) or one-hot (N, C), numbers or text, or None.
        label_names: names of the label numbers 0.., where the source has them.
        splits: by name; reading one may fail, so each waits until it is asked for.
        default_split: the one to take when none is named; None where the source has none.
        node_ids, feature_names: original names, or None where rows and columns are known by number only.
        notes: lines for the data summary.
    """

    name: str
    source: str
    num_nodes: int
    arcs: Arcs
    features: RawFeatures | None
    labels: NDArray[np.generic] | None
    label_names: tuple[str, ...] | None = None
    splits: Mapping[str, GivenSplit] = field(default_factory=dict)
    default_split: str | None = None
    node_ids: NDArray[np.str_] | None = None
    feature_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def node(self, i: int) -> str:
        """How messages name node i: by its original id where there is one."""
        return f"node {i}" if self.node_ids is None else f"node {self.node_ids[i]!s}"
