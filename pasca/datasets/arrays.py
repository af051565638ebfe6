"""Read .npy and .npz files: numbers and text only, and no more memory than the file honestly describes."""

from __future__ import annotations

import contextlib
import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from search_space.errors import DataError

# Deflate reaches about 1,030; an array that is almost all zeros passes 100, an honest large one seldom passes 200.
MAX_RATIO = 200
# Below this many bytes any ratio is harmless.
HARMLESS_BYTES = 1 << 29

# What NumPy's header parser and the zip reader raise for bytes that are not what they claim to be.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
    EOFError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


class Npz(Mapping[str, NDArray[Any]]):
    """The arrays of an .npz file by name, each read when asked for.

    Raises:
        DataError: on opening, the file is not a zip archive or would unpack to far more than it holds; on reading, the
            array holds pickled objects, is cut off or damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, OverflowError) as error:
            raise DataError(f"{path}: not a complete .npz archive ({error}); fetch the file again") from None
        self._members = {
            info.filename.removesuffix(".npy"): info for info in self._archive.infolist() if not info.is_dir()
        }
        for info in self._members.values():
            refuse_bomb(info, str(path))

    def __getitem__(self, key: str) -> NDArray[Any]:
        info = self._members[key]
        what = f"{self.path}: array {key!r}"
        with _damage(what), self._archive.open(info) as stream:
            return _read_array(stream, info.file_size, what)

    def __contains__(self, key: object) -> bool:
        return key in self._members  # Mapping's own would read the array

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def is_object(self, key: str) -> bool:
        """Whether the array of that name, if there is one, holds pickled objects; they are not looked at."""
        if key not in self._members:
            return False
        what = f"{self.path}: array {key!r}"
        with _damage(what), self._archive.open(self._members[key]) as stream:
            return _read_header(stream)[2].hasobject

    def require(self, key: str) -> NDArray[Any]:
        """The array of that name.

        Raises:
            DataError: there is none; the message lists what exists.
        """
        if key not in self._members:
            raise DataError(
                f"{self.path}: array {key!r} is missing; the file holds {', '.join(self._members) or 'nothing'}"
            )
        return self[key]

    def close(self) -> None:
        """Close the file."""
        self._archive.close()

    def __enter__(self) -> Npz:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def refuse_bomb(info: zipfile.ZipInfo, source: str) -> None:
    """Refuse a zip member that claims to unpack to very much more than it holds.

    Raises:
        DataError: names the member and both sizes.
    """
    if info.file_size > HARMLESS_BYTES and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise DataError(
            f"{source}: member {info.filename!r} would unpack from {info.compress_size} to {info.file_size} bytes, "
            f"more than {MAX_RATIO} times its size; unpack and inspect it yourself if you trust it"
        )


def read_npy(path: Path) -> NDArray[Any]:
    """Read a .npy file of numbers or text.

    Raises:
        DataError: it is something else, holds pickled objects, or is cut off.
    """
    size = path.stat().st_size
    with _damage(f"{path}: the .npy file"), path.open("rb") as stream:
        return _read_array(stream, size, str(path))


@contextlib.contextmanager
def _damage(what: str) -> Iterator[None]:
    """Say in one line that a file is damaged, in place of what its decoder raises."""
    try:
        yield
    except _DAMAGE as error:
        raise DataError(f"{what} is damaged or cut off ({error}); fetch the file again") from None


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"format version {version} is not 1.0 or 2.0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # headers that Python 2 wrote are as good
        shape, is_fortran, dtype = read(stream)
    return shape, is_fortran, dtype


def _read_array(stream: IO[bytes], size: int, what: str) -> NDArray[Any]:
    """Read header and content, after checking that the header describes exactly `size` bytes."""
    shape, is_fortran, dtype = _read_header(stream)
    if dtype.hasobject:
        raise DataError(f"{what} holds pickled objects, which are never loaded; save it as an array of numbers or text")
    if dtype.kind not in "biufUS":
        raise DataError(f"{what} has type {dtype}, expected numbers or text")
    expected = math.prod(shape) * dtype.itemsize
    left = size - stream.tell()
    if expected != left:
        raise ValueError(f"its header describes {expected} bytes, {left} follow")
    # What is there bounds what is filled, whatever the header claims: allocated pages cost nothing until then.
    content = bytearray(expected)
    if stream.readinto(content) != expected:  # type: ignore[attr-defined]
        raise EOFError("it ends too early")
    array: NDArray[Any] = np.frombuffer(content, dtype=dtype) if expected else np.zeros(0, dtype)
    return array.reshape(shape, order="F" if is_fortran else "C")


def peek_npy(path: Path) -> tuple[int, ...]:
    """The shape that a .npy file's header states.

    Raises:
        DataError: it is no .npy file.
    """
    with _damage(f"{path}: the .npy file"), path.open("rb") as stream:
        return _read_header(stream)[0]
