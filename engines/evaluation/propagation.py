"""Propagation: the one sparse product that everything on the graph consists of.

`propagate_step` computes out = (1 - restart) M x + restart start, by a compiled loop on numpy arrays and by torch on
tensors. `propagate_step_reference` is the same in plain scipy, for tests and benchmarks.
"""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.work_sharing import share_out
from search_space.errors import ConfigError, ShapeError

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float32]
Rows = TypeVar("Rows", NDArray[np.float32], "torch.Tensor")

# Below this many multiply-adds a second thread takes longer to start than it saves.
SERIAL_MULTIPLIES = 1_000_000
# Several a thread, so that one that is held up is not waited for.
CHUNKS_PER_THREAD = 8

_num_threads: int | None = None


def set_threads(threads: int) -> None:
    """Fix how many threads later steps on numpy arrays use, in this process; until then, all available cores.

    Raises:
        ConfigError: `threads` is not at least 1.
    """
    global _num_threads
    _num_threads = _at_least_one(threads)


def num_threads() -> int:
    """How many threads a step on numpy arrays uses now."""
    if _num_threads is not None:
        return _num_threads
    from engines.evaluation.threads import available_cores  # it imports this module, to set both together

    return available_cores()


def propagate_step(
    matrix: sparse.csr_array | torch.Tensor,
    x: Rows,
    *,
    restart: float = 0.0,
    start: Rows | None = None,
    out: Rows | None = None,
    threads: int | None = None,
) -> Rows:
    """Return (1 - restart) matrix x + restart start.

    Args:
        matrix: (N, M), row i gathers into node i; square unless some rows of a larger matrix are taken alone. For numpy
            arrays a valid CSR array of float32; for torch tensors a sparse CSR tensor on the device of `x`, as
            `device_matrix` makes it.
        x: (M, F) float32; for numpy C-contiguous; not modified.
        restart: share of `start` in the result, 0 for a plain product.
        start: (N, F), otherwise like `x`; needed unless `restart` is 0, and then not read.
        out: (N, F), otherwise like `x`, receives the result; must not share memory with `x`. A new array when None.
        threads: for numpy arrays; None for what `set_threads` fixed. The result does not depend on it, bit by bit.
    Returns:
        `out`, or the new array.
    Raises:
        ShapeError: shapes, types or layouts do not belong together.
        ConfigError: `restart` is outside 0..1, or `threads` is not at least 1.
    Source: PaSca, section 3.1; the restart as in APPNP, equation 4.
    """
    if not 0.0 <= restart <= 1.0:
        raise ConfigError(f"the restart of a propagation step lies in 0..1, got {restart}")
    if restart and start is None:
        raise ShapeError(f"a propagation step with restart {restart} needs `start`, got None")
    if not restart:
        start = None
    _check_parts(matrix, x, start, out)
    result: Rows
    if isinstance(x, np.ndarray):
        result = _step_in_numpy(matrix, x, restart, start, out, num_threads() if threads is None else threads)
    else:
        result = _step_in_torch(matrix, x, restart, start, out)
    return result


def propagate_step_reference(
    matrix: sparse.csr_array, x: Floats, *, restart: float = 0.0, start: Floats | None = None
) -> Floats:
    """The same as `propagate_step` on numpy arrays, in plain scipy, short enough to trust."""
    product = matrix @ x
    result: Floats = product if start is None else (1.0 - restart) * product + restart * start
    return result.astype(np.float32, copy=False)


def propagate(
    matrix: sparse.csr_array | torch.Tensor, features: Rows, hops: int, *, restart: float = 0.0
) -> list[Rows]:
    """Apply one step repeatedly, keeping every result.

    Args:
        matrix, restart: as for `propagate_step`; the restart goes to `features`.
        features: (N, F) float32; not modified.
        hops: how many steps; 0 gives `[features]`.
    Returns:
        `hops + 1` arrays of shape (N, F), from hop 0 outward; the first is `features` itself.
    Raises:
        ShapeError, ConfigError: as for `propagate_step`, or `hops` is negative.
    """
    if hops < 0:
        raise ConfigError(f"the number of hops is at least 0, got {hops}")
    results = [features]
    for _ in range(hops):
        results.append(propagate_step(matrix, results[-1], restart=restart, start=features))
    return results


def device_matrix(matrix: sparse.csr_array, device: torch.device | str) -> torch.Tensor:
    """The CSR matrix as a torch sparse CSR tensor on `device`, for `propagate_step` on tensors."""
    import torch

    indptr, indices = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    weights = torch.from_numpy(matrix.data.astype(np.float32))
    with warnings.catch_warnings():
        # said once a process of every such tensor; the products used here are tested against dense ones
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(
            indptr, indices, weights, size=matrix.shape, device=device, check_invariants=True
        )


def _step_in_numpy(matrix: Any, x: Any, restart: float, start: Any, out: Any, threads: int) -> Any:
    from engines.evaluation.propagation_kernel import compiled_loop

    threads = _at_least_one(threads)
    loop = compiled_loop(matrix.indices.dtype.name)
    csr = matrix.indptr, matrix.indices, matrix.data
    N = matrix.shape[0]
    result = np.empty((N, x.shape[1]), np.float32) if out is None else out
    # memory-mapped arrays are read and written as the plain arrays they are
    plain_x, plain_out = np.asarray(x), np.asarray(result)
    # without a restart the loop does not read its start, which may then be any array of that type
    plain_start = plain_x if start is None else np.asarray(start)

    def compute(chunk: tuple[int, int]) -> None:
        loop(*csr, plain_x, np.float32(restart), plain_start, plain_out, *chunk)

    if threads == 1 or matrix.nnz * x.shape[1] < SERIAL_MULTIPLIES:
        compute((0, N))
    else:
        # threads cost less than a thousandth of the step
        share_out(compute, _balanced_chunks(matrix.indptr, threads * CHUNKS_PER_THREAD), threads)
    return result


def _balanced_chunks(indptr: NDArray[Any], num_chunks: int) -> list[tuple[int, int]]:
    """Ranges of rows, at most `num_chunks` and none empty, that cover all rows in order and take about equal work.

    A row's work is its non-zeros and one more, for writing it: a hub of a skewed graph weighs what it costs.
    """
    N = len(indptr) - 1
    work = indptr + np.arange(N + 1, dtype=np.int64)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], num_chunks + 1)[1:-1])
    return list(itertools.pairwise([0, *np.unique(cuts[(cuts > 0) & (cuts < N)]).tolist(), N]))


def _step_in_torch(matrix: Any, x: Any, restart: float, start: Any, out: Any) -> Any:
    import torch

    if not restart:
        return torch.mm(matrix, x, out=out)
    return torch.addmm(start, matrix, x, beta=restart, alpha=1.0 - restart, out=out)


def _check_parts(matrix: Any, x: Any, start: Any, out: Any) -> None:
    in_numpy = isinstance(x, np.ndarray)
    if sparse.issparse(matrix) != in_numpy:
        raise ShapeError(
            "a propagation step takes a scipy matrix and numpy arrays, or a torch matrix and tensors, "
            f"got {type(matrix).__name__} and {type(x).__name__}; `device_matrix` converts the matrix"
        )
    if x.ndim != 2 or matrix.shape[1] != x.shape[0]:
        raise ShapeError(
            "a propagation step takes an (N, M) matrix and (M, F) rows, "
            f"got shapes {tuple(matrix.shape)} and {tuple(x.shape)}"
        )
    shape = (matrix.shape[0], x.shape[1])
    for name, array in (("x", x), ("start", start), ("out", out)):
        if array is None:
            continue
        if name != "x" and tuple(array.shape) != shape:
            raise ShapeError(f"`{name}` of a propagation step has the shape {shape}, got {tuple(array.shape)}")
        if in_numpy:
            _check_array(name, array)
    if in_numpy and (matrix.format != "csr" or matrix.data.dtype != np.float32):
        raise ShapeError(
            f"the matrix of a propagation step is CSR of float32, got {matrix.format} of {matrix.data.dtype}; "
            "convert it once, before the first step"
        )
    if in_numpy and out is not None and np.may_share_memory(x, out):
        raise ShapeError("`out` of a propagation step shares memory with `x`, which is still read; give another")


def _check_array(name: str, array: Any) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != np.float32:
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise ShapeError(f"`{name}` of a propagation step is a float32 array, got {kind}; convert it first")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ShapeError(f"`{name}` of a propagation step is C-contiguous, got strides {array.strides}; copy it first")


def _at_least_one(threads: int) -> int:
    if threads < 1:
        raise ConfigError(f"the number of threads is at least 1, got {threads}")
    return threads
