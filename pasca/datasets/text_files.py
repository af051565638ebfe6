"""Text files, plain, gzipped or inside a zip, read as streams that stop when they unpack to far more than they hold."""

from __future__ import annotations

import codecs
import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from pasca.datasets.arrays import HARMLESS_BYTES, MAX_RATIO, refuse_bomb
from search_space.errors import DataError

# What a damaged compressed stream raises while it is read.
DAMAGE = (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, NotImplementedError)


@dataclass(frozen=True)
class TextFile:
    """A text that can be opened any number of times.

    Attributes:
        path: the file, or the archive that holds it.
        member: the name inside a zip archive, or None.
    """

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.member is None else f"{self.path}: {self.member}"

    @property
    def suffix(self) -> str:
        """The last suffix, `.gz` aside, in lower case."""
        name = Path(self.path.name if self.member is None else self.member)
        return Path(name.stem).suffix.lower() if name.suffix.lower() == ".gz" else name.suffix.lower()

    def open(self) -> IO[bytes]:
        """Open for reading bytes, unpacked.

        Raises:
            DataError: it cannot be opened, or claims to unpack to far more than it holds.
        """
        try:
            if self.member is not None:
                archive = zipfile.ZipFile(self.path)
                refuse_bomb(archive.getinfo(self.member), str(self.path))
                return archive.open(self.member)
            if self.path.suffix.lower() == ".gz":
                return _open_gzip(self.path)
            return self.path.open("rb")
        except (OSError, KeyError, RuntimeError, ValueError, *DAMAGE) as error:
            raise DataError(f"{self} cannot be opened ({error})") from None

    def head(self, size: int) -> bytes:
        """The first bytes, at most `size`."""
        with self.open() as stream:
            try:
                return stream.read(size)
            except DAMAGE as error:
                raise damaged(self, error) from None

    def lines(self, encoding: str) -> Iterator[tuple[int, str]]:
        """Line numbers from 1 and lines without their ends.

        Raises:
            DataError: names the first line that the encoding cannot read, or says where a compressed file breaks off.
        """
        with self.open() as stream, io.BufferedReader(_AsRaw(stream)) as buffered:
            text = io.TextIOWrapper(buffered, encoding=encoding, newline=None)
            try:
                for number, line in enumerate(text, start=1):
                    yield number, line.rstrip("\n")
            except UnicodeDecodeError:
                raise undecodable(self, encoding) from None
            except DAMAGE as error:
                raise damaged(self, error) from None


def damaged(file: TextFile, error: Exception) -> DataError:
    """The error for a compressed file that breaks off or does not decode."""
    return DataError(f"{file} is damaged or cut off ({error}); fetch the file again")


def undecodable(file: TextFile, encoding: str) -> DataError:
    """The error for bytes that are not text in the chosen encoding; looks for the first of them."""
    line = 1
    with file.open() as stream:
        decoder = codecs.getincrementaldecoder(encoding)()
        while chunk := stream.read(1 << 20):
            try:
                line += decoder.decode(chunk).count("\n")
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(encoding, errors="ignore")
                return DataError(
                    f"{file}: byte 0x{error.object[error.start]:02x} in line {line + before.count(chr(10))} is no "
                    f"{encoding} text; name the file's encoding with --encoding, often latin-1 or cp1252"
                )
    return DataError(f"{file}: the last line breaks off inside a character of {encoding}; name another --encoding")


class _AsRaw(io.RawIOBase):
    """A raw stream over any readable one."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        chunk = self._stream.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


class _BoundedGzip(gzip.GzipFile):
    """A gzip file that stops when it has unpacked to far more than it holds."""

    limit_bytes = HARMLESS_BYTES

    def read(self, size: int | None = -1) -> bytes:
        """Read and count.

        Raises:
            DataError: the file is a bomb.
        """
        # A request for everything is answered in pieces, so that the count comes before the memory.
        wanted = self.limit_bytes + 1 if size is None or size < 0 else size
        content = super().read(min(wanted, 1 << 24))
        if self.tell() > self.limit_bytes:
            raise DataError(
                f"{self.name} has unpacked to more than {self.limit_bytes} bytes, over {MAX_RATIO} times its size; "
                "unpack and inspect it yourself if you trust it"
            )
        return content


def _open_gzip(path: Path) -> IO[bytes]:
    opened = _BoundedGzip(path, "rb")
    opened.limit_bytes = max(HARMLESS_BYTES, MAX_RATIO * path.stat().st_size)
    return cast(IO[bytes], opened)
