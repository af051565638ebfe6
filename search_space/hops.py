"""What a design's hops are: the operators they come from, their width, and which of them are read."""

from __future__ import annotations

from search_space.architecture import Architecture
from search_space.graph_operators import GraphOperator, channels

REFERENCE_WIDTH = 16
"""Width d of the layer with which the join `jk` sums up all hops of a node."""


def pre_operators(design: Architecture) -> tuple[GraphOperator, ...]:
    """The operators that features propagate by, one a channel; none for a stage that is off."""
    return () if design.pre_aggregator is None else channels(design.pre_aggregator)


def hop_width(design: Architecture, num_features: int) -> int:
    """Columns of a hop: F for each channel."""
    return num_features * max(len(pre_operators(design)), 1)


def required_hops(design: Architecture) -> tuple[int, ...]:
    """Which hops a design reads: all of 0..K_pre, or the last one alone when nothing is joined."""
    return (design.k_pre,) if design.message in (None, "none") else tuple(range(design.k_pre + 1))
