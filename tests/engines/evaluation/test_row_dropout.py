"""The masks of rows are those that one process draws for the whole batch."""

from __future__ import annotations

import pytest
import torch

from engines.evaluation import row_dropout
from engines.evaluation.dropout import RepeatDropout
from engines.evaluation.row_dropout import RowDropout
from engines.evaluation.training import seed_generators

CPU = torch.device("cpu")


@pytest.mark.parametrize("width", [3, 8])
@pytest.mark.parametrize("chunk_rows", [8, 4096])
def test_rows_have_the_masks_of_the_whole_batch(monkeypatch: pytest.MonkeyPatch, width: int, chunk_rows: int) -> None:
    monkeypatch.setattr(row_dropout, "CHUNK_ROWS", chunk_rows)
    x = torch.rand(21, width) + 1.0
    whole = RepeatDropout(0.5, seed_generators([1, 2], CPU))
    expected = [whole(x), whole(x)]  # two layers in turn
    for places in (torch.tensor([0, 3, 8, 20]), torch.arange(21), torch.tensor([], dtype=torch.int64)):
        part = RowDropout(0.5, seed_generators([1, 2], CPU))
        part.set_rows(21, places)
        for layer in expected:
            torch.testing.assert_close(part(x[places]), layer[:, places], rtol=0, atol=0)


def test_nothing_is_dropped_at_rate_zero() -> None:
    part = RowDropout(0.0, seed_generators([1, 2], CPU))
    part.set_rows(4, torch.tensor([1, 2]))
    x = torch.rand(2, 5)
    torch.testing.assert_close(part(x), x.expand(2, 2, 5), rtol=0, atol=0)
