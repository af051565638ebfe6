"""Read the arrays, sparse matrices and plain containers of a pickle without running anything that the pickle names.

An ordinary unpickler imports and calls what the file says. This one knows a short list of names, maps each to a
stand-in of its own, and refuses every other name. The stand-ins rebuild arrays from raw bytes, so a size that the file
merely claims allocates nothing.
"""

from __future__ import annotations

import io
import pickle
import struct
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from pasca.datasets.csr import checked_csr
from search_space.errors import DataError

_CLAIMS = (
    pickle.UnpicklingError,
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    AssertionError,
)


class _ForeignGlobal(Exception):
    """The pickle names something outside the list."""


class _StandIn:
    """Base of what the listed names build; only these accept a state."""


class _Dtype(_StandIn):
    def __init__(self, code: str, *_: object) -> None:
        self.code = code if isinstance(code, str) else bytes(code).decode("ascii")
        self.order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1] if state[1] in ("<", ">") else "="

    def dtype(self) -> np.dtype[Any]:
        if self.code[:1] not in tuple("biuf"):
            raise ValueError(f"an array of type {self.code!r} is not numeric")
        return np.dtype(self.order + self.code)


class _Array(_StandIn):
    value: np.ndarray[Any, np.dtype[Any]] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, raw = state
        content = raw.encode("latin1") if isinstance(raw, str) else bytes(raw)
        flat = np.frombuffer(content, dtype=dtype.dtype())
        self.value = flat.reshape(tuple(shape), order="F" if is_fortran else "C")


class _Csr(_StandIn):
    value: sparse.csr_array | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = {name: state[name].value for name in ("data", "indices", "indptr")}
        self.value = checked_csr(parts["data"], parts["indices"], parts["indptr"], tuple(state["_shape"]))


def _reconstruct(*_: object) -> _Array:
    return _Array()


def _reconstructor(kind: Any, *_: object) -> Any:
    """What protocols 0 and 1 write for an object of a class."""
    if not (isinstance(kind, type) and issubclass(kind, _StandIn)):
        raise pickle.UnpicklingError("an object of no known class")
    return kind()


def _frombuffer(raw: bytes, dtype: _Dtype, shape: tuple[int, ...], order: str) -> _Array:
    array = _Array()
    array.__setstate__((1, shape, dtype, order == "F", raw))
    return array


def _encode(text: str, _: str = "latin1") -> bytes:
    return text.encode("latin1")


def _defaultdict(*_: object) -> dict[Any, Any]:
    return {}


_NAMES: dict[str, Any] = {
    "numpy.core.multiarray._reconstruct": _reconstruct,
    "numpy._core.multiarray._reconstruct": _reconstruct,
    "numpy.core.numeric._frombuffer": _frombuffer,
    "numpy._core.numeric._frombuffer": _frombuffer,
    "numpy.ndarray": _Array,
    "numpy.dtype": _Dtype,
    "scipy.sparse.csr.csr_matrix": _Csr,
    "scipy.sparse._csr.csr_matrix": _Csr,
    "collections.defaultdict": _defaultdict,
    "__builtin__.list": "list",
    "builtins.list": "list",
    "__builtin__.object": "object",
    "copy_reg._reconstructor": _reconstructor,
    "_codecs.encode": _encode,
}


# The pure-Python unpickler: the C one allocates a table as long as the largest memo number that a file claims.
class _Unpickler(pickle._Unpickler):
    def find_class(self, module: str, name: str, /) -> Any:
        try:
            return _NAMES[f"{module}.{name}"]
        except KeyError:
            raise _ForeignGlobal(f"{module}.{name}") from None

    def load_build(self) -> None:
        stack: list[Any] = self.stack  # type: ignore[attr-defined]  # typeshed leaves it out
        state, target = stack.pop(), stack[-1]
        if not isinstance(target, _StandIn):
            raise pickle.UnpicklingError("a state for an object that takes none")
        target.__setstate__(state)  # type: ignore[attr-defined]

    dispatch: ClassVar[dict[int, Any]] = {**pickle._Unpickler.dispatch, pickle.BUILD[0]: load_build}


def read_pickle(path: Path) -> Any:
    """Read a pickle of arrays, CSR matrices, lists, dicts, numbers and text.

    Returns:
        The content; every array is an ndarray of numbers, every CSR matrix a checked csr_array.
    Raises:
        DataError: the pickle names a foreign global, is cut off, or is no pickle at all.
    """
    try:
        value = _Unpickler(io.BytesIO(path.read_bytes()), encoding="latin1").load()
    except _ForeignGlobal as foreign:
        raise DataError(
            f"{path}: the pickle asks for {foreign}, which is not among the array types it may hold; "
            "nothing was run; get the file from a source you trust, or convert the data to .npz"
        ) from None
    except _CLAIMS as error:
        reason = str(error).split("\n")[0][:120] or type(error).__name__
        raise DataError(f"{path}: not a complete pickle of arrays ({reason}); fetch the file again") from None
    return value.value if isinstance(value, (_Array, _Csr)) else value
