"""weighted: one trainable weight per hop, shared by all nodes."""

from __future__ import annotations

import math

import torch
from torch import nn

from search_space.message_operators.base import MessageOperator

START_ALPHA = 0.1


class Weighted(MessageOperator):
    """x(v) = Σ_k w_k x(v, k), w = softmax(l), trained without weight decay.

    l_k starts at k·ln(1-α) with α = 0.1, the decay of personalised PageRank, so training departs from GBP's weights.
    Source: PaSca, section 3.1; starting point after Chen et al. 2020.
    """

    def __init__(self, num_hops: int, num_features: int, num_repeats: int) -> None:
        super().__init__(num_hops, num_features)
        start = math.log(1.0 - START_ALPHA) * torch.arange(num_hops + 1, dtype=torch.float32)
        self.logits = nn.Parameter(start.repeat(num_repeats, 1))

    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """(K + 1, n, F) to (S, n, F)."""
        num_hops, n, F = hops.shape
        weights = torch.softmax(self.logits, dim=1)
        # (S, K+1) @ (K+1, n·F) -> (S, n·F) -> (S, n, F)
        return (weights @ hops.reshape(num_hops, n * F)).reshape(-1, n, F)
