"""The dense part between the two graph stages: an MLP for S repeats at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import nn

from search_space.dropout import RepeatDropout


class Transform(nn.Module):
    """K_trans linear layers with ReLU and dropout between them; weights carry a leading repeat dimension.

    Hidden layers of equal width are joined by a residual, so it acts from K_trans = 3 on: h(l) = ReLU(W h(l-1) + b) +
    h(l-1). Repeat s starts from generator s alone (Glorot uniform weights, zero biases). No layer mixes rows, so a
    node's scores do not depend on the other nodes in the batch.

    Args:
        in_width, hidden_width, num_classes: layer sizes.
        num_layers: K_trans, 1 or more; with 1 the transform is linear and has no hidden layer.
        generators: one per repeat.
    """

    def __init__(
        self,
        in_width: int,
        hidden_width: int,
        num_classes: int,
        num_layers: int,
        generators: Sequence[torch.Generator],
    ) -> None:
        super().__init__()
        widths = [in_width, *[hidden_width] * (num_layers - 1), num_classes]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for fan_in, fan_out in itertools.pairwise(widths):
            limit = math.sqrt(6.0 / (fan_in + fan_out))
            starts = [torch.empty(fan_in, fan_out).uniform_(-limit, limit, generator=g) for g in generators]
            self.weights.append(nn.Parameter(torch.stack(starts)))
            self.biases.append(nn.Parameter(torch.zeros(len(starts), 1, fan_out)))

    def forward(
        self, x: torch.Tensor, input_dropout: RepeatDropout | None = None, hidden_dropout: RepeatDropout | None = None
    ) -> torch.Tensor:
        """Class scores before the softmax.

        Args:
            x: (n, in_width) shared by all repeats, or (S, n, in_width).
            input_dropout, hidden_dropout: given while training only.
        Returns:
            (S, n, C).
        """
        h = input_dropout(x) if input_dropout else x
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            y = _times(h, weight) + bias
            if layer < last:
                y = torch.relu(y)
                if h.shape[-1] == y.shape[-1] and layer > 0:
                    y = y + h
                if hidden_dropout:
                    y = hidden_dropout(y)
            h = y
        return h


def _times(h: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """(n, in) or (S, n, in) times (S, in, out)."""
    if h.dim() == 3:
        return torch.bmm(h, weight)
    S, fan_in, fan_out = weight.shape
    # one wide product instead of S narrow ones: (n, in) @ (in, S·out) -> (n, S, out) -> (S, n, out)
    wide = h @ weight.transpose(0, 1).reshape(fan_in, S * fan_out)
    return wide.reshape(-1, S, fan_out).transpose(0, 1)
