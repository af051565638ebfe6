"""Dropout for some rows of a batch, with the masks that these rows have when one process trains the whole batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engines.evaluation.dropout import RepeatDropout
from search_space.transform import repeat_product

CHUNK_ROWS = 4096
"""Rows whose masks are drawn at once; a multiple of eight, so that chunks use up whole random words as one does."""


class RowDropout(RepeatDropout):
    """A RepeatDropout over a batch of which this process holds some rows.

    Masks are drawn for all rows of the batch, in the order in which one process draws them, and those of other ranks'
    rows are thrown away. So masks belong to the seed, the step, the layer and the row, and not to the rank; drawing
    them is work that is not divided among ranks.

    Args:
        rate, generators: as for RepeatDropout; seeded alike on every rank.
    """

    def __init__(self, rate: float, generators: Sequence[torch.Generator]) -> None:
        super().__init__(rate, generators)
        self._num_rows, self._places = 0, torch.empty(0, dtype=torch.int64)

    def set_rows(self, num_rows: int, places: torch.Tensor) -> None:
        """Say which rows come next.

        Args:
            num_rows: of the batch.
            places: (n,) ascending places of this process's rows in the batch.
        """
        self._num_rows, self._places = num_rows, places

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Drop from (S, n, W), or from (n, W) that all repeats share; gives (S, n, W)."""
        width = x.shape[-1]
        masks = []
        for first in range(0, self._num_rows, CHUNK_ROWS):
            last = min(first + CHUNK_ROWS, self._num_rows)
            begin, end = torch.searchsorted(self._places, torch.tensor([first, last])).tolist()
            mask = super().__call__(torch.ones(last - first, width))
            masks.append(mask[:, self._places[begin:end] - first])
        return x * torch.cat(masks, dim=1)

    def times(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Drop from (n, F) or (S, n, F) and multiply by (S, F, H); gives (S, n, H)."""
        return repeat_product(self(x), weight)
