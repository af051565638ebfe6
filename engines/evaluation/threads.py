"""Thread counts of the numerical libraries, set together so that they do not fight over cores."""

from __future__ import annotations

import os

from engines.evaluation.propagation import set_threads as set_propagation_threads


def available_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(threads: int | None) -> int:
    """Use that many threads in torch and the propagation kernel (all available cores when None); return the count."""
    import torch

    count = available_cores() if threads is None else threads
    torch.set_num_threads(count)
    set_propagation_threads(count)
    return count
