"""Half precision and its error, files that say what they hold, and rows from several parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engines.evaluation.hop_files import (
    HEADER_BYTES,
    ColumnTiles,
    HalfRows,
    HopFile,
    encode,
    factors_of,
    hop_bytes,
    new_file,
    seal,
    sealed_bytes,
    unsealed,
    writable,
)

ABOUT = {"matrix": "a", "restart": 0.1, "k": 3}
VALUES = np.random.default_rng(0).standard_normal((7, 3), dtype=np.float32)


def halves(values: Any) -> HalfRows:
    factors = factors_of(values)
    assert factors is not None
    stored = np.empty(values.shape, np.float16)
    encode(values, factors, stored)
    return HalfRows(stored, factors)


@settings(max_examples=200, deadline=None)
@given(arrays(np.float32, (9, 4), elements=st.floats(-(2.0**127), 2.0**127, width=32, allow_subnormal=False)))
def test_half_precision_keeps_the_bound_it_states(values: Any) -> None:
    found, exact = halves(values).array().astype(np.float64), values.astype(np.float64)
    bound = np.maximum(2.0**-11 * np.abs(exact), 2.0**-39 * np.abs(exact).max(axis=0))
    # below 2^-111 a column has fewer bits, and nothing is off by more than the smallest step of float16 there
    assert (np.abs(found - exact) <= np.maximum(bound, 2.0**-150)).all()


def test_values_past_float16_are_kept_as_well_as_others() -> None:
    values = np.array([[65504.0, 1e-7], [1e30, 3e-7], [70000.0, 0.0]], np.float32)
    np.testing.assert_allclose(halves(values).array()[1:, 0], values[1:, 0], rtol=2**-11, atol=1e30 * 2**-39)
    np.testing.assert_allclose(halves(values).array()[:, 1], values[:, 1], rtol=2**-11)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_that_are_not_finite_have_no_half_precision(value: float) -> None:
    values = VALUES.copy()
    values[3, 1] = value
    assert factors_of(values) is None


def sealed(path: Path, dtype: str) -> Path:
    shape = VALUES.shape
    new_file(path, sealed_bytes(shape, dtype))
    out, factors = writable(path, shape, dtype, HEADER_BYTES), None
    if dtype == "float16":
        factors = factors_of(VALUES)
        assert factors is not None
        encode(VALUES, factors, out)
    else:
        out[:] = VALUES
    seal(path, shape, factors, ABOUT, durable=True)
    return path


@pytest.mark.parametrize(("dtype", "error"), [("float32", 0.0), ("float16", 2.0**-11)])
def test_a_sealed_file_comes_back(dtype: str, error: float, tmp_path: Path) -> None:
    path = sealed(tmp_path / "hop", dtype)
    assert path.stat().st_size == sealed_bytes(VALUES.shape, dtype)
    found = unsealed(path, VALUES.shape, dtype, ABOUT)
    assert isinstance(found, HopFile)
    np.testing.assert_allclose(found.array(), VALUES, rtol=error)
    np.testing.assert_allclose(found[np.array([5, 0])], VALUES[[5, 0]], rtol=error)
    np.testing.assert_allclose(found[2:4], VALUES[2:4], rtol=error)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("place", "trouble"),
    [
        (0, "its header cannot be read"),
        (HEADER_BYTES + 5, "its checksum does not match"),
        (-1, "its checksum does not match"),
        (None, "its size is wrong"),
    ],
)
def test_damage_is_told(dtype: str, place: int | None, trouble: str, tmp_path: Path) -> None:
    path = sealed(tmp_path / "hop", dtype)
    content = bytearray(path.read_bytes())
    if place is None:
        content.pop()
    else:
        content[place] ^= 1
    path.write_bytes(content)
    assert unsealed(path, VALUES.shape, dtype, ABOUT) == trouble


def test_a_file_of_something_else_is_told(tmp_path: Path) -> None:
    path = sealed(tmp_path / "hop", "float32")
    assert unsealed(path, VALUES.shape, "float32", {**ABOUT, "k": 4}) == "its header describes something else"
    assert unsealed(path, (3, 7), "float32", ABOUT) == "its header describes something else"


def test_tiles_are_read_as_one_hop(tmp_path: Path) -> None:
    (tmp_path / "right").write_bytes(np.ascontiguousarray(VALUES[:, 1:]).tobytes())
    tiles = ColumnTiles((VALUES[:, :1], HopFile(tmp_path / "right", (7, 2))))
    assert tiles.shape == (7, 3)
    np.testing.assert_array_equal(tiles[1:6], VALUES[1:6])
    np.testing.assert_array_equal(tiles[np.array([6, 6, 0])], VALUES[[6, 6, 0]])


def test_half_precision_takes_half_the_bytes() -> None:
    assert (hop_bytes((7, 3), "float32"), hop_bytes((7, 3), "float16")) == (84, 42)
