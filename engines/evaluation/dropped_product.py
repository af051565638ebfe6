"""The first layer of a training step: a dropped input times weights, without the multiplications by zero.

The joined features are the widest that a decoupled network multiplies, and while it trains half of them are dropped
(docs/decisions/0008). `drop_times` is the same as dropping and multiplying, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

# Below this many multiply-adds, zeros included, the calling thread works alone: torch's own threads stay awake for some
# milliseconds after each of its operations, and would be in the way of others.
SERIAL_MULTIPLIES = 200_000_000
CHUNKS_PER_THREAD = 2


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

        def compute(repeat: int, first: int, last: int) -> None:
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

        _shared_out(compute, S, n, CHUNK_ROWS, S * n * F * H)
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

        def compute(repeat: int, first: int, last: int) -> None:
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

        _shared_out(compute, S, F, PANEL, S * n * F * H)
        return None, out, None, None, None


def _shared_out(
    compute: Callable[[int, int, int], None], num_repeats: int, length: int, step: int, multiplies: int
) -> None:
    """Call compute(repeat, first, last) so that all of `length` is covered for each repeat, by as many threads as torch
    uses; pieces begin at multiples of `step`."""
    threads = torch.get_num_threads() if multiplies >= SERIAL_MULTIPLIES else 1
    pieces = min(-(-CHUNKS_PER_THREAD * threads // num_repeats), -(-length // step)) if threads > 1 else 1
    size = -(-length // (pieces * step)) * step
    tasks = [(s, first, min(first + size, length)) for s in range(num_repeats) for first in range(0, length, size)]
    if threads == 1:
        for task in tasks:
            compute(*task)
        return
    left = iter(tasks)

    def compute_what_is_left() -> None:
        for task in left:  # shared: whichever thread is free takes the next piece
            compute(*task)

    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(compute_what_is_left) for _ in range(threads - 1)]
        compute_what_is_left()
        for other in others:
            other.result()
