"""Work sharing: every piece once, by several threads, failures told."""

from __future__ import annotations

import threading

import pytest

from engines.evaluation.work_sharing import share_out


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_piece_is_computed_once(threads: int) -> None:
    done: list[int] = []
    share_out(done.append, range(100), threads)
    assert sorted(done) == list(range(100))


def test_one_thread_goes_in_order_and_is_the_calling_one() -> None:
    done: list[tuple[int, int]] = []
    share_out(lambda piece: done.append((piece, threading.get_ident())), range(5), 1)
    assert done == [(piece, threading.get_ident()) for piece in range(5)]


def test_pieces_are_computed_at_the_same_time() -> None:
    together = threading.Barrier(2, timeout=30)
    share_out(lambda _: together.wait() and None, range(2), 2)  # passes only when both are there


@pytest.mark.parametrize("threads", [1, 3])
def test_what_a_piece_raises_is_raised(threads: int) -> None:
    def compute(piece: int) -> None:
        if piece == 3:
            raise ZeroDivisionError(f"piece {piece}")

    with pytest.raises(ZeroDivisionError, match="piece 3"):
        share_out(compute, range(6), threads)
