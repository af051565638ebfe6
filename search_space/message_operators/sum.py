"""sum: the element-wise sum over hops 0..K."""

from __future__ import annotations

import torch

from search_space.message_operators.base import MessageOperator


class Sum(MessageOperator):
    """x(v) = Σ_k x(v, k): `mean` times K + 1, which dropout, weight decay and a normalisation layer tell apart.

    Source: PaSca's released message operators (sum); Xu et al. 2019 (GIN) on why sums keep counts that means lose.
    """

    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """(K + 1, n, F) to (n, F)."""
        return hops.sum(dim=0)
