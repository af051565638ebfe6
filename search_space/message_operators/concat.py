"""concat: hops 0..K side by side."""

from __future__ import annotations

import torch

from search_space.message_operators.base import MessageOperator


class Concat(MessageOperator):
    """x(v) = x(v, 0) ‖ ... ‖ x(v, K). Source: Rossi et al. 2020 (SIGN), without a layer per hop."""

    @property
    def width(self) -> int:
        """(K + 1) F."""
        return (self.num_hops + 1) * self.num_features

    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """(K + 1, n, F) to (n, (K + 1) F), hop 0 first."""
        num_hops, n, F = hops.shape
        # (K+1, n, F) -> (n, K+1, F) -> (n, (K+1)·F): columns of one hop stay together
        return hops.transpose(0, 1).reshape(n, num_hops * F)
