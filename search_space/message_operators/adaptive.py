"""adaptive: a gate gives each node its own hop weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from search_space.message_operators.base import MessageOperator


class Adaptive(MessageOperator):
    """x(v) = Σ_k w(v,k) x(v,k), w(v,k) = softmax_k(sigmoid(x(v,k)·g)), with one gate vector g in R^F.

    Source: PaSca, section 3.1 (adaptive message aggregator). g starts uniform in ±sqrt(6 / (F + 1)) (Glorot).
    """

    def __init__(self, num_hops: int, num_features: int, generators: Sequence[torch.Generator]) -> None:
        super().__init__(num_hops, num_features)
        limit = math.sqrt(6.0 / (num_features + 1))
        rows = [torch.empty(num_features).uniform_(-limit, limit, generator=generator) for generator in generators]
        self.gate = nn.Parameter(torch.stack(rows))

    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """(K + 1, n, F) to (S, n, F)."""
        num_hops, n, F = hops.shape
        # ((K+1)·n, F) @ (F, S) -> (K+1, n, S)
        scores = (hops.reshape(num_hops * n, F) @ self.gate.T).reshape(num_hops, n, -1)
        weights = torch.softmax(torch.sigmoid(scores), dim=0)
        # for each node: (S, K+1) @ (K+1, F) -> (n, S, F) -> (S, n, F)
        return torch.bmm(weights.permute(1, 2, 0), hops.transpose(0, 1)).transpose(0, 1)
