"""What ranks say to one another arrives whole, in order and where it was meant."""

from __future__ import annotations

import numpy as np
import pytest

from engines.evaluation.communicator import Communicator
from engines.evaluation.messages import Tag
from engines.evaluation.mpi import MPICommunicator
from search_space.errors import ShapeError


def test_an_exchange_hands_every_part_to_its_rank(ranks: Communicator) -> None:
    parts = [np.full((ranks.rank + to, 2), 10 * ranks.rank + to, np.float32) for to in range(ranks.size)]
    for source, part in enumerate(ranks.exchange(parts)):
        np.testing.assert_array_equal(part, np.full((source + ranks.rank, 2), 10 * source + ranks.rank))


def test_a_sum_is_the_same_everywhere(ranks: Communicator) -> None:
    total = ranks.sum(np.array([[ranks.rank, 1.0]]))
    np.testing.assert_array_equal(total, [[ranks.size * (ranks.size - 1) / 2, ranks.size]])


def test_a_broadcast_fills_every_rank(ranks: Communicator) -> None:
    array = np.full(5, ranks.rank, np.int64)
    ranks.broadcast(array, root=ranks.size - 1)
    assert array.tolist() == [ranks.size - 1] * 5


def test_objects_are_gathered_in_rank_order(ranks: Communicator) -> None:
    assert ranks.gather_objects({"rank": ranks.rank}) == [{"rank": rank} for rank in range(ranks.size)]


def test_rows_of_different_lengths_are_gathered(ranks: Communicator) -> None:
    rows = np.full((ranks.rank, 3), ranks.rank, np.float32)
    assert [part.shape for part in ranks.gather(rows)] == [(rank, 3) for rank in range(ranks.size)]


def test_a_split_makes_groups_and_leaves_out_who_wants_none(ranks: Communicator) -> None:
    group = ranks.split(None if ranks.rank == 0 else ranks.rank % 2)
    if ranks.rank == 0:
        assert group is None
    else:
        assert group is not None
        members = group.gather_objects(ranks.rank)
        assert members == [rank for rank in range(1, ranks.size) if rank % 2 == ranks.rank % 2]


def test_objects_come_in_the_order_in_which_they_were_sent(ranks: Communicator) -> None:
    if ranks.size == 1:
        pytest.skip("needs two ranks")
    if ranks.rank == 0:
        for number in range(3):
            ranks.send_object({"number": number}, 1, Tag.ORDER)
    if ranks.rank == 1:
        assert [ranks.receive_object(0, Tag.ORDER)["number"] for _ in range(3)] == [0, 1, 2]


def test_long_arrays_travel_in_pieces(ranks: Communicator) -> None:
    if not isinstance(ranks, MPICommunicator):
        pytest.skip("needs MPI")
    small = MPICommunicator(ranks._inner.Dup(), piece_bytes=64)
    parts = [np.arange(100, dtype=np.float64) + to for to in range(ranks.size)]
    for part in small.exchange(parts):
        np.testing.assert_array_equal(part, np.arange(100) + ranks.rank)
    np.testing.assert_array_equal(small.sum(np.arange(50)), np.arange(50) * ranks.size)
    expected = (ranks.size - 1) * 13  # 800 bytes in messages of 64
    assert small.traffic.num_messages == expected


def test_payloads_are_counted(ranks: Communicator) -> None:
    before = ranks.traffic.copy()
    ranks.exchange([np.zeros((3, 2), np.float32)] * ranks.size)
    moved = ranks.traffic.since(before)
    assert moved.sent_bytes == moved.received_bytes == 24 * (ranks.size - 1)


def test_a_message_of_another_length_is_refused_by_name(ranks: Communicator) -> None:
    if ranks.size == 1:
        pytest.skip("needs two ranks")
    if ranks.rank == 0:
        ranks.wait([ranks.start_send(np.zeros(2, np.float32), 1, Tag.ROWS)])
    if ranks.rank == 1:
        receiving = ranks.start_receive(np.zeros(4, np.float32), 0, Tag.ROWS)
        with pytest.raises(ShapeError, match=r"expected from rank 0 16 bytes but received 8"):
            ranks.wait([receiving])
