"""Two channels: every hop is what a low-pass step gives beside what a high-pass step gives."""

from __future__ import annotations

from dataclasses import dataclass, field

from search_space.graph_operators.augmented import AugmentedAdjacency
from search_space.graph_operators.base import GraphOperator
from search_space.graph_operators.high_pass import HighPass


@dataclass(frozen=True, slots=True)
class TwoChannel:
    """X(k) = Â^k X ‖ (I - Â)^k X, 2F wide; what follows learns which channel a class needs.

    Not one matrix but two that propagate side by side; hop 0 is X ‖ X.
    Source: Luan et al. 2022 (ACM-GNN), its low-pass and high-pass channels, here without trainable mixing.

    Attributes:
        low: the adjacency Â of both channels.
    """

    low: AugmentedAdjacency = field(default_factory=AugmentedAdjacency)

    @property
    def name(self) -> str:
        """`twochannel`."""
        return f"twochannel{self.low.suffix}"

    @property
    def channels(self) -> tuple[GraphOperator, ...]:
        """Low-pass, then high-pass."""
        return self.low, HighPass(self.low)
