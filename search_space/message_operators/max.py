"""max: the element-wise largest value over hops 0..K."""

from __future__ import annotations

import torch

from search_space.message_operators.base import MessageOperator


class Max(MessageOperator):
    """x(v)_f = max_k x(v, k)_f. Source: PaSca, section 3.1."""

    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """(K + 1, n, F) to (n, F)."""
        return hops.amax(dim=0)
