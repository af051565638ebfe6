"""Ids: never guessed to be numbers, whatever their fast form; found and given back as spelled."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pasca.datasets.ids import Ids, NodeIndex, ids_of, ids_of_each, repeated, union

SPELLINGS = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.integers(-20, 20).map(str),
    st.sampled_from(
        ["007", "7", "+7", "7.0", "1e5", "100000", "NA", "null", "", " 7", "-0", "0", "a#1", "9" * 25, "é"]
    ),
)


def ids(texts: list[str], chunks: int = 1) -> Ids:
    parts = np.array_split(np.array(texts, dtype=object), chunks)
    return ids_of(pa.chunked_array([pa.array(list(part), type=pa.string()) for part in parts], type=pa.string()))


@settings(max_examples=40)
@given(texts=st.lists(SPELLINGS, max_size=12), chunks=st.integers(1, 3))
def test_every_id_is_given_back_as_spelled(texts: list[str], chunks: int) -> None:
    held = ids(texts, chunks)
    assert [held[i] for i in range(len(held))] == texts


@settings(max_examples=40)
@given(nodes=st.lists(SPELLINGS, max_size=8, unique=True), asked=st.lists(SPELLINGS, max_size=8))
def test_ids_are_found_by_their_text_alone(nodes: list[str], asked: list[str]) -> None:
    expected = [nodes.index(text) if text in nodes else -1 for text in asked]
    assert NodeIndex(ids(nodes)).find(ids(asked)).tolist() == expected


@settings(max_examples=40)
@given(nodes=st.lists(st.integers(-(2**62), 2**62).map(str), max_size=8, unique=True), asked=st.lists(SPELLINGS))
def test_integers_far_apart_are_found_too(nodes: list[str], asked: list[str]) -> None:
    expected = [nodes.index(text) if text in nodes else -1 for text in asked + nodes]
    assert NodeIndex(ids(nodes)).find(ids(asked + nodes)).tolist() == expected


@settings(max_examples=40)
@given(one=st.lists(SPELLINGS, max_size=6), other=st.lists(SPELLINGS, max_size=6))
def test_a_union_has_every_id_once(one: list[str], other: list[str]) -> None:
    both = union(ids(one), ids(other))
    assert sorted(both[i] for i in range(len(both))) == sorted({*one, *other})


@settings(max_examples=60)
@given(one=st.lists(SPELLINGS, max_size=6), other=st.lists(SPELLINGS, max_size=6), asked=st.lists(SPELLINGS))
def test_columns_numbered_together_read_as_each_alone(one: list[str], other: list[str], asked: list[str]) -> None:
    columns = [pa.chunked_array([pa.array(texts, type=pa.string())]) for texts in (one, other)]
    together = ids_of_each(*columns)
    for held, texts in zip(together, (one, other), strict=True):
        assert [held[i] for i in range(len(held))] == texts
        assert sorted(held.distinct().to_pylist()) == sorted(set(texts))
    index = NodeIndex(union(*together))
    nodes = [index.ids[i] for i in range(len(index))]
    assert sorted(nodes) == sorted({*one, *other})
    original = index.original()
    assert original is None or original.tolist() == nodes
    for held in together:
        assert [nodes[i] for i in index.find(held)] == [held[i] for i in range(len(held))]
    assert index.find(ids(asked)).tolist() == [nodes.index(text) if text in nodes else -1 for text in asked]
    only_first = NodeIndex(union(together[0]))
    known = [only_first.ids[i] for i in range(len(only_first))]
    assert sorted(known) == sorted(set(one))
    assert only_first.find(together[1]).tolist() == [known.index(text) if text in known else -1 for text in other]


def test_a_union_of_integers_ascends_by_value() -> None:
    both = union(ids(["10", "9"]), ids(["100", "9"]))
    assert [both[i] for i in range(len(both))] == ["9", "10", "100"]


@pytest.mark.parametrize(
    ("texts", "expected"), [(["a", "b"], None), (["a", "b", "a", "b"], (0, 2)), (["3", "1", "3"], (0, 2)), ([], None)]
)
def test_the_first_repeat_is_found(texts: list[str], expected: tuple[int, int] | None) -> None:
    assert repeated(ids(texts)) == expected


def test_ids_that_are_the_node_numbers_need_no_texts() -> None:
    assert NodeIndex(ids(["0", "1", "2"])).original() is None
    assert NodeIndex(ids(["1", "0"])).original().tolist() == ["1", "0"]
    assert NodeIndex(ids(["00", "1"])).original().tolist() == ["00", "1"]


def test_unsigned_integers_past_int64_stay_distinct() -> None:
    held = ids_of(pa.chunked_array([pa.array([2**64 - 1, 3], type=pa.uint64())]))
    assert [held[0], held[1]] == [str(2**64 - 1), "3"]
