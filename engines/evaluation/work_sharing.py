"""Pieces of one computation, shared out among threads that live for it alone.

The pieces run compiled loops without the interpreter's lock. Threads are cheap to start beside a piece of a
millisecond, and none is there when a process forks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

P = TypeVar("P")


def share_out(compute: Callable[[P], None], pieces: Sequence[P], threads: int) -> None:
    """Call `compute` for each piece, in order when `threads` is 1; the calling thread is one of them.

    Raises:
        Exception: what a piece raised; pieces that no thread had begun with may then be left out.
    """
    left = iter(pieces)

    def compute_what_is_left() -> None:
        for piece in left:  # shared: whichever thread is free takes the next piece
            compute(piece)

    if threads == 1:
        compute_what_is_left()
        return
    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(compute_what_is_left) for _ in range(threads - 1)]
        compute_what_is_left()
        for other in others:
            other.result()
