"""What all tests share: thread limits, hypothesis settings, and where real graphs are."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# A job in the background of a shell ignores Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before numpy, torch and numba are imported: a test needs few threads, and several tests may run on one machine. One
# worker of several has one; numba's number is an upper limit, within which tests ask for two.
_threads = "1" if "PYTEST_XDIST_WORKER" in os.environ else "2"
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, _threads)
os.environ.setdefault("NUMBA_NUM_THREADS", "2")

import hypothesis  # noqa: E402
import pytest  # noqa: E402

# A busy machine is no reason to fail (no deadline); in continuous integration the examples are the same every time.
hypothesis.settings.register_profile("pasca", deadline=None, derandomize=os.environ.get("CI") == "true")
hypothesis.settings.load_profile("pasca")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers, which take whole files in this order, begin with the files that take longest."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
        items.sort(key=lambda item: -slow[item.path])


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


@pytest.fixture(scope="session", autouse=True)
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests keep for later runs is not put among what this machine's user keeps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PASCA_CACHE", str(tmp_path_factory.mktemp("pasca-cache")))
        yield
