"""MessageOperator: joins the hops of each node into one vector."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import nn


class MessageOperator(nn.Module, ABC):
    """Joins hops 0..K of each node, for S repeats at once.

    Attributes:
        num_hops: K.
        num_features: F.
    """

    def __init__(self, num_hops: int, num_features: int) -> None:
        super().__init__()
        self.num_hops = num_hops
        self.num_features = num_features

    @property
    def width(self) -> int:
        """Length of a joined vector."""
        return self.num_features

    @property
    def learns(self) -> bool:
        """Whether it has trainable weights. What does not learn gives the same result for every repeat and epoch."""
        return any(True for _ in self.parameters())

    @abstractmethod
    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """Join.

        Args:
            hops: (K + 1, n, F), hop 0 first.
        Returns:
            (n, width) when the operator does not learn, (S, n, width) when it does.
        """
