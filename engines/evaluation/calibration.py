"""Calibration: what this machine does in a second, for plans of runs that have not been started."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy import sparse

from engines.evaluation.plan_model import ENTRY_COLUMNS, Rates
from engines.evaluation.propagation import propagate_step

USUAL_WIRE_BYTES = 1e9
"""Bytes a second of a 10-gigabit network, less its overhead."""

NUM_NODES, DEGREE, WIDTH = 200_000, 20, 64


def calibrate(wire_bytes: float | None = None, clock: Callable[[], float] = time.perf_counter) -> Rates:
    """Measure one thread's propagation on a random graph whose features do not fit the caches.

    Args:
        wire_bytes: bytes a second between ranks, where they are known.
        clock: monotonic seconds.
    """
    rng = np.random.default_rng(0)
    indices = rng.integers(0, NUM_NODES, NUM_NODES * DEGREE).astype(np.int32)
    indptr = np.arange(NUM_NODES + 1, dtype=np.int32) * DEGREE
    weights = np.full(indices.size, 1.0 / DEGREE, np.float32)
    matrix = sparse.csr_array((weights, indices, indptr), shape=(NUM_NODES, NUM_NODES))
    x = rng.standard_normal((NUM_NODES, WIDTH), dtype=np.float32)
    out = np.empty_like(x)
    propagate_step(matrix, x, out=out, threads=1)  # warm-up: compilation, page faults
    spans = []
    for _ in range(3):
        began = clock()
        propagate_step(matrix, x, out=out, threads=1)
        spans.append(clock() - began)
    return Rates(indices.size * (WIDTH + ENTRY_COLUMNS) / float(np.median(spans)), wire_bytes or USUAL_WIRE_BYTES)
