"""Node ids: texts as the source spells them, mapped to node numbers and back.

Ids are never guessed to be numbers: 7 and 007 differ, 1e5 and 100000 differ, NA is an id. Where every id is a decimal
integer in its one plain spelling, integers stand for the texts, because they are many times faster to look up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pasca.datasets.parts import Integers

# A table from id to node may be this many times longer than the list of ids.
_DENSE_FACTOR = 8
_DENSE_MINIMUM = 1 << 20
# 10**k for k of 0..18, the largest that int64 holds.
_POWERS = 10 ** np.arange(19, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Ids:
    """A list of ids, possibly with repeats.

    Attributes:
        integers: (n,) int64, when every id is a plainly spelled integer; else None.
        texts: a pyarrow ChunkedArray of n strings, when they are not; else None.
    """

    integers: Integers | None
    texts: Any = None

    def __len__(self) -> int:
        return len(self.texts) if self.integers is None else int(self.integers.size)

    def __getitem__(self, i: int) -> str:
        return str(self.texts[i].as_py() if self.integers is None else self.integers[i])

    def as_texts(self) -> Any:
        """A pyarrow ChunkedArray of strings."""
        import pyarrow as pa

        return self.texts if self.integers is None else pa.chunked_array([self.integers]).cast(pa.string())


def ids_of(column: Any) -> Ids:
    """Ids of a pyarrow ChunkedArray of strings or integers without nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type):
        try:
            return Ids(np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64))
        except pa.ArrowInvalid:  # beyond int64
            return Ids(None, column.cast(pa.string()))
    # One look at the first id spares most text columns the attempt.
    if not len(column) or not column[0].as_py().lstrip("-").isdecimal():
        return Ids(None, column)
    try:
        integers = np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)
    except pa.ArrowInvalid:
        return Ids(None, column)
    lengths = np.asarray(pc.binary_length(column).to_numpy(), dtype=np.int64)
    return Ids(integers) if np.array_equal(lengths, _plain_lengths(integers)) else Ids(None, column)


def _plain_lengths(integers: Integers) -> Integers:
    """How many characters each integer's plain spelling has."""
    # The smallest int64 has no absolute value; its wrapped one is negative and gives a length that no text has.
    digits = np.searchsorted(_POWERS, np.abs(integers), side="right")
    return np.maximum(digits, 1) + (integers < 0)


class NodeIndex:
    """The nodes of a graph by id, numbered 0..N-1 in the order given.

    Args:
        ids: distinct.
    """

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self._lookup: Integers | None = None
        self._order: Integers | None = None
        self._low = 0
        if ids.integers is not None and len(ids):
            low, high = int(ids.integers.min()), int(ids.integers.max())
            if high - low < max(_DENSE_MINIMUM, _DENSE_FACTOR * len(ids)):
                self._low = low
                self._lookup = np.full(high - low + 1, -1, dtype=np.int64)
                self._lookup[ids.integers - low] = np.arange(len(ids), dtype=np.int64)
            else:
                self._order = np.argsort(ids.integers, kind="stable")

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, ids: Ids) -> Integers:
        """Node numbers of ids, -1 for one that is no node."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if ids.integers is None or self.ids.integers is None:
            values = self.ids.as_texts().combine_chunks()
            found = pc.index_in(ids.as_texts(), value_set=values)
            return np.asarray(found.cast(pa.int64()).fill_null(-1).to_numpy(), dtype=np.int64)
        if self._lookup is not None:
            places = ids.integers - self._low
            inside = (places >= 0) & (places < self._lookup.size)
            return (
                self._lookup[places]
                if inside.all()
                else np.where(inside, self._lookup[np.where(inside, places, 0)], -1)
            )
        if self._order is None:
            return np.full(len(ids), -1, dtype=np.int64)
        ascending = self.ids.integers[self._order]
        places = np.minimum(np.searchsorted(ascending, ids.integers), ascending.size - 1)
        return np.where(ascending[places] == ids.integers, self._order[places], -1)

    def original(self) -> NDArray[np.str_] | None:
        """(N,) texts, or None where the ids are the node numbers."""
        N = len(self)
        if self.ids.integers is None:
            return np.array(self.ids.texts.to_pylist(), dtype=np.str_)
        if np.array_equal(self.ids.integers, np.arange(N)):
            return None
        width = int(_plain_lengths(self.ids.integers).max())
        return self.ids.integers.astype(f"<U{width}")


def repeated(ids: Ids) -> tuple[int, int] | None:
    """The first two places that hold the same id, or None when all differ."""
    if ids.integers is not None:
        order = np.argsort(ids.integers, kind="stable")
        values: NDArray[Any] = ids.integers[order]
    else:
        import pyarrow.compute as pc

        codes = pc.index_in(ids.texts, value_set=pc.unique(ids.texts)).to_numpy()
        order = np.argsort(codes, kind="stable")
        values = np.asarray(codes)[order]
    same = np.flatnonzero(values[1:] == values[:-1])
    if not same.size:
        return None
    # The repeat that comes first in the file, with its first occurrence.
    later = order[same + 1]
    place = int(np.argmin(later))
    return int(order[same[place]]), int(later[place])


def union(*lists: Ids) -> Ids:
    """The distinct ids of several lists, integers ascending, texts sorted."""
    if all(ids.integers is not None for ids in lists):
        arrays = [ids.integers for ids in lists if ids.integers is not None]
        return Ids(_unique(arrays))
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = [chunk for ids in lists for chunk in ids.as_texts().chunks]
    values = pc.unique(pa.chunked_array(chunks, type=pa.string()))
    return Ids(None, pa.chunked_array([values.take(pc.array_sort_indices(values))]))


def _unique(arrays: list[Integers]) -> Integers:
    """Distinct values ascending; by marking a range where the values lie close together, else by sorting."""
    total = sum(array.size for array in arrays)
    filled = [array for array in arrays if array.size]
    if not filled:
        return np.zeros(0, dtype=np.int64)
    low, high = min(int(array.min()) for array in filled), max(int(array.max()) for array in filled)
    if high - low < max(_DENSE_MINIMUM, _DENSE_FACTOR * total):
        seen = np.zeros(high - low + 1, dtype=bool)
        for array in filled:
            seen[array - low] = True
        return np.flatnonzero(seen) + low
    return np.unique(np.concatenate(filled))
