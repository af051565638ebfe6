"""Adjacency rows as features: who a node's neighbours are, besides what they are like."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from search_space.transform import glorot


class AdjacencyLayer(nn.Module):
    """A W, added to the products of the first layer: for v the sum of its neighbours' weights, Σ_u A(v,u) W(u).

    Weights W (N, width) belong to the nodes of one graph, and so does what is trained with them. It tells nodes apart
    by the company they keep where neighbours differ in class. Source: Lim et al. 2021 (LINKX), whose two perceptrons
    for A and X meet in a sum; here both are one layer.

    Args:
        num_nodes: N.
        width: of the first layer.
        generators: one per repeat.
    """

    def __init__(self, num_nodes: int, width: int, generators: Sequence[torch.Generator]) -> None:
        super().__init__()
        self.weights = nn.Parameter(glorot(num_nodes, width, generators))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Sparse rows of the adjacency (n, N) to (S, n, width)."""
        S, N, width = self.weights.shape
        # all repeats in one product: (n, N) @ (N, S·width)
        wide = torch.sparse.mm(rows, self.weights.transpose(0, 1).reshape(N, S * width))
        of_repeats: torch.Tensor = wide.reshape(-1, S, width).transpose(0, 1)
        return of_repeats
