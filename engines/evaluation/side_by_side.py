"""Groups of repeats of one design, trained side by side in threads that share out the cores.

The matrices of one repeat on a small graph are too small for two cores: a thread each for two products takes as long as
one thread for both, because they meet after every operation. Repeats need nothing from each other, so each core trains
its own (docs/decisions/0003).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")


def train_side_by_side(train: Callable[[Sequence[int]], T], groups: Sequence[Sequence[int]]) -> list[T]:
    """Call `train` for each group of seeds, all at the same time, with an equal share of torch's threads each.

    Returns:
        The results in the order of the groups.
    Raises:
        Exception: what the first group to fail, in their order, raised; the others have ended then, too.
    """
    if len(groups) == 1:
        return [train(groups[0])]
    threads = torch.get_num_threads()
    share = max(threads // len(groups), 1)

    def train_with_share(group: Sequence[int]) -> T:
        torch.set_num_threads(share)  # OpenMP keeps the number by thread
        return train(group)

    try:
        with ThreadPoolExecutor(len(groups), thread_name_prefix="repeats") as pool:
            return [done.result() for done in [pool.submit(train_with_share, group) for group in groups]]
    finally:
        torch.set_num_threads(threads)
