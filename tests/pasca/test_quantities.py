"""Durations and sizes as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from pasca.quantities import parse_bytes, parse_seconds, seconds_text
from search_space.errors import ConfigError


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90.0),
        (0.5, 0.5),
        ("90", 90.0),
        ("90s", 90.0),
        ("10m", 600.0),
        ("10 min", 600.0),
        ("1h30m", 5400.0),
        ("1h 30m", 5400.0),
        ("1.5h", 5400.0),
        ("250ms", 0.25),
        ("2d", 172800.0),
        ("1E2", 100.0),
    ],
)
def test_a_duration_is_read(written: Any, seconds: float) -> None:
    assert parse_seconds(written) == pytest.approx(seconds)


@pytest.mark.parametrize("written", ["", "soon", "10x", "m", "-5", -5, 0, "0s", "nan", "inf", True, None, "10m later"])
def test_what_is_no_duration_is_refused_with_its_text(written: Any) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_seconds(written, "time_budget")
    assert repr(written) in str(refusal.value)


@pytest.mark.parametrize(
    ("written", "size"),
    [(1000, 1000), ("1000", 1000), ("4GB", 4 * 10**9), ("4GiB", 2**32), ("500 MB", 5 * 10**8), ("1.5kB", 1500)],
)
def test_a_size_is_read(written: Any, size: int) -> None:
    assert parse_bytes(written) == size


@pytest.mark.parametrize("written", ["", "4XB", "GB", 0, -1, "0", 1.5, True, None, "4GB more"])
def test_what_is_no_size_is_refused_with_its_text(written: Any) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_bytes(written, "memory")
    assert repr(written) in str(refusal.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.84, "0.8 s"), (42.4, "42 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_a_duration_is_told_in_two_units(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
