"""Gradients in 16 bits take half the bytes, and what is rounded off is not lost."""

from __future__ import annotations

import numpy as np
import pytest

from engines.evaluation.compression import Compressor, unpack
from search_space.errors import ConfigError, ShapeError


def random_gradient(size: int = 200, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(size) * scale).astype(np.float32)


def test_without_compression_every_bit_arrives() -> None:
    gradient = random_gradient()
    np.testing.assert_array_equal(unpack("none", Compressor("none", 200).pack(gradient), 200), gradient)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_16_bits_keep_three_digits_at_any_scale(scale: float) -> None:
    gradient = random_gradient(scale=scale)
    packed = Compressor("16bit", 200).pack(gradient)
    assert packed.size == 4 + 400
    np.testing.assert_allclose(unpack("16bit", packed, 200), gradient, atol=np.abs(gradient).max() * 1e-3)


def test_the_sum_of_many_small_gradients_arrives() -> None:
    # beside a large element the small one is below what 16 bits resolve
    gradient = np.array([1.0, 1e-9], np.float32)
    compressor, total = Compressor("16bit", 2), np.zeros(2)
    for _ in range(2000):
        total += unpack("16bit", compressor.pack(gradient), 2)
    np.testing.assert_allclose(total, [2000, 2e-6], rtol=0.03)


def test_zero_and_nothing_can_be_packed() -> None:
    np.testing.assert_array_equal(unpack("16bit", Compressor("16bit", 3).pack(np.zeros(3, np.float32)), 3), 0)
    assert unpack("16bit", Compressor("16bit", 0).pack(np.zeros(0, np.float32)), 0).size == 0


def test_what_is_not_finite_stays_so() -> None:
    gradient = np.array([np.nan, np.inf, 1.0], np.float32)
    assert not np.isfinite(unpack("16bit", Compressor("16bit", 3).pack(gradient), 3)[:2]).any()


def test_a_gradient_of_another_length_is_refused() -> None:
    with pytest.raises(ShapeError, match="3 elements travels in 12 bytes, got 8"):
        unpack("none", np.zeros(8, np.uint8), 3)


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown compression '8bit'; choose from: none, 16bit"):
        Compressor("8bit", 3)
