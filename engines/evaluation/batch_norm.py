"""Batch normalisation while a network learns, folded into its weights whenever it is looked at.

The joined features, and what each hidden layer gives before its ReLU, are normalised column by column,

    y = γ (x - μ) / √(σ² + ε) + β,

with mean μ and variance σ² over the rows of the step, and γ and β learned (Ioffe and Szegedy 2015; on the input as well
as in Feng et al. 2020, GRAND). The input has no β, and hidden layers have no biases besides it: the next normalisation
takes the mean out again, so that they would learn from rounding alone.

For validation and afterwards running means stand for μ and σ². Each of these maps is then linear and stands next to a
linear layer, so that a network without any normalisation computes the same: what is kept, timed and exported is that
network.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from search_space.assembly import Network
from search_space.transform import NORM_EPSILON

MOMENTUM = 0.1
"""Weight of the newest step in the running means."""


class BatchNormalised(nn.Module):
    """A network of S repeats that learns with batch normalisation.

    Args:
        network: whose weights it learns.
    Attributes:
        settled: a network without normalisation that computes, after `settle`, what this one does on average.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        # in a tuple, so that its weights are not taken for learned ones
        self._settled = (copy.deepcopy(network),)
        widths = [weight.shape[1] for weight in network.transform.weights]
        shapes = [(network.transform.weights[0].shape[0], 1, width) for width in widths]
        device = network.transform.weights[0].device
        self.gains = nn.ParameterList([nn.Parameter(torch.ones(shape, device=device)) for shape in shapes])
        self.shifts = nn.ParameterList([nn.Parameter(torch.zeros(shape, device=device)) for shape in shapes[1:]])
        for bias in network.transform.biases[:-1]:
            bias.requires_grad_(False)
        for place, shape in enumerate(shapes):
            self.register_buffer(f"mean{place}", torch.zeros(shape, device=device))
            self.register_buffer(f"variance{place}", torch.zeros(shape, device=device))
        self._num_steps = 0

    @property
    def settled(self) -> Network:
        """See the class."""
        return self._settled[0]

    def forward(self, *inputs: Any) -> torch.Tensor:
        """As `Network.forward`, with the rows of this step as the batch."""
        self._num_steps += 1
        scores: torch.Tensor = self.network(*inputs, normalise=self._normalise)
        return scores

    def settle(self) -> None:
        """Fold the running means, γ and β into the weights and biases of `settled`."""
        with torch.no_grad():
            for mine, theirs in zip(self.network.parameters(), self.settled.parameters(), strict=True):
                theirs.copy_(mine)
            if self._num_steps == 0:
                return
            transform = self.settled.transform
            scale, shift = self._map(0)
            transform.biases[0] += shift @ transform.weights[0]
            transform.weights[0] *= scale.transpose(1, 2)
            for place in range(1, len(self.gains)):
                scale, shift = self._map(place)
                before = self.settled.first_layer_parameters() if place == 1 else [transform.weights[place - 1]]
                for weights in before:
                    weights *= scale
                transform.biases[place - 1].mul_(scale).add_(shift)

    def keep_repeats(self, rows: torch.Tensor) -> None:
        """Go on with the running means of some of the repeats; their weights are the caller's to keep."""
        for name, buffer in list(self.named_buffers(recurse=False)):
            self.register_buffer(name, buffer[rows])

    def _normalise(self, place: int, x: torch.Tensor) -> torch.Tensor:
        variance, mean = torch.var_mean(x, dim=-2, correction=0, keepdim=True)
        with torch.no_grad():
            n = x.shape[-2]
            self.get_buffer(f"mean{place}").lerp_(mean, MOMENTUM)
            self.get_buffer(f"variance{place}").lerp_(variance * (n / max(n - 1, 1)), MOMENTUM)
        y: torch.Tensor = (x - mean) * torch.rsqrt(variance + NORM_EPSILON) * self.gains[place]
        return y if place == 0 else y + self.shifts[place - 1]

    def _map(self, place: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What that place does to x on average: scale · x + shift, both (S, 1, width)."""
        weight_so_far = 1.0 - (1.0 - MOMENTUM) ** self._num_steps  # the running means begin at zero
        mean = self.get_buffer(f"mean{place}") / weight_so_far
        variance = self.get_buffer(f"variance{place}") / weight_so_far
        scale = self.gains[place] * torch.rsqrt(variance + NORM_EPSILON)
        return scale, (0.0 if place == 0 else self.shifts[place - 1]) - mean * scale
