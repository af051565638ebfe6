"""recursive: each hop is weighed by a gate that sees what the hops before it add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from search_space.message_operators.base import MessageOperator


class Recursive(MessageOperator):
    """x(v) = Σ_k w_k x(v,k), w = softmax(s), s_k = sigmoid(h_k·u + x(v,k)·g), one u and one g in R^F.

    h_k is what hops 0..k-1 are joined to so far, h_k = Σ_(j<k) softmax(s_0 .. s_(k-1))_j x(v,j), and h_0 = x(v,0).
    Since h_k·u is the same sum of the numbers x(v,j)·u, no h_k is ever made.

    Source: Zhang et al. 2022 (GAMLP), recursive attention. u and g start uniform in ±sqrt(6 / (2F + 1)) (Glorot).
    """

    def __init__(self, num_hops: int, num_features: int, generators: Sequence[torch.Generator]) -> None:
        super().__init__(num_hops, num_features)
        limit = math.sqrt(6.0 / (2 * num_features + 1))
        rows = [torch.empty(2, num_features).uniform_(-limit, limit, generator=generator) for generator in generators]
        self.gates = nn.Parameter(torch.stack(rows))  # (S, 2, F): u, then g

    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """(K + 1, n, F) to (S, n, F)."""
        num_hops, n, F = hops.shape
        S = self.gates.shape[0]
        # ((K+1)·n, F) @ (F, S·2) -> (K+1, n, S, 2)
        products = (hops.reshape(num_hops * n, F) @ self.gates.reshape(S * 2, F).T).reshape(num_hops, n, S, 2)
        of_history, of_hop = products[..., 0], products[..., 1]
        scores = [torch.sigmoid(of_history[0] + of_hop[0])]
        for k in range(1, num_hops):
            shares = torch.softmax(torch.stack(scores), dim=0)
            scores.append(torch.sigmoid((shares * of_history[:k]).sum(dim=0) + of_hop[k]))
        weights = torch.softmax(torch.stack(scores), dim=0)
        # for each node: (S, K+1) @ (K+1, F) -> (n, S, F) -> (S, n, F)
        return torch.bmm(weights.permute(1, 2, 0), hops.transpose(0, 1)).transpose(0, 1)
