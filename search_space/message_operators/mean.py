"""mean: the element-wise mean over hops 0..K."""

from __future__ import annotations

import torch

from search_space.message_operators.base import MessageOperator


class Mean(MessageOperator):
    """x(v) = 1/(K+1) Σ_k x(v, k). Source: Zhu and Koniusz 2021 (S2GC) with α = 1/(K+1)."""

    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """(K + 1, n, F) to (n, F)."""
        return hops.mean(dim=0)
