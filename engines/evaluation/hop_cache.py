"""HopCache: the hop features of a run, each propagated once and shared by all trials."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.hop_files import (
    HOP_TYPES,
    Floats,
    HalfRows,
    HopFile,
    HopRows,
    encode,
    factors_of,
    hop_bytes,
    new_file,
    writable,
)
from engines.evaluation.hop_store import Chain, Section
from engines.evaluation.propagation import propagate_step
from search_space.errors import ConfigError, ShapeError, StorageError, TrialFailure

Kept = Floats | HalfRows | HopFile


class HopCache:
    """Hop features X(k) = (1 - restart) M X(k-1) + restart X(0) by matrix, restart and k.

    A hop is computed from the deepest one known before it, in float32, and kept: in memory while the hops fit the
    budget, then in files of a private temporary folder, which are mapped into memory only while somebody reads the hop.
    With a store, hops are read from and kept in its files instead, as far as these go: what lies in memory would be
    lost with the process, and files that were read lately are in memory anyway, where the system has some to spare.

    Use as a context manager or call `close`, which removes the folder.

    Args:
        matrices: M by key, (N, N) CSR float32; or a function that builds one, called once a key on first use.
        features: (N, F) float32, dense and C-contiguous: hop 0 of every chain. The caller's; not counted, not modified.
        memory_bytes: how much the hops 1, 2, ... may take in memory, all chains together.
        folder: where the temporary folder is made, on a disk; None for the system's place for temporary files.
        store: the section of a store for this graph and normalisation; the caller's to close.
        dtype: `float32`, or `float16`, which halves what hops 1, 2, ... take; see `HalfRows` for its error. A hop is
            the same whichever hops were asked for before: no hop is computed from a rounded one.
    Attributes:
        num_steps: propagation steps computed so far.
    Raises:
        ConfigError: `memory_bytes` is negative, or `dtype` unknown.
        ShapeError: `features` is no C-contiguous float32 array of two dimensions.
    """

    def __init__(
        self,
        matrices: Mapping[str, sparse.csr_array] | Callable[[str], sparse.csr_array],
        features: Floats,
        memory_bytes: int,
        folder: Path | None = None,
        *,
        store: Section | None = None,
        dtype: str = "float32",
    ) -> None:
        if memory_bytes < 0:
            raise ConfigError(f"the memory budget for hop features is at least 0 bytes, got {memory_bytes}")
        if dtype not in HOP_TYPES:
            raise ConfigError(f"unknown type of hop features {dtype!r}; choose from: {', '.join(HOP_TYPES)}")
        if features.ndim != 2 or features.dtype != np.float32 or not features.flags.c_contiguous:
            raise ShapeError(
                f"hop features start from a C-contiguous (N, F) float32 array, got {features.dtype} "
                f"of shape {features.shape} with strides {features.strides}"
            )
        self._build = matrices.__getitem__ if isinstance(matrices, Mapping) else matrices
        self._features = features
        self._memory_bytes, self._used_bytes = memory_bytes, 0
        self._parent, self._store, self.dtype = folder, store, dtype
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._num_files = 0
        self._matrices: dict[str, sparse.csr_array] = {}
        # Hops 1, 2, ... of each chain, as they are kept.
        self._chains: dict[Chain, list[Kept]] = {}
        # Of chains kept in float16: how deep they were last computed, and that hop in float32.
        self._deepest: dict[Chain, tuple[int, Floats | HopFile]] = {}
        self.num_steps = 0

    def matrix(self, matrix_key: str) -> sparse.csr_array:
        """The matrix with that key, built on first use."""
        if matrix_key not in self._matrices:
            self._matrices[matrix_key] = self._build(matrix_key)
        return self._matrices[matrix_key]

    def reader(self, matrix_key: str, restart: float, k: int) -> HopRows:
        """Hop k for reading some of its rows at a time; hop 0 is the features themselves, whatever the matrix.

        However many are held, those in files take memory only while rows are read.

        Raises:
            ConfigError: k is negative, or `restart` is outside 0..1.
            StorageError: a hop does not fit the disk; the ones before it are kept.
            TrialFailure: a hop has values that are not finite, which float16 cannot hold.
        """
        return self._kept(matrix_key, restart, k)

    def hop(self, matrix_key: str, restart: float, k: int) -> Floats:
        """Return hop k as an (N, F) float32 array; otherwise as `reader`.

        The array belongs to the cache and is not to be modified. One that lies in a file occupies memory until it is
        dropped, so hold as few as needed.
        """
        return _whole(self._kept(matrix_key, restart, k))

    def close(self) -> None:
        """Drop every hop and matrix and remove the temporary files; later use starts anew.

        Arrays that were handed out stay readable, readers of files do not.
        """
        self._chains.clear()
        self._deepest.clear()
        self._matrices.clear()
        self._used_bytes = 0
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> HopCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _kept(self, matrix_key: str, restart: float, k: int) -> Kept:
        if k < 0:
            raise ConfigError(f"a hop is numbered from 0, got {k}")
        if k == 0:
            return self._features
        chain = self._chains.setdefault((matrix_key, restart), [])
        if len(chain) < k:
            self._deepen(chain, k, (matrix_key, restart))
        return chain[k - 1]

    def _deepen(self, chain: list[Kept], k: int, key: Chain) -> None:
        """Bring a chain to k hops, from the store as far as possible."""
        self._fetch(chain, k, key)
        if len(chain) >= k:
            return
        with self._store.extending(key, self.dtype) if self._store else contextlib.nullcontext():
            self._fetch(chain, k, key)  # again: another process may have written them while we waited
            if self.dtype == "float32":
                while len(chain) < k:
                    before = _whole(chain[-1]) if chain else self._features
                    chain.append(self._next(before, key, len(chain) + 1))
            else:
                self._deepen_in_halves(chain, k, key)

    def _fetch(self, chain: list[Kept], k: int, key: Chain) -> None:
        """Add the hops that follow in the store."""
        while self._store is not None and len(chain) < k:
            found = self._store.find(key, len(chain) + 1, self._features.shape, self.dtype)
            if found is None:
                return
            chain.append(found)

    def _next(self, before: Floats, key: Chain, k: int) -> Kept:
        """Compute and keep hop k in float32."""

        def fill(out: Floats) -> None:
            self._propagate(before, key, out)

        stored = None if self._store is None else self._store.write(key, k, self._features.shape, "float32", fill)
        return self._keep_floats(fill) if stored is None else stored

    def _deepen_in_halves(self, chain: list[Kept], k: int, key: Chain) -> None:
        """Go on from the deepest hop that is known in float32, or from hop 0 where the chain came from the store."""
        depth, current = self._deepest.pop(key, (0, None))
        try:
            while depth < k:
                before = self._features if current is None else _whole(current)
                following = self._keep_floats(lambda out, x=before: self._propagate(x, key, out))  # type: ignore[misc]
                if current is not None:
                    self._discard(current)
                depth, current = depth + 1, following
                if depth > len(chain):
                    chain.append(self._in_halves(_whole(current), key, depth))
        except BaseException:
            if current is not None:
                self._discard(current)
            raise
        if current is not None:
            self._deepest[key] = depth, current

    def _in_halves(self, values: Floats, key: Chain, k: int) -> Kept:
        """Keep hop k in float16."""
        shape, factors = values.shape, factors_of(values)
        if factors is None:
            raise TrialFailure(
                f"hop {k} of {key[0]} has values that are not finite, which float16 cannot hold; normalise the features"
            )

        def fill(out: NDArray[np.float16]) -> Floats:
            encode(values, factors, out)
            return factors

        stored = None if self._store is None else self._store.write(key, k, shape, "float16", fill)
        if stored is not None:
            return stored
        size = hop_bytes(shape, "float16")
        if self._used_bytes + size <= self._memory_bytes:
            kept = HalfRows(np.empty(shape, np.float16), factors)
            fill(kept.values)
            self._used_bytes += size
            return kept
        path = self._new_file(size)
        fill(writable(path, shape, "float16"))
        return HopFile(path, shape, factors=factors)

    def _propagate(self, before: Floats, key: Chain, out: Floats) -> None:
        matrix_key, restart = key
        propagate_step(self.matrix(matrix_key), before, restart=restart, start=self._features, out=out)
        self.num_steps += 1

    def _keep_floats(self, fill: Callable[[Floats], None]) -> Floats | HopFile:
        """Keep an (N, F) float32 array that `fill` writes, in memory or in a temporary file."""
        shape, size = self._features.shape, self._features.nbytes
        if self._used_bytes + size <= self._memory_bytes:
            out = np.empty(shape, np.float32)
            fill(out)
            self._used_bytes += size
            return out
        path = self._new_file(size)
        try:
            fill(writable(path, shape, "float32"))
        except BaseException:
            path.unlink()
            raise
        return HopFile(path, shape)

    def _discard(self, kept: Floats | HopFile) -> None:
        if isinstance(kept, HopFile):
            kept.path.unlink()
        else:
            self._used_bytes -= kept.nbytes

    def _new_file(self, size: int) -> Path:
        """A temporary file with all of its bytes set aside."""
        try:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="pasca-hops-", dir=self._parent)
            self._num_files += 1
            path = Path(self._folder.name, f"{self._num_files}.hop")
            new_file(path, size)
        except OSError as error:
            place = self._parent or tempfile.gettempdir()
            raise StorageError(
                f"hop features past the memory budget go to {place}, which could not take {size} bytes more: "
                f"{error.strerror}; raise the budget or name another folder"
            ) from error
        return path


def _whole(hop: Kept) -> Floats:
    """All rows as one array."""
    return hop if isinstance(hop, np.ndarray) else hop.array()
