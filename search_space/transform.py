"""The dense part between the two graph stages: an MLP for S repeats at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import nn

Dropout = Callable[[torch.Tensor], torch.Tensor]
"""From (n, W) that all repeats share, or (S, n, W), to (S, n, W)."""


Normalise = Callable[[int, torch.Tensor], torch.Tensor]
"""From a place and values of (n, W) or (S, n, W) to (S, n, W): place 0 is the input, l what hidden layer l gives."""

NORM_EPSILON = 1e-5
"""Added to the variance by a normalisation layer."""


class InputDropout(Protocol):
    """Dropout of the first layer's input, which may leave out what it dropped instead of multiplying by zero."""

    def times(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """(n, in) that all repeats share, or (S, n, in), dropped and then times (S, in, out): (S, n, out)."""
        ...


class Transform(nn.Module):
    """K_trans linear layers with ReLU and dropout between them; weights carry a leading repeat dimension.

    Hidden layers of equal width are joined by a residual, so it acts from K_trans = 3 on: h(l) = ReLU(W h(l-1) + b) +
    h(l-1). A normalisation layer stands before each ReLU: ReLU(LayerNorm(W h(l-1) + b)), with gains and shifts (Ba et
    al. 2016). Repeat s starts from generator s alone (Glorot uniform weights, zero biases). No layer mixes rows, so a
    node's scores do not depend on the other nodes in the batch.

    Args:
        in_width, hidden_width, num_classes: layer sizes.
        num_layers: K_trans, 1 or more; with 1 the transform is linear and has no hidden layer.
        generators: one per repeat.
        norm: whether hidden layers are normalised.
        residual: whether hidden layers of equal width are joined.
    """

    def __init__(
        self,
        in_width: int,
        hidden_width: int,
        num_classes: int,
        num_layers: int,
        generators: Sequence[torch.Generator],
        *,
        norm: bool = False,
        residual: bool = True,
    ) -> None:
        super().__init__()
        self._residual, self.num_classes = residual, num_classes
        widths = [in_width, *[hidden_width] * (num_layers - 1), num_classes]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for fan_in, fan_out in itertools.pairwise(widths):
            self.weights.append(nn.Parameter(glorot(fan_in, fan_out, generators)))
            self.biases.append(nn.Parameter(torch.zeros(len(generators), 1, fan_out)))
        num_norms, shape = (num_layers - 1 if norm else 0), (len(generators), 1, hidden_width)
        self.gains = nn.ParameterList([nn.Parameter(torch.ones(shape)) for _ in range(num_norms)])
        self.shifts = nn.ParameterList([nn.Parameter(torch.zeros(shape)) for _ in range(num_norms)])

    def forward(
        self,
        x: torch.Tensor,
        input_dropout: InputDropout | None = None,
        hidden_dropout: Dropout | None = None,
        added: torch.Tensor | None = None,
        normalise: Normalise | None = None,
    ) -> torch.Tensor:
        """Class scores before the softmax.

        Args:
            x: (n, in_width) shared by all repeats, or (S, n, in_width).
            input_dropout, hidden_dropout: given while training only.
            added: (S, n, width of the first layer) what further inputs add to its products.
            normalise: applied to the input and before each ReLU; while training only.
        Returns:
            (S, n, C).
        """
        h, last = x if normalise is None else normalise(0, x), len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            y = (input_dropout.times(h, weight) if input_dropout and layer == 0 else repeat_product(h, weight)) + bias
            if added is not None and layer == 0:
                y = y + added
            if layer < last:
                if self.gains:
                    y = F.layer_norm(y, y.shape[-1:], eps=NORM_EPSILON) * self.gains[layer] + self.shifts[layer]
                if normalise is not None:
                    y = normalise(layer + 1, y)
                y = torch.relu(y)
                if self._residual and layer > 0 and h.shape[-1] == y.shape[-1]:
                    y = y + h
                if hidden_dropout:
                    y = hidden_dropout(y)
            h = y
        return h


def glorot(fan_in: int, fan_out: int, generators: Sequence[torch.Generator]) -> torch.Tensor:
    """Starting weights of a layer, uniform in ±sqrt(6 / (in + out)), each repeat's from its generator: (S, in, out)."""
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    return torch.stack([torch.empty(fan_in, fan_out).uniform_(-limit, limit, generator=g) for g in generators])


def repeat_product(h: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """(n, in) or (S, n, in) times (S, in, out)."""
    if h.dim() == 3:
        if h.device.type != "cpu":
            return torch.bmm(h, weight)
        product: torch.Tensor = _RepeatProduct.apply(h, weight)  # type: ignore[no-untyped-call]
        return product
    S, fan_in, fan_out = weight.shape
    # one wide product instead of S narrow ones: (n, in) @ (in, S·out) -> (n, S, out) -> (S, n, out)
    wide = h @ weight.transpose(0, 1).reshape(fan_in, S * fan_out)
    return wide.reshape(-1, S, fan_out).transpose(0, 1)


class _RepeatProduct(torch.autograd.Function):
    """`torch.bmm`, one repeat after the other: on CPUs the batched product takes a slower way, most so backwards."""

    @staticmethod
    def forward(context: Any, h: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """(S, n, in) times (S, in, out)."""
        context.save_for_backward(h, weight)
        return _products(h, weight)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Gradients of both factors, where they are asked for."""
        h, weight = context.saved_tensors
        of_h = _products(gradient, weight.transpose(1, 2)) if context.needs_input_grad[0] else None
        of_weight = _products(h.transpose(1, 2), gradient) if context.needs_input_grad[1] else None
        return of_h, of_weight


def _products(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """(S, a, b) times (S, b, c)."""
    out = torch.empty(one.shape[0], one.shape[1], other.shape[2], dtype=one.dtype)
    for s in range(one.shape[0]):
        torch.mm(one[s], other[s], out=out[s])
    return out
