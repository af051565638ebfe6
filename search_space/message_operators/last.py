"""none: the last hop alone."""

from __future__ import annotations

import torch

from search_space.message_operators.base import MessageOperator


class LastHop(MessageOperator):
    """x(v) = x(v, K). Source: Wu et al. 2019 (SGC)."""

    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """(K + 1, n, F) to (n, F)."""
        return hops[-1]
