"""Groups of repeats side by side: in order, with a share of the threads, failures told."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest
import torch

from engines.evaluation.side_by_side import train_side_by_side
from search_space.errors import TrialFailure


@pytest.fixture
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def test_groups_run_at_the_same_time_and_come_back_in_order(four_threads: None) -> None:
    together = threading.Barrier(2, timeout=30)

    def train(group: Sequence[int]) -> tuple[list[int], int]:
        together.wait()  # passes only when both are there
        return list(group), torch.get_num_threads()

    assert train_side_by_side(train, [[1, 2], [3]]) == [([1, 2], 2), ([3], 2)]
    assert torch.get_num_threads() == 4


def test_one_group_keeps_every_thread(four_threads: None) -> None:
    assert train_side_by_side(lambda group: torch.get_num_threads(), [[1, 2, 3]]) == [4]


def test_a_failure_of_one_group_is_raised_after_all_have_ended(four_threads: None) -> None:
    ended = []

    def train(group: Sequence[int]) -> None:
        if group == [2]:
            raise TrialFailure("training diverged")
        ended.append(group)

    with pytest.raises(TrialFailure, match="diverged"):
        train_side_by_side(train, [[1], [2], [3]])
    assert sorted(ended) == [[1], [3]]
    assert torch.get_num_threads() == 4
