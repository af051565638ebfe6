"""Message aggregators: one way of joining hops a file. `message_operator(name, ...)` looks one up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from search_space.architecture import canonical_message, decay_rate
from search_space.message_operators.adaptive import Adaptive
from search_space.message_operators.base import MessageOperator
from search_space.message_operators.concat import Concat
from search_space.message_operators.decay import Decay
from search_space.message_operators.jumping_knowledge import JumpingKnowledge
from search_space.message_operators.last import LastHop
from search_space.message_operators.max import Max
from search_space.message_operators.mean import Mean
from search_space.message_operators.recursive import Recursive
from search_space.message_operators.sum import Sum
from search_space.message_operators.weighted import Weighted


def message_operator(
    name: str, num_hops: int, num_features: int, generators: Sequence[torch.Generator]
) -> MessageOperator:
    """Return the operator with that name, as in `Architecture.message`, for S = len(generators) repeats.

    Args:
        num_hops: K; the operator joins K + 1 arrays.
        num_features: F.
        generators: one per repeat; repeat s takes its starting weights from generator s alone.
    Raises:
        DesignError: there is no such operator; the message lists what exists.
    """
    canonical = canonical_message(name)
    alpha = decay_rate(canonical)
    if alpha is not None:
        return Decay(num_hops, num_features, alpha)
    if canonical == "weighted":
        return Weighted(num_hops, num_features, num_repeats=len(generators))
    gates: dict[str, Callable[[int, int, Sequence[torch.Generator]], MessageOperator]] = {
        "adaptive": Adaptive,
        "recursive": Recursive,
        "jk": JumpingKnowledge,
    }
    if canonical in gates:
        return gates[canonical](num_hops, num_features, generators)
    fixed: dict[str, Callable[[int, int], MessageOperator]] = {
        "none": LastHop,
        "mean": Mean,
        "sum": Sum,
        "max": Max,
        "concat": Concat,
    }
    return fixed[canonical](num_hops, num_features)


__all__ = [
    "Adaptive",
    "Concat",
    "Decay",
    "JumpingKnowledge",
    "LastHop",
    "Max",
    "Mean",
    "MessageOperator",
    "Recursive",
    "Sum",
    "Weighted",
    "message_operator",
]
