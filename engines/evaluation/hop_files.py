"""Hop features as they are kept: arrays, half-precision arrays, and files that are mapped only while they are read."""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]
HOP_TYPES = ("float32", "float16")

HEADER_BYTES = mmap.PAGESIZE
"""What a sealed file describes itself in, before the values: a whole page, so that these begin on one."""
_PIECE_BYTES = 4 << 20
"""What is encoded or checked at a time."""
_HIGHEST = 15
"""Exponent that a column's largest value is brought below: float16 ends at 65504, just under 2^16."""


class HopRows(Protocol):
    """One hop, (N, F), read by rows: an array in memory is one, and so are the others here."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: Any, /) -> Any:
        """float32 rows (n, F), for a slice or an array of n row numbers; not to be modified."""
        ...


@dataclass(frozen=True, eq=False)
class HalfRows:
    """A hop in memory in half precision.

    A column is stored times a power of two that brings its largest value into 2^14..2^15, so nothing overflows and each
    value is off by at most 2^-11 of itself, or by 2^-39 of the column's largest where that is more.

    Attributes:
        values: (N, F) float16.
        factors: (F,) float32 powers of two; a value is the stored one times its column's factor.
    """

    values: Halves
    factors: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, F)."""
        return self.values.shape

    def __getitem__(self, rows: Any, /) -> Floats:
        """float32 rows (n, F), a copy."""
        decoded: Floats = self.values[rows].astype(np.float32)
        decoded *= self.factors
        return decoded

    def array(self) -> Floats:
        """All rows, (N, F) float32 in memory."""
        return self[:]


@dataclass(frozen=True, eq=False)
class HopFile:
    """A hop in a file. It takes memory only while it is read, whoever holds this.

    Attributes:
        path: of the file.
        shape: (N, F).
        offset: bytes before the values.
        factors: as for HalfRows; None for a file of float32.
    """

    path: Path
    shape: tuple[int, ...]
    offset: int = 0
    factors: Floats | None = None

    def __getitem__(self, rows: Any, /) -> Floats:
        """float32 rows (n, F), a copy."""
        if self.factors is None:
            return np.array(self._values(np.float32)[rows])
        return HalfRows(self._values(np.float16), self.factors)[rows]

    def array(self) -> Floats:
        """All rows, (N, F) float32: mapped, or decoded into memory."""
        return self._values(np.float32) if self.factors is None else self[:]

    def _values(self, dtype: type[np.floating[Any]]) -> Any:
        # "c": writable as far as torch can tell, which warns otherwise; the file itself never changes
        return np.memmap(self.path, dtype, "c", offset=self.offset, shape=self.shape)


@dataclass(frozen=True, eq=False)
class ColumnTiles:
    """A hop whose columns lie in several parts, each read by rows.

    Attributes:
        tiles: (N, F_i), from left to right.
    """

    tiles: tuple[HopRows, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, F)."""
        return self.tiles[0].shape[0], sum(tile.shape[1] for tile in self.tiles)

    def __getitem__(self, rows: Any, /) -> Floats:
        """float32 rows (n, F), a copy."""
        return np.concatenate([tile[rows] for tile in self.tiles], axis=1)


def hop_bytes(shape: tuple[int, ...], dtype: str) -> int:
    """Bytes of the values of a hop."""
    return int(shape[0]) * int(shape[1]) * np.dtype(dtype).itemsize


def new_file(path: Path, size: int) -> None:
    """A file with all of its bytes set aside: a full disk shows here, not as a fault while a map is written.

    Raises:
        OSError: it cannot be made; nothing is left of it.
    """
    with path.open("xb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, max(size, 1))
        except OSError:
            path.unlink()
            raise


def writable(path: Path, shape: tuple[int, ...], dtype: str, offset: int = 0) -> Any:
    """The values of a file that `new_file` made, as an array to be filled."""
    return np.memmap(path, np.dtype(dtype), "r+", offset=offset, shape=shape)


def factors_of(values: Floats) -> Floats | None:
    """The (F,) factors that HalfRows stores (N, F) values with; None where a value is not finite."""
    peak = np.zeros(values.shape[1], np.float32)
    for rows in _pieces(values.shape):
        np.maximum(peak, np.abs(values[rows]).max(axis=0), out=peak)
    if not np.isfinite(peak).all():
        return None
    _, exponents = np.frexp(peak)
    # float32 ends at 2^127: columns whose largest value is below 2^-111 use fewer of their bits
    factors: Floats = np.ldexp(np.float32(1.0), np.maximum(exponents - _HIGHEST, -126)).astype(np.float32)
    return factors


def encode(values: Floats, factors: Floats, out: Halves) -> None:
    """Write (N, F) values in half precision, as HalfRows reads them."""
    inverse = np.float32(1.0) / factors
    for rows in _pieces(values.shape):
        out[rows] = values[rows] * inverse


def seal(
    path: Path, shape: tuple[int, ...], factors: Floats | None, about: Mapping[str, Any], *, durable: bool
) -> None:
    """Complete a file whose values were written after HEADER_BYTES: say what it holds, with a checksum.

    Args:
        about: what identifies the hop, JSON types; `unsealed` wants the same.
        durable: wait until it is on the disk.
    Raises:
        OSError: it cannot be written.
    """
    with path.open("r+b") as file:
        if factors is not None:
            file.seek(HEADER_BYTES + hop_bytes(shape, "float16"))
            file.write(factors.tobytes())
            file.flush()
        header = {**about, "shape": list(shape), "dtype": _type_name(factors), "crc32": _checksum(file)}
        file.seek(0)
        file.write(json.dumps(header).encode().ljust(HEADER_BYTES))
        file.flush()
        if durable:
            os.fsync(file.fileno())


def sealed_bytes(shape: tuple[int, ...], dtype: str) -> int:
    """Size of a sealed file."""
    return HEADER_BYTES + hop_bytes(shape, dtype) + (shape[1] * 4 if dtype == "float16" else 0)


def unsealed(path: Path, shape: tuple[int, ...], dtype: str, about: Mapping[str, Any]) -> HopFile | str:
    """Open a sealed file, all of which is read once; or say in a few words what is wrong with it.

    Raises:
        OSError: it cannot be read, or does not exist.
    """
    if path.stat().st_size != sealed_bytes(shape, dtype):
        return "its size is wrong"
    with path.open("rb") as file:
        try:
            header = json.loads(file.read(HEADER_BYTES))
        except ValueError:
            return "its header cannot be read"
        checksum = header.pop("crc32", None) if isinstance(header, dict) else None
        if header != {**about, "shape": list(shape), "dtype": dtype}:
            return "its header describes something else"
        if _checksum(file) != checksum:
            return "its checksum does not match"
        factors = None
        if dtype == "float16":
            file.seek(HEADER_BYTES + hop_bytes(shape, dtype))
            factors = np.frombuffer(file.read(), np.float32)
    return HopFile(path, shape, HEADER_BYTES, factors)


def _type_name(factors: Floats | None) -> str:
    return "float32" if factors is None else "float16"


def _checksum(file: Any) -> int:
    """CRC-32 of all behind the header; against accidents it is as good as a longer one, and several times as fast."""
    file.seek(HEADER_BYTES)
    found, piece = 0, bytearray(_PIECE_BYTES)
    while read := file.readinto(piece):
        found = zlib.crc32(memoryview(piece)[:read], found)
    return found


def _pieces(shape: tuple[int, ...]) -> list[slice]:
    """Ranges of rows of a few megabytes each."""
    step = max(_PIECE_BYTES // max(shape[1] * 4, 1), 1)
    return [slice(first, first + step) for first in range(0, shape[0], step)]
