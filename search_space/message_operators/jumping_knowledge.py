"""jk: each hop is weighed by a gate that sees all hops at once, through a small layer."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from search_space.hops import REFERENCE_WIDTH
from search_space.message_operators.base import MessageOperator


class JumpingKnowledge(MessageOperator):
    """x(v) = Σ_k w_k x(v,k), w = softmax(s), s_k = sigmoid(x(v,k)·g + e(v)·h), e(v) = ReLU([x(v,0) ‖ .. ‖ x(v,K)] U).

    One U in R^((K+1)F × d), g in R^F and h in R^d. All start uniform in ±sqrt(6 / (in + out)) (Glorot).

    Source: Zhang et al. 2022 (GAMLP), jumping-knowledge attention, after Xu et al. 2018; here e(v) has d = 16 numbers.
    """

    def __init__(self, num_hops: int, num_features: int, generators: Sequence[torch.Generator]) -> None:
        super().__init__(num_hops, num_features)
        F, d = num_features, REFERENCE_WIDTH
        self.reference = nn.Parameter(_uniform((num_hops + 1, F, d), (num_hops + 1) * F + d, generators))
        self.gate = nn.Parameter(_uniform((F,), F + d + 1, generators))
        self.reference_gate = nn.Parameter(_uniform((d,), F + d + 1, generators))

    def forward(self, hops: torch.Tensor) -> torch.Tensor:
        """(K + 1, n, F) to (S, n, F)."""
        num_hops, n, F = hops.shape
        S = self.gate.shape[0]
        # U of all repeats side by side: (K+1, n, F) @ (K+1, F, S·d) -> (K+1, n, S·d), then the sum over hops
        wide = self.reference.permute(1, 2, 0, 3).reshape(num_hops, F, S * REFERENCE_WIDTH)
        summed = torch.relu(torch.bmm(hops, wide).sum(dim=0)).reshape(n, S, REFERENCE_WIDTH)
        of_node = (summed * self.reference_gate).sum(dim=2)
        of_hop = (hops.reshape(num_hops * n, F) @ self.gate.T).reshape(num_hops, n, S)
        weights = torch.softmax(torch.sigmoid(of_hop + of_node), dim=0)
        # for each node: (S, K+1) @ (K+1, F) -> (n, S, F) -> (S, n, F)
        return torch.bmm(weights.permute(1, 2, 0), hops.transpose(0, 1)).transpose(0, 1)


def _uniform(shape: tuple[int, ...], fans: int, generators: Sequence[torch.Generator]) -> torch.Tensor:
    """Glorot's starting weights of each repeat, (S, *shape)."""
    limit = math.sqrt(6.0 / fans)
    return torch.stack([torch.empty(shape).uniform_(-limit, limit, generator=generator) for generator in generators])
