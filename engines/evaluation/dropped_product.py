"""The first layer of a training step: a dropped input times weights, without the multiplications by zero.

The joined features are the widest that a decoupled network multiplies, and while it trains half of them are dropped
(docs/decisions/0008). `drop_times` is the same as dropping and multiplying, to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from engines.evaluation.work_sharing import share_out

# Below this many multiply-adds, zeros included, the calling thread works alone: torch's own threads stay awake for some
# milliseconds after each of its operations, and would be in the way of others.
SERIAL_MULTIPLIES = 200_000_000
PIECES_PER_THREAD = 2

Piece = tuple[int, int, int]
"""A repeat, and the first row and the one after the last."""


def drop_times(
    x: torch.Tensor, weight: torch.Tensor, masks: Sequence[torch.Tensor], threshold: int, scale: float
) -> torch.Tensor:
    """(S, n, H): for each repeat, the kept elements of x times `scale`, times the repeat's weights.

    Args:
        x: (n, F) float32 on the CPU, C-contiguous, shared by the repeats and not learned.
        weight: (S, F, H); gets a gradient.
        masks: S of at least n·F random bytes each, for the elements of x row by row; those of at least `threshold` are
            kept.
    """
    product: torch.Tensor = _DropTimes.apply(x, weight, masks, threshold, scale)  # type: ignore[no-untyped-call]
    return product


class _DropTimes(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, x: torch.Tensor, weight: torch.Tensor, masks: Sequence[torch.Tensor], threshold: int, scale: float
    ) -> torch.Tensor:
        from engines.evaluation.dropped_product_kernel import CHUNK_ROWS, compiled_forward

        loop = compiled_forward()
        (n, F), (S, _, H) = x.shape, weight.shape
        out, bits = torch.empty(S, n, H), np.empty((S, n, -(-F // 8)), np.uint8)
        elements, weights, results = x.view(-1).numpy(), weight.detach().contiguous().numpy(), out.numpy()
        drawn = [mask.numpy() for mask in masks]

        def compute(piece: Piece) -> None:
            repeat, first, last = piece
            loop(
                drawn[repeat],
                np.uint8(threshold),
                elements,
                F,
                np.float32(scale),
                weights[repeat],
                bits[repeat],
                results[repeat],
                first,
                last,
            )

        threads = _threads_for(S * n * F * H)
        share_out(compute, _pieces(S, n, CHUNK_ROWS, threads), threads)
        context.kept, context.scale = bits, scale
        context.save_for_backward(x)
        return out

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradient of the weights; x has none."""
        from engines.evaluation.dropped_product_kernel import PANEL, compiled_backward

        loop = compiled_backward()
        (x,) = context.saved_tensors
        F, (S, n, H) = x.shape[1], gradient.shape
        out = torch.empty(S, F, H)
        elements, gradients, results = x.view(-1).numpy(), gradient.contiguous().numpy(), out.numpy()

        def compute(piece: Piece) -> None:
            repeat, first, last = piece
            loop(
                context.kept[repeat],
                elements,
                F,
                np.float32(context.scale),
                gradients[repeat],
                results[repeat],
                first,
                last,
            )

        threads = _threads_for(S * n * F * H)
        share_out(compute, _pieces(S, F, PANEL, threads), threads)
        return None, out, None, None, None


def _pieces(num_repeats: int, length: int, step: int, threads: int) -> list[Piece]:
    """All of `length` for each repeat, cut at multiples of `step` so that every thread has work."""
    wanted = 1 if threads == 1 else -(-PIECES_PER_THREAD * threads // num_repeats)
    size = -(-length // (min(wanted, -(-length // step)) * step)) * step
    return [(s, first, min(first + size, length)) for s in range(num_repeats) for first in range(0, length, size)]


def _threads_for(multiplies: int) -> int:
    return torch.get_num_threads() if multiplies >= SERIAL_MULTIPLIES else 1
