"""Which of how many ranks this process is, as its launcher says. Reads the environment and loads nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping

_NAMES = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""Variables of rank and number of ranks that MPICH, OpenMPI, MVAPICH and Slurm set."""


def launched_ranks(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """(rank, number of ranks) as the launcher of this process states them; (0, 1) without a launcher.

    Read from the environment, so that a single process never loads an MPI library.
    """
    for rank, size in _NAMES:
        if rank in environment and size in environment:
            return int(environment[rank]), int(environment[size])
    return 0, 1
