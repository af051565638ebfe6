"""Signals that ask the process to end: held back while the record is written, and turned into one exception."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived; handled like Ctrl-C, except for the exit code."""


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait until the block has ended, then deliver the first that came.

    Signals reach the main thread only, so in any other thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for held in before:
        signal.signal(held, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for held, handler in before.items():
            # None stands for a handler that was not set from Python and cannot be put back.
            if handler is not None:
                signal.signal(held, handler)
    if came:
        number, frame = came[0]
        handler = before[number]
        if callable(handler):
            handler(number, frame)
        elif handler is signal.SIG_DFL:
            signal.raise_signal(number)


@contextlib.contextmanager
def terminations_raised() -> Iterator[None]:
    """Turn SIGTERM into `Terminated` within the block. Does nothing outside the main thread."""

    def end(number: int, frame: FrameType | None) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
