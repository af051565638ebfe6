"""Graph aggregators: one propagation rule a file. `graph_operator(name)` and `channels(name)` look one up."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from search_space.errors import DesignError
from search_space.graph_operators.augmented import AugmentedAdjacency
from search_space.graph_operators.base import GraphOperator
from search_space.graph_operators.correct_and_smooth import CorrectAndSmooth
from search_space.graph_operators.heat import HeatKernel
from search_space.graph_operators.high_pass import HighPass
from search_space.graph_operators.personalized_pagerank import PersonalizedPageRank
from search_space.graph_operators.triangle import TriangleInducedAdjacency
from search_space.graph_operators.two_channel import TwoChannel
from search_space.names import AggregatorName


def graph_operator(name: str) -> GraphOperator:
    """Return the operator with that name, as in `Architecture.pre_aggregator`, if one matrix is all it multiplies by.

    Raises:
        DesignError: there is none; the message lists what exists.
    """
    found = channels(name)
    if len(found) > 1:
        raise DesignError(f"graph aggregator {name} has {len(found)} matrices; take one of its channels")
    return found[0]


@lru_cache(maxsize=4096)
def channels(name: str) -> tuple[GraphOperator, ...]:
    """The operators whose hops lie side by side in a hop of that aggregator: one, or two for `twochannel`.

    Raises:
        DesignError: there is no such aggregator; the message lists what exists.
    """
    parsed = AggregatorName.parse(name)
    low = AugmentedAdjacency(parsed.exponent, parsed.loops)
    if parsed.kind == "twochannel":
        return TwoChannel(low).channels
    if parsed.kind == "triangle":
        return (TriangleInducedAdjacency(parsed.exponent, parsed.loops),)
    if parsed.kind == "highpass":
        return (HighPass(low),)
    if parsed.strength is None:
        return (low,)
    numbered: dict[str, Callable[[float, AugmentedAdjacency], GraphOperator]] = {
        "ppr": PersonalizedPageRank,
        "heat": HeatKernel,
        "cs": CorrectAndSmooth,
    }
    return (numbered[parsed.kind](parsed.strength, low),)


__all__ = [
    "AugmentedAdjacency",
    "CorrectAndSmooth",
    "GraphOperator",
    "HeatKernel",
    "HighPass",
    "PersonalizedPageRank",
    "TriangleInducedAdjacency",
    "TwoChannel",
    "channels",
    "graph_operator",
]
