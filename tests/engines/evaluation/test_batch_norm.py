"""Batch normalisation while training: what torch's layers give, and the same again from folded weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from engines.evaluation.batch_norm import BatchNormalised
from search_space.architecture import Architecture
from search_space.assembly import Network

NUM_FEATURES, NUM_CLASSES, WIDTH = 5, 3, 4


def network(text: str, seeds: list[int], num_nodes: int | None = None) -> Network:
    design = Architecture.parse(text)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    return Network(design, NUM_FEATURES, NUM_CLASSES, WIDTH, generators, num_nodes)


def trained(text: str, seeds: list[int], inputs: list[Any], num_nodes: int | None = None) -> BatchNormalised:
    """Some steps towards nothing in particular, so that no gain, shift or mean stays where it began."""
    learner = BatchNormalised(network(text, seeds, num_nodes))
    optimiser = torch.optim.Adam(learner.parameters(), lr=0.05)
    for _ in range(5):
        optimiser.zero_grad()
        (learner(*inputs) ** 2 - learner(*inputs)).sum().backward()
        optimiser.step()
    learner.settle()
    return learner


def test_by_hand() -> None:
    """One column of 1 and 3: mean 2, variance 1 in the step; 2 for the running mean, over n - 1."""
    generators = [torch.Generator().manual_seed(0)]
    learner = BatchNormalised(Network(Architecture.parse("-/-/mlp-2/-"), 1, 1, 1, generators))
    transform = learner.network.transform
    with torch.no_grad():
        for weight in transform.weights:
            weight.fill_(2.0)
        learner.gains[0].fill_(3.0)
        learner.shifts[0].fill_(1.0)
    # input: -3, 3; times 2: -6, 6, that is mean 0 and deviation 6; normalised -1, 1, and 1 on top; ReLU 0, 2; times 2
    out = learner(torch.tensor([[1.0], [3.0]]))
    torch.testing.assert_close(out.flatten(), torch.tensor([0.0, 4.0]), atol=1e-4, rtol=0)
    learner.settle()
    # x = 4, with means 2 and 0, variances 2 and 72: (4 - 2) / sqrt 2 · 3, times 2, over sqrt 72, and 1 on top
    hidden = 2 * 3 * 2 / 2**0.5 / 72**0.5 + 1
    settled = learner.settled(torch.tensor([[4.0]]))
    torch.testing.assert_close(settled.flatten(), torch.tensor([2 * hidden]), atol=1e-4, rtol=0)


def test_steps_are_those_of_torch() -> None:
    learner = BatchNormalised(network("-/-/mlp-3/-@residual=off", [3]))
    transform = learner.network.transform
    x = torch.randn(9, 5, generator=torch.Generator().manual_seed(1))
    h = nn.BatchNorm1d(5)(x)
    for weight, bias in zip(transform.weights[:-1], transform.biases[:-1], strict=True):
        h = torch.relu(nn.BatchNorm1d(4)(h @ weight[0] + bias[0]))
    h = h @ transform.weights[-1][0] + transform.biases[-1][0]
    torch.testing.assert_close(learner(x)[0], h)


@pytest.mark.parametrize(
    "text",
    [
        "-/-/mlp-2/-",
        "-/-/mlp-4/-",
        "-/-/mlp-4/-@residual=off",
        "augmented^1/adaptive/mlp-3/-",
        "-/-/mlp-3/-@labels=1,adjacency=rows,structure=counts",
    ],
)
def test_the_settled_network_does_what_running_means_would(text: str) -> None:
    generator = torch.Generator().manual_seed(2)
    n = 12
    x = torch.randn(2, n, 5, generator=generator) if "adaptive" in text else torch.randn(n, 5, generator=generator)
    inputs: list[Any] = [x]
    if "labels" in text:
        rows = (torch.rand(n, n, generator=generator) < 0.3).float().to_sparse()
        inputs += [None, None, torch.rand(n, 3, generator=generator), rows, torch.randn(n, 6, generator=generator)]
    learner = trained(text, [0, 1], inputs, n)

    def on_average(place: int, values: torch.Tensor) -> torch.Tensor:
        scale, shift = learner._map(place)
        return values * scale + shift

    with torch.no_grad():
        expected = learner.network(*inputs, normalise=on_average)
        torch.testing.assert_close(learner.settled(*inputs), expected, rtol=1e-4, atol=1e-5)
        assert not torch.allclose(learner.network(*inputs), expected, atol=1e-2), "folding changes something"


def test_running_means_are_those_of_torch_once_their_beginning_is_forgotten() -> None:
    learner, theirs = BatchNormalised(network("-/-/mlp-2/-", [0])), nn.BatchNorm1d(5)
    generator = torch.Generator().manual_seed(4)
    for _ in range(200):
        x = 2.0 * torch.randn(6, 5, generator=generator) + 1.0
        learner(x)
        theirs(x)
    x = torch.randn(3, 5, generator=generator)
    scale, shift = learner._map(0)
    torch.testing.assert_close((x * scale + shift)[0], theirs.eval()(x))


def test_before_any_step_it_is_the_network_itself() -> None:
    learner = BatchNormalised(network("-/-/mlp-2/-", [0]))
    learner.settle()
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(5))
    assert torch.equal(learner.settled(x), learner.network(x))
