"""Keeping large blocks: repeated allocations fetch no new pages, and everything is given back at the end."""

from __future__ import annotations

import resource
import threading
from pathlib import Path

import numpy as np
import pytest

from engines.evaluation import allocator
from engines.evaluation.allocator import keeping_large_blocks

MEGABYTE = 1 << 20
pytestmark = pytest.mark.skipif(allocator._glibc() is None, reason="needs glibc")


def faults_of_ten_blocks() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.empty(64 * MEGABYTE, np.uint8).fill(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_a_block_is_fetched_once_and_used_again() -> None:
    usual = faults_of_ten_blocks()
    with keeping_large_blocks():
        faults_of_ten_blocks()  # the first one is fetched
        kept = faults_of_ten_blocks()
    assert kept < usual / 4


def test_memory_is_given_back_at_the_end() -> None:
    before = resident_bytes()
    with keeping_large_blocks():
        np.empty(256 * MEGABYTE, np.uint8).fill(1)
        assert resident_bytes() > before + 200 * MEGABYTE
    assert resident_bytes() < before + 50 * MEGABYTE


def test_the_last_of_several_users_ends_it() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with keeping_large_blocks():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with keeping_large_blocks():
        pass
    assert allocator._users == 1
    leave.set()
    thread.join()
    assert allocator._users == 0
