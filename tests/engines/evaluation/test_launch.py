"""Ranks are known from what launchers put into the environment."""

from __future__ import annotations

import pytest

from engines.evaluation.launch import launched_ranks


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (0, 1)),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, (2, 4)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"}, (1, 3)),
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8"}, (5, 8)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, (0, 1)),  # a batch script, not one of the tasks
    ],
)
def test_ranks_are_known_from_the_launcher(environment: dict[str, str], expected: tuple[int, int]) -> None:
    assert launched_ranks(environment) == expected
