"""The compiled loops of the product of a dropped input with weights. Importing this module loads numba.

Half of the multiplications of an ordinary matrix product with a dropped input are by zero, and more where features are
sparse themselves. These loops leave them out. What is kept is listed first, eight columns at a time: a byte of the
random mask is compared with the threshold, the element with zero, and a table turns the eight answers into positions.
Then a row of results, 64 columns wide, stays in eight vector registers while the rows of the other factor that its list
names are multiplied and added; that factor is copied in blocks which fit the first cache, because rows that lie a power
of two apart would drive each other out of it.

Each result is summed by one thread, in the order of the columns (or rows): neither the number of threads nor the
repeats beside it change a bit of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 8
"""Floats in a vector, and columns looked at together when the kept ones are listed."""
BLOCK = 64
"""Columns of results that are held in registers."""
CHUNK_ROWS = 72
"""Rows of the input worked on together."""
PANEL = 128
"""Columns of the input worked on together; positions in a panel fit a byte."""

_FLOAT, _LONG, _INT, _BYTE = ir.FloatType(), ir.IntType(64), ir.IntType(32), ir.IntType(8)
_FLOATS, _BYTES = ir.VectorType(_FLOAT, LANES), ir.VectorType(_BYTE, LANES)
_EIGHT_ONES, _EIGHT_EIGHTS = np.uint64(0x0101010101010101), np.uint64(0x0808080808080808)
# masks of the three swaps that transpose an 8 x 8 matrix of bits
_SWAP_1, _SWAP_2, _SWAP_4 = np.uint64(0x00AA00AA00AA00AA), np.uint64(0x0000CCCC0000CCCC), np.uint64(0x00000000F0F0F0F0)


def _tables() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """For each byte: the positions of its bits, lowest first, one a byte of a word; and how many there are."""
    positions, counts = np.zeros(256, np.uint64), np.zeros(256, np.int64)
    for byte in range(256):
        of_byte = [bit for bit in range(8) if byte >> bit & 1]
        positions[byte] = sum(bit << (8 * place) for place, bit in enumerate(of_byte))
        counts[byte] = len(of_byte)
    return positions, counts


_POSITIONS, _COUNTS = _tables()


def _parts(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Arguments of an intrinsic, arrays as pointers to their first element."""
    return [
        context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _broadcast(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    """A vector of which each lane is that value."""
    undefined = ir.Constant(vector, ir.Undefined)
    lanes = ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(undefined, value, _INT(0)), undefined, lanes)


def _make_add_rows(num_vectors: int) -> Any:
    """An intrinsic that adds listed rows to `num_vectors` vectors of results, which stay in registers meanwhile."""

    def compile_add_rows(
        _: Any, out: Any, at: Any, kept: Any, first: Any, count: Any, x: Any, origin: Any, step: Any, rows: Any
    ) -> tuple[Any, Callable[..., Any]]:
        """out[at:at+8·num_vectors] += Σ_k x[origin + j·step] · rows[j·BLOCK:][:8·num_vectors], j = kept[first+k]."""
        long = types.intp
        signature = types.void(out, long, kept, long, long, x, long, long, rows)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            out, at, kept, first, count, x, origin, step, rows = _parts(context, builder, signature, arguments)
            results, listed, elements = builder.gep(out, [at]), builder.gep(kept, [first]), builder.gep(x, [origin])
            pointers = [
                builder.bitcast(builder.gep(results, [_LONG(LANES * v)]), _FLOATS.as_pointer())
                for v in range(num_vectors)
            ]
            starts = [builder.load(pointer, align=4) for pointer in pointers]
            before = builder.block
            head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
            builder.branch(head)
            builder.position_at_end(head)
            k = builder.phi(_LONG)
            k.add_incoming(_LONG(0), before)
            sums = [builder.phi(_FLOATS) for _ in range(num_vectors)]
            for total, start in zip(sums, starts, strict=True):
                total.add_incoming(start, before)
            builder.cbranch(builder.icmp_signed("<", k, count), body, end)
            builder.position_at_end(body)
            j = builder.zext(builder.load(builder.gep(listed, [k])), _LONG)
            factor = _broadcast(builder, builder.load(builder.gep(elements, [builder.mul(j, step)])), _FLOATS)
            row = builder.gep(rows, [builder.mul(j, _LONG(BLOCK))])
            multiply_add = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * 3), f"llvm.fmuladd.v{LANES}f32"
            )
            for v, total in enumerate(sums):
                piece = builder.bitcast(builder.gep(row, [_LONG(LANES * v)]), _FLOATS.as_pointer())
                total.add_incoming(builder.call(multiply_add, [factor, builder.load(piece, align=4), total]), body)
            k.add_incoming(builder.add(k, _LONG(1)), body)
            builder.branch(head)
            builder.position_at_end(end)
            for total, pointer in zip(sums, pointers, strict=True):
                builder.store(total, pointer, align=4)
            return context.get_dummy_value()

        return signature, generate

    return intrinsic(compile_add_rows)


def _compile_keep_eight(_: Any, mask: Any, threshold: Any, x: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """Bit j of the result: mask[at + j] >= threshold, and x[at + j] is not 0, for eight elements."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mask, threshold, x, at = _parts(context, builder, signature, arguments)
        random = builder.load(builder.bitcast(builder.gep(mask, [at]), _BYTES.as_pointer()), align=1)
        drawn = builder.icmp_unsigned(">=", random, _broadcast(builder, threshold, _BYTES))
        values = builder.load(builder.bitcast(builder.gep(x, [at]), _FLOATS.as_pointer()), align=4)
        # unordered: not-a-number is kept, so that it reaches the loss
        filled = builder.fcmp_unordered("!=", values, ir.Constant(_FLOATS, [0.0] * LANES))
        return builder.bitcast(builder.and_(drawn, filled), _BYTE)

    return types.uint8(mask, types.uint8, x, types.intp), generate


def _compile_store_eight(_: Any, kept: Any, at: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """Write the eight bytes of a word to kept[at:at+8]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kept, at, word = _parts(context, builder, signature, arguments)
        builder.store(word, builder.bitcast(builder.gep(kept, [at]), _LONG.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(kept, types.intp, types.uint64), generate


def _compile_copy_row(_: Any, rows: Any, at: Any, scale: Any, block: Any, to: Any) -> tuple[Any, Callable[..., Any]]:
    """block[to:to+BLOCK] = scale · rows[at:at+BLOCK]; the compiler's own loop took six times as long."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, at, scale, block, to = _parts(context, builder, signature, arguments)
        factor = _broadcast(builder, scale, _FLOATS)
        source, target = builder.gep(rows, [at]), builder.gep(block, [to])
        for lane in range(0, BLOCK, LANES):
            read = builder.bitcast(builder.gep(source, [_LONG(lane)]), _FLOATS.as_pointer())
            written = builder.bitcast(builder.gep(target, [_LONG(lane)]), _FLOATS.as_pointer())
            builder.store(builder.fmul(factor, builder.load(read, align=4)), written, align=4)
        return context.get_dummy_value()

    return types.void(rows, types.intp, types.float32, block, types.intp), generate


_add_rows_8, _add_rows_4, _add_rows_1 = (_make_add_rows(count) for count in (8, 4, 1))
_keep_eight: Any = intrinsic(_compile_keep_eight)
_store_eight: Any = intrinsic(_compile_store_eight)
_copy_row: Any = intrinsic(_compile_copy_row)


@numba.njit(inline="always", nogil=True)
def _add_rows(
    width: Any, out: Any, at: Any, kept: Any, first: Any, count: Any, x: Any, origin: Any, step: Any, rows: Any
) -> None:
    """As `_make_add_rows`, for at least `width` columns of results: 8, 32 or 64 of them."""
    if width > 32:
        _add_rows_8(out, at, kept, first, count, x, origin, step, rows)
    elif width > 8:
        _add_rows_4(out, at, kept, first, count, x, origin, step, rows)
    else:
        _add_rows_1(out, at, kept, first, count, x, origin, step, rows)


@numba.njit(nogil=True)
def _copy_block(rows: Any, first: int, last: int, column: int, width: int, scale: Any, block: Any) -> None:
    """scale · rows[first:last, column:column+width] into rows of BLOCK floats, filled up with zeros."""
    for r in range(first, last):
        begin = (r - first) * BLOCK
        if width == BLOCK:
            _copy_row(rows, r * rows.shape[1] + column, scale, block, begin)
            continue
        for c in range(width):
            block[begin + c] = scale * rows[r, column + c]
        for c in range(width, BLOCK):
            block[begin + c] = 0.0


def _forward(
    mask: Any,
    threshold: Any,
    x: Any,
    num_columns: int,
    scale: Any,
    weights: Any,
    bits: Any,
    out: Any,
    first: int,
    last: int,
) -> None:
    """Rows first..last-1 of (dropped x) times weights, and which elements were kept.

    Args:
        mask: (n·F,) random bytes, or more of them.
        threshold: an element is kept when its byte is at least that.
        x: (n·F,) float32, the rows one after the other; `num_columns` is F.
        scale: of the kept.
        weights: (F, H) float32.
        bits: (n, ⌈F/8⌉) uint8, written: which elements were kept and are not 0, eight columns a byte.
        out: (n, H) float32, written.
    """
    F, H = num_columns, weights.shape[1]
    num_blocks = (H + BLOCK - 1) // BLOCK
    kept = np.empty(CHUNK_ROWS * (PANEL + LANES), np.uint8)
    counts = np.empty(CHUNK_ROWS, np.int64)
    sums = np.empty(num_blocks * CHUNK_ROWS * BLOCK, np.float32)  # block after block, so that rows of one lie together
    block = np.empty(PANEL * BLOCK, np.float32)
    for top in range(first, last, CHUNK_ROWS):
        bottom = min(last, top + CHUNK_ROWS)
        sums[:] = 0.0
        for left in range(0, F, PANEL):
            right = min(F, left + PANEL)
            for i in range(top, bottom):
                begin = (i - top) * (PANEL + LANES)
                count, offset = 0, np.uint64(0)
                for column in range(left, right, LANES):
                    at = i * F + column
                    if column + LANES <= F:
                        byte = _keep_eight(mask, threshold, x, at)
                    else:
                        byte = np.uint8(0)
                        for j in range(F - column):
                            if mask[at + j] >= threshold and x[at + j] != 0.0:
                                byte |= np.uint8(1) << np.uint8(j)
                    bits[i, column // LANES] = byte
                    _store_eight(kept, begin + count, _POSITIONS[byte] + offset)
                    offset += _EIGHT_EIGHTS
                    count += _COUNTS[byte]
                counts[i - top] = count
            for c in range(0, H, BLOCK):
                width = min(BLOCK, H - c)
                _copy_block(weights, left, right, c, width, np.float32(1.0), block)
                for i in range(bottom - top):
                    _add_rows(
                        width,
                        sums,
                        c * CHUNK_ROWS + i * BLOCK,
                        kept,
                        i * (PANEL + LANES),
                        counts[i],
                        x,
                        (top + i) * F + left,
                        1,
                        block,
                    )
        for i in range(top, bottom):
            for c in range(0, H, BLOCK):
                begin = c * CHUNK_ROWS + (i - top) * BLOCK
                for q in range(min(BLOCK, H - c)):
                    out[i, c + q] = scale * sums[begin + q]


def _backward(bits: Any, x: Any, num_columns: int, scale: Any, gradient: Any, out: Any, first: int, last: int) -> None:
    """Rows first..last-1 of (dropped x)ᵀ times gradient.

    Args:
        bits: (n, ⌈F/8⌉) uint8, as `_forward` wrote it.
        x, num_columns, scale: as for `_forward`.
        gradient: (n, H) float32.
        out: (F, H) float32, of which those rows are written; `first` is a multiple of 8, and `last` one or F.
    """
    F, (n, H) = num_columns, gradient.shape
    kept = np.empty(PANEL * (CHUNK_ROWS + LANES), np.uint8)
    counts = np.empty(PANEL, np.int64)
    block = np.empty(CHUNK_ROWS * BLOCK, np.float32)
    piece = np.empty(BLOCK, np.float32)
    for left in range(first, last, PANEL):
        right = min(last, left + PANEL)
        out[left:right] = 0.0
        for top in range(0, n, CHUNK_ROWS):
            bottom = min(n, top + CHUNK_ROWS)
            counts[:] = 0
            for i in range(top, bottom, LANES):
                many = min(LANES, bottom - i)
                offset = _EIGHT_ONES * np.uint64(i - top)
                for column in range(left, right, LANES):
                    square = np.uint64(0)
                    for k in range(many):
                        square |= np.uint64(bits[i + k, column // LANES]) << np.uint64(8 * k)
                    # eight rows of eight columns become eight columns of eight rows
                    swap = (square ^ (square >> np.uint64(7))) & _SWAP_1
                    square ^= swap ^ (swap << np.uint64(7))
                    swap = (square ^ (square >> np.uint64(14))) & _SWAP_2
                    square ^= swap ^ (swap << np.uint64(14))
                    swap = (square ^ (square >> np.uint64(28))) & _SWAP_4
                    square ^= swap ^ (swap << np.uint64(28))
                    for j in range(LANES):
                        byte = np.uint8(square >> np.uint64(8 * j))
                        at = column - left + j
                        _store_eight(kept, at * (CHUNK_ROWS + LANES) + counts[at], _POSITIONS[byte] + offset)
                        counts[at] += _COUNTS[byte]
            for c in range(0, H, BLOCK):
                width = min(BLOCK, H - c)
                _copy_block(gradient, top, bottom, c, width, scale, block)
                for j in range(left, right):
                    begin = (j - left) * (CHUNK_ROWS + LANES)
                    if width == BLOCK:
                        _add_rows_8(out, j * H + c, kept, begin, counts[j - left], x, top * F + j, F, block)
                        continue
                    for q in range(width):
                        piece[q] = out[j, c + q]
                    _add_rows(width, piece, 0, kept, begin, counts[j - left], x, top * F + j, F, block)
                    for q in range(width):
                        out[j, c + q] = piece[q]


@functools.cache
def compiled_forward() -> Callable[..., None]:
    """`_forward`, from the cache on disk when it is there."""
    bytes_, floats, rows = _types()
    signature = types.void(
        bytes_,
        types.uint8,
        floats,
        types.intp,
        types.float32,
        rows,
        types.Array(types.uint8, 2, "C"),
        types.Array(types.float32, 2, "C"),
        types.intp,
        types.intp,
    )
    loop: Callable[..., None] = numba.njit([signature], cache=True, nogil=True, error_model="numpy")(_forward)
    return loop


@functools.cache
def compiled_backward() -> Callable[..., None]:
    """`_backward`, from the cache on disk when it is there."""
    _, floats, rows = _types()
    signature = types.void(
        types.Array(types.uint8, 2, "C", readonly=True),
        floats,
        types.intp,
        types.float32,
        rows,
        types.Array(types.float32, 2, "C"),
        types.intp,
        types.intp,
    )
    loop: Callable[..., None] = numba.njit([signature], cache=True, nogil=True, error_model="numpy")(_backward)
    return loop


def _types() -> tuple[Any, Any, Any]:
    """Read-only bytes, floats and rows of floats; writable arrays are admitted too."""
    return (
        types.Array(types.uint8, 1, "C", readonly=True),
        types.Array(types.float32, 1, "C", readonly=True),
        types.Array(types.float32, 2, "C", readonly=True),
    )
