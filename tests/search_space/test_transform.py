"""The batched MLP against one plain MLP per repeat."""

from __future__ import annotations

import pytest
import torch

from search_space.transform import Transform, repeat_product


def generators(*seeds: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def plain(transform: Transform, x: torch.Tensor, s: int) -> torch.Tensor:
    """Repeat s, layer by layer."""
    h = x
    last = len(transform.weights) - 1
    for layer in range(last + 1):
        y = h @ transform.weights[layer][s] + transform.biases[layer][s]
        if layer < last:
            y = torch.relu(y)
            if layer > 0:
                y = y + h
        h = y
    return h


@pytest.mark.parametrize("num_layers", [1, 2, 3, 5])
@pytest.mark.parametrize("shared", [True, False])
def test_equals_one_plain_mlp_per_repeat(num_layers: int, shared: bool) -> None:
    transform = Transform(4, 6, 3, num_layers, generators(0, 1))
    for bias in transform.biases:
        bias.data.normal_(generator=torch.Generator().manual_seed(9))
    x = torch.randn(5, 4) if shared else torch.randn(2, 5, 4)
    scores = transform(x)
    assert scores.shape == (2, 5, 3)
    for s in range(2):
        torch.testing.assert_close(scores[s], plain(transform, x if shared else x[s], s))


def test_residual_of_a_zero_layer_is_the_identity() -> None:
    transform = Transform(3, 4, 2, 3, generators(0))
    two_layers = Transform(3, 4, 2, 2, generators(0))
    transform.weights[1].data.zero_()
    two_layers.weights[0].data.copy_(transform.weights[0].data)
    two_layers.weights[1].data.copy_(transform.weights[2].data)
    x = torch.randn(6, 3)
    torch.testing.assert_close(transform(x), two_layers(x))


def test_a_normalisation_layer_by_hand() -> None:
    """(1, 3) has mean 2 and deviation 1, so it becomes (-1, 1); gains (2, 2) and shifts (0, 1) make (-2, 3), and ReLU
    (0, 3). The last layer adds both."""
    transform = Transform(2, 2, 1, 2, generators(0), norm=True)
    transform.weights[0].data = torch.eye(2)[None]
    transform.weights[1].data = torch.ones(1, 2, 1)
    transform.gains[0].data.fill_(2.0)
    transform.shifts[0].data = torch.tensor([[[0.0, 1.0]]])
    torch.testing.assert_close(transform(torch.tensor([[1.0, 3.0]])), torch.tensor([[[3.0]]]), rtol=1e-4, atol=0)


def test_without_residual_a_zero_layer_lets_nothing_through() -> None:
    transform = Transform(3, 4, 2, 3, generators(0), residual=False)
    transform.weights[1].data.zero_()
    torch.testing.assert_close(transform(torch.randn(6, 3)), torch.zeros(1, 6, 2))


def test_weights_of_a_repeat_come_from_its_generator_alone() -> None:
    together = Transform(4, 6, 3, 3, generators(1, 2))
    alone = Transform(4, 6, 3, 3, generators(2))
    for one, other in zip(together.weights, alone.weights, strict=True):
        torch.testing.assert_close(one[1], other[0])


def test_a_row_does_not_depend_on_the_other_rows() -> None:
    transform = Transform(4, 6, 3, 3, generators(0))
    x = torch.randn(5, 4)
    torch.testing.assert_close(transform(x[2:3])[0, 0], transform(x)[0, 2])


def test_the_product_of_each_repeat_has_the_gradients_of_a_batched_product() -> None:
    h, weight = torch.randn(3, 5, 4, requires_grad=True), torch.randn(3, 4, 2, requires_grad=True)
    factor = torch.randn(3, 5, 2)
    expected = torch.autograd.grad((torch.bmm(h, weight) * factor).sum(), (h, weight))
    found = torch.autograd.grad((repeat_product(h, weight) * factor).sum(), (h, weight))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(repeat_product(h, weight), torch.bmm(h, weight))
