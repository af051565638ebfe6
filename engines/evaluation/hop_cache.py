"""HopCache: the hop features of a run, each propagated once and shared by all trials."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.propagation import propagate_step
from search_space.errors import ConfigError, ShapeError, StorageError

Floats = NDArray[np.float32]
Chain = tuple[str, float]


class HopCache:
    """Hop features X(k) = (1 - restart) M X(k-1) + restart X(0) by matrix, restart and k.

    A hop is computed from the deepest one known before it, and kept: in memory while the hops fit the budget, then in
    files of a private temporary folder, which are mapped into memory only while somebody holds the array. Use as a
    context manager or call `close`, which removes the folder.

    Args:
        matrices: M by key, (N, N) CSR float32; or a function that builds one, called once a key on first use.
        features: (N, F) float32, dense and C-contiguous: hop 0 of every chain. The caller's; not counted, not modified.
        memory_bytes: how much the hops 1, 2, ... may take in memory, all chains together.
        folder: where the temporary folder is made, on a disk; None for the system's place for temporary files.
    Attributes:
        num_steps: propagation steps computed so far.
    Raises:
        ConfigError: `memory_bytes` is negative.
        ShapeError: `features` is no C-contiguous float32 array of two dimensions.
    """

    def __init__(
        self,
        matrices: Mapping[str, sparse.csr_array] | Callable[[str], sparse.csr_array],
        features: Floats,
        memory_bytes: int,
        folder: Path | None = None,
    ) -> None:
        if memory_bytes < 0:
            raise ConfigError(f"the memory budget for hop features is at least 0 bytes, got {memory_bytes}")
        if features.ndim != 2 or features.dtype != np.float32 or not features.flags.c_contiguous:
            raise ShapeError(
                f"hop features start from a C-contiguous (N, F) float32 array, got {features.dtype} "
                f"of shape {features.shape} with strides {features.strides}"
            )
        self._build = matrices.__getitem__ if isinstance(matrices, Mapping) else matrices
        self._features = features
        self._memory_bytes, self._used_bytes = memory_bytes, 0
        self._parent = folder
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._matrices: dict[str, sparse.csr_array] = {}
        # Hops 1, 2, ... of each chain, an array in memory or the file that holds it.
        self._chains: dict[Chain, list[Floats | Path]] = {}
        self.num_steps = 0

    def matrix(self, matrix_key: str) -> sparse.csr_array:
        """The matrix with that key, built on first use."""
        if matrix_key not in self._matrices:
            self._matrices[matrix_key] = self._build(matrix_key)
        return self._matrices[matrix_key]

    def hop(self, matrix_key: str, restart: float, k: int) -> Floats:
        """Return hop k as an (N, F) float32 array; hop 0 is the features themselves, whatever the matrix.

        The array belongs to the cache and is not to be modified. One that lies in a file occupies memory until it is
        dropped, so hold as few as needed.

        Raises:
            ConfigError: k is negative, or `restart` is outside 0..1.
            StorageError: a hop does not fit the disk; the ones before it are kept.
        """
        if k < 0:
            raise ConfigError(f"a hop is numbered from 0, got {k}")
        if k == 0:
            return self._features
        chain = self._chains.setdefault((matrix_key, restart), [])
        deepest = self._read(chain[-1]) if len(chain) < k and chain else self._features
        while len(chain) < k:
            deepest = self._extend(chain, deepest, matrix_key, restart)
        return self._read(chain[k - 1])

    def rows(self, matrix_key: str, restart: float, k: int, nodes: NDArray[np.integer]) -> Floats:
        """Copy the rows of some nodes out of hop k, (len(nodes), F), in the order of `nodes`."""
        return np.asarray(self.hop(matrix_key, restart, k)[nodes])

    def close(self) -> None:
        """Drop every hop and matrix and remove the files; what was handed out stays readable. Later use starts anew."""
        self._chains.clear()
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

    def _extend(self, chain: list[Floats | Path], deepest: Floats, matrix_key: str, restart: float) -> Floats:
        """Compute and keep the hop after `deepest`, the last of the chain; returns it."""
        matrix, shape, size = self.matrix(matrix_key), self._features.shape, self._features.nbytes
        kept: Floats | Path
        if self._used_bytes + size <= self._memory_bytes:
            kept = out = np.empty(shape, np.float32)
            used_bytes = size
        else:
            kept = self._new_file(size)
            out = np.memmap(kept, np.float32, "r+", shape=shape)
            used_bytes = 0
        propagate_step(matrix, deepest, restart=restart, start=self._features, out=out)
        chain.append(kept)
        self._used_bytes += used_bytes
        self.num_steps += 1
        return out

    def _new_file(self, size: int) -> Path:
        """A file with all of its bytes set aside: a full disk shows here, not as a fault while writing."""
        try:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="pasca-hops-", dir=self._parent)
            path = Path(self._folder.name, f"{self.num_steps}.f32")
            with path.open("wb") as file:
                try:
                    os.posix_fallocate(file.fileno(), 0, size)
                except OSError:
                    path.unlink()
                    raise
        except OSError as error:
            place = self._parent or tempfile.gettempdir()
            raise StorageError(
                f"hop features past the memory budget go to {place}, which could not take {size} bytes more: "
                f"{error.strerror}; raise the budget or name another folder"
            ) from error
        return path

    def _read(self, kept: Floats | Path) -> Floats:
        if isinstance(kept, Path):
            # "c": writable as far as torch can tell, which warns otherwise; the file itself never changes
            return np.memmap(kept, np.float32, "c", shape=self._features.shape)
        return kept
