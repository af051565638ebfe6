"""The product of a dropped input: equal to dropping and multiplying, whatever the shape, the rate and the threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from engines.evaluation import dropped_product
from engines.evaluation.dropped_product import drop_times


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def case(
    n: int, F: int, H: int, S: int = 2, density: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(n + F + H)
    x = torch.randn(n, F, generator=generator) * (torch.rand(n, F, generator=generator) < density)
    weight = torch.randn(S, F, H, generator=generator).requires_grad_()
    masks = [torch.randint(0, 256, (n * F,), generator=generator, dtype=torch.uint8) for _ in range(S)]
    return x, weight, masks


def by_hand(
    x: torch.Tensor, weight: torch.Tensor, masks: list[torch.Tensor], threshold: int, scale: float
) -> torch.Tensor:
    dropped = torch.stack([torch.where(mask.reshape(x.shape) >= threshold, x * scale, 0.0) for mask in masks])
    return torch.bmm(dropped.double(), weight.double())


# around the boundaries of groups of 8, panels of 128, chunks of 64 rows, blocks of 64 columns and their smaller kinds
@pytest.mark.parametrize("n", [1, 7, 64, 65, 130])
@pytest.mark.parametrize("F", [1, 8, 127, 129, 300])
@pytest.mark.parametrize("H", [1, 7, 8, 9, 32, 33, 64, 100, 128])
def test_result_and_gradient_equal_dropping_and_multiplying(n: int, F: int, H: int) -> None:
    x, weight, masks = case(n, F, H)
    factor = torch.randn(2, n, H)
    found = drop_times(x, weight, masks, 100, 256 / 156)
    expected = by_hand(x, weight, masks, 100, 256 / 156)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
    (gradient,) = torch.autograd.grad((found * factor).sum(), weight)
    (expected_gradient,) = torch.autograd.grad((expected * factor).sum(), weight)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("density", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("threshold", [1, 128, 255])
def test_zeros_of_the_input_are_left_out_too(density: float, threshold: int) -> None:
    x, weight, masks = case(90, 150, 16, density=density)
    found = drop_times(x, weight, masks, threshold, 2.0)
    torch.testing.assert_close(found.double(), by_hand(x, weight, masks, threshold, 2.0), rtol=1e-5, atol=1e-4)


def test_masks_may_be_longer_than_the_input() -> None:
    x, weight, masks = case(5, 11, 4)
    longer = [torch.cat([mask, torch.full((9,), 255, dtype=torch.uint8)]) for mask in masks]
    assert torch.equal(drop_times(x, weight, longer, 90, 1.5), drop_times(x, weight, masks, 90, 1.5))


def test_neither_threads_nor_other_repeats_change_a_bit(two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropped_product, "SERIAL_MULTIPLIES", 0)
    x, weight, masks = case(150, 1000, 128, S=3)
    together = drop_times(x, weight, masks, 128, 2.0)
    (gradient,) = torch.autograd.grad(together.sum(), weight)
    torch.set_num_threads(1)
    for s in range(3):
        one = weight[s : s + 1].detach().requires_grad_()
        alone = drop_times(x, one, masks[s : s + 1], 128, 2.0)
        assert torch.equal(alone[0], together[s])
        assert torch.equal(torch.autograd.grad(alone.sum(), one)[0][0], gradient[s])


def test_a_value_that_is_not_a_number_is_not_hidden() -> None:
    x, weight, _ = case(9, 9, 8)
    x[4, 8] = np.nan
    found = drop_times(x, weight, [torch.full((81,), 255, dtype=torch.uint8)] * 2, 128, 2.0)
    assert found[:, 4].isnan().all()
    assert found.isnan().sum() == 2 * 8


def test_weights_that_do_not_lie_one_after_the_other_are_read_right() -> None:
    x, weight, masks = case(20, 30, 16)
    turned = weight.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
    assert torch.equal(drop_times(x, turned, masks, 64, 1.3), drop_times(x, weight, masks, 64, 1.3))
