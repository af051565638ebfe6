"""Graph aggregators: one propagation rule a file. `graph_operator(name)` looks one up."""

from __future__ import annotations

from search_space.architecture import canonical_aggregator, restart_probability
from search_space.graph_operators.augmented import AugmentedAdjacency
from search_space.graph_operators.base import GraphOperator
from search_space.graph_operators.personalized_pagerank import PersonalizedPageRank
from search_space.graph_operators.triangle import TriangleInducedAdjacency


def graph_operator(name: str) -> GraphOperator:
    """Return the operator with that name, as in `Architecture.pre_aggregator`.

    Raises:
        DesignError: there is none; the message lists what exists.
    """
    canonical = canonical_aggregator(name)
    alpha = restart_probability(canonical)
    if alpha is not None:
        return PersonalizedPageRank(alpha)
    return AugmentedAdjacency() if canonical == "augmented" else TriangleInducedAdjacency()


__all__ = [
    "AugmentedAdjacency",
    "GraphOperator",
    "PersonalizedPageRank",
    "TriangleInducedAdjacency",
    "graph_operator",
]
