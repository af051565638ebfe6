"""The compiled loop of propagation. Importing this module loads numba; `propagation.py` does so on first use.

The loop is limited by memory: most of its time goes into fetching the rows of `x` that a node gathers from. So the next
rows are asked for ahead of time, four rows are added per pass over the output row, which stays in the first cache, and
nothing else is written. It runs without the interpreter's lock on a range of rows; threads share the rows out among
them, and no thread layer of numba's is involved. Each row is summed by one thread in a fixed order: results do not
depend on the number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

# How many edges ahead a row is asked for, and how much of it (in lines of 64 bytes); the processor itself goes on with
# the rest of a long row.
EDGES_AHEAD = 8
LINES_AHEAD = 8
FLOATS_PER_LINE = 16


def _compile_prefetch(_: Any, array: Any, position: Any) -> tuple[Any, Callable[..., Any]]:
    """Ask the processor for the cache line at `position`, in elements from the array's start; reads nothing."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(prefetch, [address, number(0), number(3), number(1)])  # to read, keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


_prefetch: Any = intrinsic(_compile_prefetch)


def _propagate_rows(
    indptr: Any, indices: Any, weights: Any, x: Any, restart: Any, start: Any, out: Any, first: int, last: int
) -> None:
    """Write rows first..last-1 of (1 - restart) M x + restart start into `out`.

    Args:
        indptr, indices, weights: the CSR parts of M, (N+1,), (E,) and (E,); index type int32 or int64.
        x: (N, F) float32, C-contiguous.
        restart: float32; at 0, `start` is not read and may be any array of its type.
        start, out: (N, F) float32, C-contiguous; `out` shares no memory with `x`.
    """
    F = x.shape[1]
    asked = min(F, LINES_AHEAD * FLOATS_PER_LINE)
    keep = numba.float32(1.0) - restart
    end_of_all = indptr[last]
    e = indptr[first]
    for i in range(first, last):
        row = out[i]
        if restart == 0.0:
            row[:] = 0.0
        else:
            for f in range(F):
                row[f] = restart * start[i, f]
        end = indptr[i + 1]
        while e + 4 <= end:
            if e + EDGES_AHEAD + 4 <= end_of_all:
                for ahead in range(e + EDGES_AHEAD, e + EDGES_AHEAD + 4):
                    position = numba.intp(indices[ahead]) * F
                    for line in range(0, asked, FLOATS_PER_LINE):
                        _prefetch(x, position + line)
            w0, w1 = keep * weights[e], keep * weights[e + 1]
            w2, w3 = keep * weights[e + 2], keep * weights[e + 3]
            x0, x1, x2, x3 = x[indices[e]], x[indices[e + 1]], x[indices[e + 2]], x[indices[e + 3]]
            for f in range(F):
                row[f] += (w0 * x0[f] + w1 * x1[f]) + (w2 * x2[f] + w3 * x3[f])
            e += 4
        while e < end:
            if e + EDGES_AHEAD < end_of_all:
                position = numba.intp(indices[e + EDGES_AHEAD]) * F
                for line in range(0, asked, FLOATS_PER_LINE):
                    _prefetch(x, position + line)
            w0, x0 = keep * weights[e], x[indices[e]]
            for f in range(F):
                row[f] += w0 * x0[f]
            e += 1


@functools.cache
def compiled_loop(index_type: str) -> Callable[..., None]:
    """`_propagate_rows` for matrices with that index type, `int32` or `int64`; from the cache on disk when it is there.

    Inputs are declared read-only, which admits writable arrays too, so that one compiled version serves all.
    """
    index = numba.from_dtype(np.dtype(index_type))
    indices, weights = types.Array(index, 1, "C", readonly=True), types.Array(types.float32, 1, "C", readonly=True)
    rows, out = types.Array(types.float32, 2, "C", readonly=True), types.Array(types.float32, 2, "C")
    signature = types.void(indices, indices, weights, rows, types.float32, rows, out, types.intp, types.intp)
    compiler = numba.njit([signature], cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
    loop: Callable[..., None] = compiler(_propagate_rows)
    return loop
