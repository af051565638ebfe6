"""Gradients as they travel: whole, or in 16 bits with what was rounded off added to the next one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from search_space.errors import ConfigError, ShapeError

COMPRESSIONS = ("none", "16bit")
LARGEST_HALF = 32768.0
"""Scaled gradients have this largest absolute value: a power of two that a 16-bit float holds."""


class Compressor:
    """Packs the gradients of one shard for one worker.

    With `16bit`, a gradient is divided by a power of two so that its largest element uses the range of a 16-bit float,
    and the rounding error is kept and added to the next gradient. Source: Seide et al. 2014 (error feedback).

    Args:
        kind: `none` or `16bit`.
        size: elements of the shard.
    Raises:
        ConfigError: the kind is unknown.
    """

    def __init__(self, kind: str, size: int) -> None:
        if kind not in COMPRESSIONS:
            raise ConfigError(f"unknown compression {kind!r}; choose from: {', '.join(COMPRESSIONS)}")
        self._kind, self._error = kind, np.zeros(size if kind == "16bit" else 0, dtype=np.float32)

    def pack(self, gradient: NDArray[np.float32]) -> NDArray[np.uint8]:
        """The gradient as bytes: float32 elements, or a float32 scale and float16 elements."""
        if self._kind == "none":
            return gradient.view(np.uint8)
        wanted = gradient + self._error
        largest = float(np.abs(wanted).max(initial=0.0))
        exponent = np.ceil(np.log2(largest / LARGEST_HALF)) if 0.0 < largest < np.inf else 0.0
        scale = np.float32(2.0**exponent)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # a gradient that is not finite stays so, and training says that it diverged
            halves = (wanted / scale).astype(np.float16)
            lost = wanted - halves.astype(np.float32) * scale
        self._error = np.where(np.isfinite(lost), lost, 0.0).astype(np.float32)
        return np.concatenate((np.array([scale], np.float32).view(np.uint8), halves.view(np.uint8)))


def unpack(kind: str, packed: NDArray[np.uint8], size: int) -> NDArray[np.float32]:
    """Read what `Compressor.pack` made.

    Raises:
        ShapeError: the length is not that of a gradient of `size` elements.
    """
    expected = 4 * size if kind == "none" else 4 + 2 * size
    if packed.size != expected:
        raise ShapeError(f"a gradient of {size} elements travels in {expected} bytes, got {packed.size}")
    data = packed.tobytes()
    if kind == "none":
        return np.frombuffer(data, dtype=np.float32)
    scale = np.frombuffer(data, dtype=np.float32, count=1)[0]
    gradient: NDArray[np.float32] = np.frombuffer(data, dtype=np.float16, offset=4).astype(np.float32) * scale
    return gradient
