"""Raw labels become class numbers 0..C-1, -1 for a node without a label, and class names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.graph import UNLABELLED
from search_space.errors import DataError

Labels = NDArray[np.int64]


def compact(
    raw: NDArray[Any] | None, num_nodes: int, source: str, names: tuple[str, ...] | None = None
) -> tuple[Labels, tuple[str, ...]]:
    """Number the classes that occur, numeric ones ascending and others in sorted order.

    Args:
        raw: (N,), (N, 1), or one-hot (N, C); integers, floats, booleans or text; None for no labels. Missing are any
            negative number, NaN, empty text and all-zero one-hot rows.
        source: the file, for messages.
        names: names of the label numbers 0.. where the source has them.
    Returns:
        (N,) int64 labels and the C class names.
    Raises:
        DataError: a wrong number of labels, an infinite label, a type that is no label, a number without a name.
    """
    if raw is None:
        return np.full(num_nodes, UNLABELLED, dtype=np.int64), ()
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    elif raw.ndim == 2 and raw.shape[0] == num_nodes and raw.dtype.kind in "biuf":
        raw = _from_one_hot(raw, source)
    if raw.shape != (num_nodes,):
        raise DataError(f"{source}: expected one label for each of {num_nodes} nodes, got labels of shape {raw.shape}")
    if raw.dtype.kind == "U":
        return _compact_text(raw.astype(np.str_))
    if raw.dtype.kind not in "biuf":
        raise DataError(f"{source}: labels are numbers or text, got type {raw.dtype}")
    return _compact_numbers(raw, source, names)


def _from_one_hot(raw: NDArray[Any], source: str) -> Labels:
    """(N, C) zeros and ones -> (N,) column numbers, -1 for a row of zeros."""
    bad = np.flatnonzero(~((raw == 0) | (raw == 1)).all(axis=1) | (np.count_nonzero(raw, axis=1) > 1))
    if bad.size:
        raise DataError(
            f"{source}: labels of shape {raw.shape} must be one-hot, but row {bad[0]} is not; "
            "several labels a node are not supported"
        )
    return np.where(raw.any(axis=1), raw.argmax(axis=1), UNLABELLED).astype(np.int64)


def _compact_numbers(raw: NDArray[Any], source: str, names: tuple[str, ...] | None) -> tuple[Labels, tuple[str, ...]]:
    if raw.dtype.kind == "b":
        raw, names = raw.astype(np.int64), ("False", "True")
    if raw.dtype.kind == "f" and np.isinf(raw).any():
        raise DataError(
            f"{source}: labels are finite, but row {int(np.flatnonzero(np.isinf(raw))[0])} holds {raw.max()}"
        )
    present = ~np.isnan(raw) if raw.dtype.kind == "f" else np.ones(raw.shape, dtype=bool)
    present &= ~np.signbit(np.where(present, raw, 0)) if raw.dtype.kind == "f" else raw >= 0
    present |= raw == 0  # a float -0.0 is class 0
    values, numbers = np.unique(raw[present], return_inverse=True)
    labels = np.full(raw.shape, UNLABELLED, dtype=np.int64)
    labels[present] = numbers
    if names is None:
        return labels, tuple(_number_text(value) for value in values.tolist())
    unnamed = [value for value in values.tolist() if value != int(value) or int(value) >= len(names)]
    if unnamed:
        raise DataError(f"{source}: there are {len(names)} class names but a label is {_number_text(unnamed[0])}")
    return labels, tuple(names[int(value)] for value in values.tolist())


def _compact_text(raw: NDArray[np.str_]) -> tuple[Labels, tuple[str, ...]]:
    texts, numbers = np.unique(raw, return_inverse=True)
    stripped = [str(text).strip() for text in texts]
    parsed = [_parse(text) for text in stripped]
    missing = [
        not text or (number is not None and (math.isnan(number) or number < 0))
        for text, number in zip(stripped, parsed, strict=True)
    ]
    kept = [i for i in range(len(stripped)) if not missing[i]]
    if all(parsed[i] is not None and math.isfinite(parsed[i] or 0.0) for i in kept):
        names_of = {i: _number_text(parsed[i] or 0.0) for i in kept}
        ordered = sorted({names_of[i]: parsed[i] or 0.0 for i in kept}.items(), key=lambda item: item[1])
        class_names = tuple(name for name, _ in ordered)
    else:
        names_of = {i: stripped[i] for i in kept}
        class_names = tuple(sorted(set(names_of.values())))
    number_of = {name: number for number, name in enumerate(class_names)}
    lookup = np.array(
        [UNLABELLED if missing[i] else number_of[names_of[i]] for i in range(len(stripped))], dtype=np.int64
    )
    return lookup[numbers.reshape(-1)] if lookup.size else np.zeros(0, dtype=np.int64), class_names


def _parse(text: str) -> float | None:
    """The number that a text spells, or None; underscores, which Python allows in numbers, make a name."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _number_text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
