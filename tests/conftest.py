"""What all tests share: thread limits, hypothesis settings, and where real graphs are."""

from __future__ import annotations

import os
from pathlib import Path

# Before numpy, torch and numba are imported: a test needs few threads, and several tests may run on one machine.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "2")

import hypothesis  # noqa: E402
import pytest  # noqa: E402

# A busy machine is no reason to fail (no deadline); in continuous integration the examples are the same every time.
hypothesis.settings.register_profile("pasca", deadline=None, derandomize=os.environ.get("CI") == "true")
hypothesis.settings.load_profile("pasca")


@pytest.fixture(scope="session")
def pasca_data() -> Path:
    """The folder with real graphs that PASCA_DATA names; skips the test when the variable is not set.

    A variable that is set but names no folder is a mistake and fails the test.
    """
    name = os.environ.get("PASCA_DATA")
    if not name:
        pytest.skip("needs real graphs: set PASCA_DATA to the folder that holds them")
    folder = Path(name)
    if not folder.is_dir():
        pytest.fail(f"PASCA_DATA must name a folder, got {name!r}")
    return folder.resolve()
