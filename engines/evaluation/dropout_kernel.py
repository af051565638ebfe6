"""The compiled loop of dropout. Importing this module loads numba; `dropout.py` does so on first use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
from numba.core import types


def _drop(mask: Any, threshold: Any, x: Any, scale: Any, out: Any) -> None:
    """Write x·scale into `out` where the byte of `mask` is at least `threshold`, and 0 elsewhere.

    Args:
        mask: (n,) uint8 or longer.
        x, out: (n,) float32.
    """
    zero = numba.float32(0.0)
    for i in range(x.size):
        out[i] = x[i] * scale if mask[i] >= threshold else zero


@functools.cache
def compiled_drop() -> Callable[..., None]:
    """`_drop`, from the cache on disk when it is there."""
    bytes_, floats = types.Array(types.uint8, 1, "C", readonly=True), types.Array(types.float32, 1, "C", readonly=True)
    signature = types.void(bytes_, types.uint8, floats, types.float32, types.Array(types.float32, 1, "C"))
    loop: Callable[..., None] = numba.njit([signature], cache=True, nogil=True)(_drop)
    return loop
