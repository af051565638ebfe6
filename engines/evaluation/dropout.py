"""Dropout for S repeats at once, with masks that belong to the repeat and one random integer for eight elements."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engines.evaluation.dropped_product import drop_times
from search_space.transform import repeat_product


class RepeatDropout:
    """Zeroes elements with probability `rate` and scales the others by one over the realised keep probability.

    Drawing a random number an element is the largest cost of training a small decoupled network, so each 64-bit random
    integer serves eight elements: a byte is kept when it is at least t = round(256·rate), which happens with
    probability (256 - t) / 256. Values are scaled by the inverse of exactly that probability, so the mean is unbiased
    although the rate is a multiple of 1/256.

    Repeat s draws from generator s alone: its masks do not depend on which repeats train beside it.

    Args:
        rate: in [0, 1).
        generators: S generators on the device of the data.
    """

    def __init__(self, rate: float, generators: Sequence[torch.Generator]) -> None:
        self._generators = tuple(generators)
        self._threshold = min(round(256 * rate), 255)
        self.keep_probability = (256 - self._threshold) / 256

    def keep_repeats(self, kept: Sequence[int]) -> None:
        """Go on with some of the repeats, by their places among those so far."""
        self._generators = tuple(self._generators[place] for place in kept)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Drop from (S, n, W), or from (n, W) that all repeats share; gives (S, n, W)."""
        S = len(self._generators)
        shape = (S, *x.shape[-2:])
        if self._threshold == 0:
            return x.expand(shape)
        return x * self._mask(shape, x.device)

    def times(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Drop from (S, n, F), or from (n, F) that all repeats share, and multiply by (S, F, H); gives (S, n, H)."""
        shared_data = x.dim() == 2 and not x.requires_grad and x.device.type == "cpu" and x.dtype == torch.float32
        if self._threshold == 0 or not shared_data:
            return repeat_product(self(x) if self._threshold else x, weight)
        words = [_random_words(x.numel(), generator, x.device) for generator in self._generators]
        masks = [of_repeat.view(torch.uint8) for of_repeat in words]
        return drop_times(x.contiguous(), weight, masks, self._threshold, 1.0 / self.keep_probability)

    def _mask(self, shape: tuple[int, ...], device: torch.device) -> torch.Tensor:
        """Float tensor of 0 and 1 / keep_probability."""
        elements = shape[1] * shape[2]
        words = torch.stack([_random_words(elements, generator, device) for generator in self._generators])
        # compared before the tail is cut off: on contiguous memory that is three times as fast
        kept = (words.view(torch.uint8) >= self._threshold)[:, :elements].reshape(shape)
        return kept.to(torch.float32).mul_(1.0 / self.keep_probability)


def _random_words(num_bytes: int, generator: torch.Generator, device: torch.device) -> torch.Tensor:
    """Random bytes, in whole 64-bit words."""
    words = torch.empty((num_bytes + 7) // 8, dtype=torch.int64, device=device)
    return words.random_(-(2**63), None, generator=generator)  # the full range: every byte is uniform
