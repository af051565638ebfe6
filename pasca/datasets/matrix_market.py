"""Matrix Market files (.mtx), real, integer or pattern, general or symmetric.

SciPy's reader, up to 1.17 at least, crashes on some damaged files; NumPy's text reader does not.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pasca.datasets.csr import from_coo
from pasca.datasets.parts import RawFeatures
from pasca.datasets.text_files import TextFile
from search_space.errors import DataError

_FIELDS = ("real", "double", "integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read_mtx(path: Path) -> RawFeatures:
    """Read a matrix, sparse (`coordinate`) or dense (`array`).

    Raises:
        DataError: it is no such file, or does not hold as many entries as it claims.
    """
    words, sizes, skip = _header(path)
    layout, field, symmetry = words[2:]
    width = {"coordinate": 2 if field == "pattern" else 3, "array": 1}[layout]
    expected = sizes[2] if layout == "coordinate" else sizes[0] * sizes[1]
    if layout == "array" and symmetry != "general":
        raise DataError(f"{path}: a dense matrix is general here, got {symmetry}; save it as one")
    # An entry takes at least one character and the end of its line.
    if expected > path.stat().st_size:
        raise DataError(f"{path}: its size line claims {expected} entries, more than the file can hold; is it cut off?")
    body = _body(path, skip)
    if body.shape[0] != expected or (expected and body.shape[1] != width):
        raise DataError(
            f"{path}: expected {expected} entries of {width} numbers, got {body.shape[0]} of {body.shape[1]}"
        )
    if layout == "array":
        return body.reshape(sizes[1], sizes[0]).T
    return _sparse(path, body.reshape(-1, width), (sizes[0], sizes[1]), symmetry)


def _header(path: Path) -> tuple[list[str], list[int], int]:
    """The words of the first line, the numbers of the size line, and how many lines come before the entries."""
    words: list[str] = []
    for number, line in TextFile(path).lines("latin-1"):
        if number == 1:
            words = line.lower().split()
            known = (
                len(words) == 5 and words[:2] == ["%%matrixmarket", "matrix"] and words[2] in ("coordinate", "array")
            )
            if not known or words[3] not in _FIELDS or words[4] not in _SYMMETRIES:
                raise DataError(
                    f"{path}: expected %%MatrixMarket matrix coordinate|array {'|'.join(_FIELDS)} "
                    f"{'|'.join(_SYMMETRIES)}, got {line[:80]!r}"
                )
        elif line.strip() and not line.startswith("%"):
            sizes = line.split()
            if len(sizes) != (3 if words[2] == "coordinate" else 2) or not all(
                size.isdecimal() and size.isascii() and len(size) < 19 for size in sizes
            ):
                raise DataError(f"{path}: the sizes of a matrix are numbers, got {line[:60]!r} in line {number}")
            return words, [int(size) for size in sizes], number
    raise DataError(f"{path}: a Matrix Market file has a line with sizes, found none")


def _body(path: Path, skip: int) -> NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of no entries at all
        try:
            return np.loadtxt(path, dtype=np.float64, comments="%", skiprows=skip, ndmin=2, encoding="latin-1")
        except (ValueError, OverflowError, MemoryError) as error:
            reason = str(error).splitlines()[0][:120]
            raise DataError(f"{path}: its entries cannot be read ({reason})") from None


def _sparse(path: Path, body: NDArray[np.float64], shape: tuple[int, int], symmetry: str) -> RawFeatures:
    places = body[:, :2]
    if not (places == np.floor(places)).all() or not (np.abs(places) < 2**53).all():
        raise DataError(f"{path}: the places of entries are whole numbers from 1")
    rows, columns = places.astype(np.int64).T - 1
    data = body[:, 2] if body.shape[1] == 3 else np.ones(len(body))
    if symmetry != "general":
        off = rows != columns
        mirrored = data[off] if symmetry == "symmetric" else -data[off]
        data = np.concatenate([data, mirrored])
        rows, columns = np.concatenate([rows, columns[off]]), np.concatenate([columns, rows[off]])
    try:
        return from_coo(data, rows, columns, shape)
    except ValueError as error:
        raise DataError(f"{path}: not a matrix: {error}") from None
