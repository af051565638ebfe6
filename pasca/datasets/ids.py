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
        values: (n,) the integers themselves, when every id is a plainly spelled integer; else numbers of `names`.
        names: a pyarrow StringArray of distinct texts, when they are not; else None. Lists that were encoded together
            share it, so it may hold texts of which this list has none.
    """

    values: Integers
    names: Any = None

    @property
    def integers(self) -> Integers | None:
        """(n,) the ids as integers, where all of them are."""
        return self.values if self.names is None else None

    def __len__(self) -> int:
        return int(self.values.size)

    def __getitem__(self, i: int) -> str:
        return str(self.values[i] if self.names is None else self.names[int(self.values[i])].as_py())

    def without_first(self) -> Ids:
        """All ids but the first, in their fastest form."""
        import pyarrow as pa

        return self if self.names is None else ids_of(pa.chunked_array([self.names.take(pa.array(self.values[1:]))]))

    def distinct(self) -> Any:
        """The distinct ids as a pyarrow StringArray, in the order of `values`."""
        import pyarrow as pa

        present = _unique([self.values])
        if self.names is None:
            return pa.array(present).cast(pa.string())
        return self.names if present.size == len(self.names) else self.names.take(pa.array(present))


def ids_of(column: Any) -> Ids:
    """Ids of a pyarrow ChunkedArray of strings or integers without nulls."""
    return ids_of_each(column)[0]


def ids_of_each(*columns: Any) -> list[Ids]:
    """Ids of several columns, as `ids_of` gives them; their texts are numbered together, each hashed once for all."""
    import pyarrow as pa

    found = [_integers(column) for column in columns]
    texts = [column.cast(pa.string()) for column, values in zip(columns, found, strict=True) if values is None]
    encoded = iter(_encoded(texts) if texts else ())
    return [next(encoded) if values is None else Ids(values) for values in found]


def _integers(column: Any) -> Integers | None:
    """The ids as integers, where all of them are plainly spelled ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type):
        try:
            return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)
        except pa.ArrowInvalid:  # beyond int64
            return None
    # One look at the first id spares most text columns the attempt.
    if not len(column) or not column[0].as_py().lstrip("-").isdecimal():
        return None
    try:
        integers = np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)
    except pa.ArrowInvalid:
        return None
    lengths = np.asarray(pc.binary_length(column).to_numpy(), dtype=np.int64)
    return integers if np.array_equal(lengths, _plain_lengths(integers)) else None


def _encoded(columns: list[Any]) -> list[Ids]:
    """Texts as numbers of their distinct values."""
    import pyarrow as pa

    encoded = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
    encoded = encoded.dictionary_encode()  # the chunks have one dictionary
    names = encoded.chunk(0).dictionary if encoded.num_chunks else pa.array([], pa.string())
    numbers = [np.asarray(chunk.indices.to_numpy(), dtype=np.int64) for chunk in encoded.chunks]
    codes = np.concatenate(numbers) if numbers else np.zeros(0, dtype=np.int64)
    ends = np.cumsum([len(column) for column in columns])
    return [Ids(values, names) for values in np.split(codes, ends[:-1])]


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

        if ids.names is not None and ids.names is self.ids.names:
            nodes = np.full(len(ids.names), -1, dtype=np.int64)
            nodes[self.ids.values] = np.arange(len(self), dtype=np.int64)
            return nodes[ids.values]
        if ids.names is not None or self.ids.names is not None:
            # Only distinct texts are looked up; repeats follow by number.
            asked = ids.names if ids.names is not None else pa.array(ids.values).cast(pa.string())
            places = pc.index_in(asked, value_set=self.ids.distinct()).cast(pa.int64()).fill_null(-1)
            numbers = np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)
            # Distinct ids stand in the order of their values, whether those are integers or numbers of names.
            nodes = np.append(np.argsort(self.ids.values, kind="stable"), -1)
            found = nodes[numbers]
            return found if ids.names is None else found[ids.values]
        integers = ids.values
        if self._lookup is not None:
            places = integers - self._low
            inside = (places >= 0) & (places < self._lookup.size)
            return (
                self._lookup[places]
                if inside.all()
                else np.where(inside, self._lookup[np.where(inside, places, 0)], -1)
            )
        if self._order is None:
            return np.full(len(ids), -1, dtype=np.int64)
        ascending = self.ids.values[self._order]
        places = np.minimum(np.searchsorted(ascending, integers), ascending.size - 1)
        return np.where(ascending[places] == integers, self._order[places], -1)

    def original(self) -> NDArray[np.str_] | None:
        """(N,) texts, or None where the ids are the node numbers."""
        N = len(self)
        if self.ids.integers is None:
            return np.array(self.ids.names.to_pylist(), dtype=np.str_)[self.ids.values]
        if np.array_equal(self.ids.integers, np.arange(N)):
            return None
        width = int(_plain_lengths(self.ids.integers).max())
        return self.ids.integers.astype(f"<U{width}")


def repeated(ids: Ids) -> tuple[int, int] | None:
    """The first two places that hold the same id, or None when all differ."""
    order = np.argsort(ids.values, kind="stable")
    values = ids.values[order]
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

    if all(ids.names is lists[0].names for ids in lists):
        present = _unique([ids.values for ids in lists])
        order = np.asarray(pc.array_sort_indices(lists[0].names.take(pa.array(present))).to_numpy(), dtype=np.int64)
        return Ids(present[order], lists[0].names)
    texts = pc.unique(pa.chunked_array([ids.distinct() for ids in lists], type=pa.string()))
    ordered = texts.take(pc.array_sort_indices(texts))
    return Ids(np.arange(len(ordered)), ordered)


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
