"""Signals wait while the record is written."""

from __future__ import annotations

import os
import signal

import pytest

from pasca.interrupts import Terminated, held_back, terminations_raised


def kill_self(signal_number: int, done: list[str]) -> None:
    with held_back():
        os.kill(os.getpid(), signal_number)
        done.append("written")


def test_an_interrupt_waits_until_the_block_has_ended() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        kill_self(signal.SIGINT, done)
    assert done == ["written"]


def test_a_termination_is_raised_like_an_interrupt() -> None:
    with pytest.raises(Terminated), terminations_raised():
        signal.raise_signal(signal.SIGTERM)


def test_a_termination_waits_too() -> None:
    done: list[str] = []
    with pytest.raises(Terminated), terminations_raised():
        kill_self(signal.SIGTERM, done)
    assert done == ["written"]


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with terminations_raised(), held_back(), held_back():
        pass
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_an_error_in_the_block_is_not_lost() -> None:
    with pytest.raises(ValueError, match="mine"), held_back():
        raise ValueError("mine")
