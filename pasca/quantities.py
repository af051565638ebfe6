"""Reads durations and sizes as people write them."""

from __future__ import annotations

import math
import re

from search_space.errors import ConfigError

_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)")
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)")


def parse_seconds(value: float | str, what: str = "a duration") -> float:
    """Read a duration: a number of seconds, or text such as `90`, `90s`, `10m`, `1h30m`.

    Raises:
        ConfigError: it is not a duration, or not longer than nothing.
    """
    seconds = math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str):
        seconds = _seconds(value.strip().lower())
    if not (math.isfinite(seconds) and seconds > 0):
        raise ConfigError(
            f"{what} is a number of seconds or a text such as 90s, 10m, 1h30m, and above 0; got {value!r}"
        )
    return seconds


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip() or any(unit not in _SECONDS for _, unit in parts):
        return math.nan
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def parse_bytes(value: int | str, what: str = "a size") -> int:
    """Read a size: a number of bytes, or text such as `500MB`, `4GiB`.

    Raises:
        ConfigError: it is not a size, or not larger than nothing.
    """
    size = 0.0
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is not None:
            size = float(match[1]) * _BYTES.get(match[2].lower(), 0)
    if size < 1:
        raise ConfigError(f"{what} is a number of bytes or a text such as 500MB, 4GiB, and above 0; got {value!r}")
    return int(size)


def seconds_text(seconds: float) -> str:
    """A duration in two units at most: `0.8 s`, `42 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
