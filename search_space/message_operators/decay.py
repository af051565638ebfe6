"""decay: hop weights fixed in proportion to α (1-α)^k."""

from __future__ import annotations

import torch

from search_space.message_operators.base import MessageOperator


class Decay(MessageOperator):
    """x(v) = Σ_k w_k x(v, k), w_k = α (1-α)^k / Σ_l α (1-α)^l. Source: Chen et al. 2020 (GBP), PPR weights.

    No point of the paper's search space; a choice of the extended one.
    """

    weights: torch.Tensor

    def __init__(self, num_hops: int, num_features: int, alpha: float) -> None:
        super().__init__(num_hops, num_features)
        weights = alpha * (1.0 - alpha) ** torch.arange(num_hops + 1, dtype=torch.float64)
        self.register_buffer("weights", (weights / weights.sum()).float(), persistent=False)

    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """(K + 1, n, F) to (n, F)."""
        joined: torch.Tensor = torch.tensordot(self.weights, hops, dims=1)
        return joined
