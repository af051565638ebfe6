"""Requests come out of a message as they went in, and long arrays are cut into pieces that cover them."""

from __future__ import annotations

import numpy as np

from engines.evaluation.messages import REQUEST_HEADER, Kind, Request, pack_request, pieces, unpack_request


def test_a_request_survives_the_journey() -> None:
    payload = np.arange(7, dtype=np.uint8)
    packed = pack_request(Request(Kind.PUSH, 2**40, 0.1, payload))
    assert packed.dtype == np.uint8
    assert packed.size == REQUEST_HEADER + 7
    read = unpack_request(packed)
    assert (read.kind, read.clock, read.weight) == (Kind.PUSH, 2**40, 0.1)
    np.testing.assert_array_equal(read.payload, payload)


def test_pieces_are_views_that_cover_the_array() -> None:
    array = np.zeros((5, 3), np.float32)
    cut = list(pieces(array, 16))
    assert [piece.size for piece in cut] == [4, 4, 4, 3]
    for piece in cut:
        piece += 1
    assert (array == 1).all()


def test_an_empty_array_is_one_empty_piece() -> None:
    assert [piece.size for piece in pieces(np.zeros((0, 3)), 16)] == [0]


def test_an_element_longer_than_a_piece_travels_alone() -> None:
    assert [piece.size for piece in pieces(np.zeros(3), 4)] == [1, 1, 1]
