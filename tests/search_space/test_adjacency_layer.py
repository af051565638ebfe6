"""Adjacency rows by hand, and repeats that have nothing to do with one another."""

from __future__ import annotations

import torch

from search_space.adjacency_layer import AdjacencyLayer


def generators(*seeds: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def test_a_node_gets_the_sum_of_its_neighbours_weights() -> None:
    """Node 0 has the neighbours 1 and 2, of which 2 counts twice; node 1 has none."""
    layer = AdjacencyLayer(3, 2, generators(0))
    layer.weights.data = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]])
    rows = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]).to_sparse_coo()
    torch.testing.assert_close(layer(rows), torch.tensor([[[13.0, 16.0], [0.0, 0.0]]]))


def test_a_repeat_starts_from_its_own_generator_and_learns_from_its_own_loss() -> None:
    together, alone = AdjacencyLayer(4, 3, generators(1, 2)), AdjacencyLayer(4, 3, generators(2))
    torch.testing.assert_close(together.weights[1], alone.weights[0])
    rows = torch.eye(4).to_sparse_coo()
    together(rows)[1].square().sum().backward()
    alone(rows)[0].square().sum().backward()
    assert together.weights.grad is not None
    assert alone.weights.grad is not None
    torch.testing.assert_close(together.weights.grad[1], alone.weights.grad[0])
    assert not together.weights.grad[0].any()
