"""Batched dropout: unbiased, tied to the repeat, and uniform in every byte of its random integers."""

from __future__ import annotations

import pytest
import torch

from engines.evaluation.dropout import RepeatDropout


def generators(*seeds: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_the_mean_is_unbiased(rate: float) -> None:
    dropout = RepeatDropout(rate, generators(0, 1))
    ones = torch.ones(1000, 500)
    dropped = dropout(ones)
    kept = dropout.keep_probability
    assert abs(kept - (1 - rate)) <= 1 / 512
    standard_error = ((1 - kept) / kept / ones.numel()) ** 0.5
    for repeat in dropped:
        assert abs(repeat.mean().item() - 1.0) < 5 * standard_error


def test_every_position_within_a_random_integer_is_kept_alike() -> None:
    dropout = RepeatDropout(0.3, generators(5))
    kept = (dropout(torch.ones(1, 8 * 100_000)) > 0).reshape(100_000, 8).float().mean(dim=0)
    standard_error = (dropout.keep_probability * (1 - dropout.keep_probability) / 100_000) ** 0.5
    assert (kept - dropout.keep_probability).abs().max().item() < 5 * standard_error


def test_masks_of_a_repeat_do_not_depend_on_its_neighbours() -> None:
    x = torch.randn(7, 13)
    together = RepeatDropout(0.5, generators(1, 2, 3))(x)
    alone = RepeatDropout(0.5, generators(2))(x)
    torch.testing.assert_close(together[1], alone[0])
    assert not torch.equal(together[0], together[1])


def test_a_rate_of_zero_changes_nothing_and_draws_nothing() -> None:
    generator = torch.Generator().manual_seed(4)
    before = generator.get_state()
    x = torch.randn(2, 3, 4)
    torch.testing.assert_close(RepeatDropout(0.0, [generator, generator])(x), x)
    assert torch.equal(generator.get_state(), before)


def test_two_draws_differ() -> None:
    dropout = RepeatDropout(0.5, generators(0))
    x = torch.ones(20, 20)
    assert not torch.equal(dropout(x), dropout(x))


@pytest.mark.parametrize("shared", [True, False])
def test_data_without_a_gradient_is_dropped_by_the_same_masks(shared: bool) -> None:
    x = torch.randn(11, 13) if shared else torch.randn(2, 11, 13)
    plain = RepeatDropout(0.3, generators(1, 2))(x)
    learning = RepeatDropout(0.3, generators(1, 2))(x.clone().requires_grad_())
    assert torch.equal(plain, learning.detach())


def test_a_slice_of_a_wider_array_is_dropped_alike() -> None:
    wide = torch.randn(9, 20)
    assert torch.equal(
        RepeatDropout(0.5, generators(3))(wide[:, 4:11]), RepeatDropout(0.5, generators(3))(wide[:, 4:11].clone())
    )
