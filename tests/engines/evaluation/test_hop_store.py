"""The hop store: whole files or none, damage that is mended, several processes, a limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.evaluation.hop_files import sealed_bytes
from engines.evaluation.hop_store import HopStore, Section, section_key
from search_space.errors import ConfigError, StorageError

ROOT = Path(__file__).resolve().parents[3]
SHAPE = (6, 4)
CHAIN = ("a", 0.1)
SIZE = sealed_bytes(SHAPE, "float32")
PLENTY = 1000 * SIZE


def put(section: Section, k: int, value: float = 1.0) -> object:
    def fill(out: np.ndarray) -> None:
        out[:] = value

    with section.extending(CHAIN, "float32"):
        return section.write(CHAIN, k, SHAPE, "float32", fill)


def get(section: Section, k: int) -> float | None:
    found = section.find(CHAIN, k, SHAPE, "float32")
    return None if found is None else float(found[0:1][0, 0])


def test_what_was_written_is_found_by_whoever_opens_the_section(tmp_path: Path) -> None:
    put(HopStore(tmp_path, PLENTY).section("s"), 1, 7.0)
    again = HopStore(tmp_path, PLENTY).section("s")
    assert (get(again, 1), get(again, 2)) == (7.0, None)
    assert again.find(("a", 0.2), 1, SHAPE, "float32") is None
    assert again.find(CHAIN, 1, SHAPE, "float16") is None
    assert get(HopStore(tmp_path, PLENTY).section("t"), 1) is None


def test_the_key_of_a_section_says_all_that_hops_depend_on() -> None:
    keys = {
        section_key(*parts) for parts in (("x", "row", "m"), ("y", "row", "m"), ("x", "l2", "m"), ("x", "row", "n"))
    }
    assert len(keys) == 4


def test_a_damaged_hop_is_one_warning_and_is_written_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(HopStore(tmp_path, PLENTY).section("s"), 1, 7.0)
    (path,) = tmp_path.rglob("hop-001")
    content = bytearray(path.read_bytes())
    content[-3] ^= 16
    path.write_bytes(content)
    section = HopStore(tmp_path, PLENTY).section("s")
    assert (get(section, 1), get(section, 1)) == (None, None)
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} is damaged (its checksum does not match) and is computed again"
    ]
    put(section, 1, 8.0)
    assert get(section, 1) == 8.0


def test_an_error_while_a_hop_is_written_leaves_nothing(tmp_path: Path) -> None:
    section = HopStore(tmp_path, PLENTY).section("s")

    def fail(out: np.ndarray) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), section.extending(CHAIN, "float32"):
        section.write(CHAIN, 1, SHAPE, "float32", fail)
    assert get(section, 1) is None
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["lock", "lock"]


def test_what_a_killed_writer_left_is_removed_and_never_read(tmp_path: Path) -> None:
    code = """
import sys, time
from pathlib import Path
from engines.evaluation.hop_store import HopStore
section = HopStore(Path(sys.argv[1]), 10**9).section("s")
def wait(out):
    out[:] = 3
    print("writing", flush=True)
    time.sleep(60)
with section.extending(("a", 0.1), "float32"):
    section.write(("a", 0.1), 1, (6, 4), "float32", wait)
"""
    writer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "writing\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    assert len(list(tmp_path.rglob(".unfinished-*"))) == 1
    section = HopStore(tmp_path, PLENTY).section("s")
    assert get(section, 1) is None
    put(section, 1, 4.0)
    assert get(section, 1) == 4.0
    assert list(tmp_path.rglob(".unfinished-*")) == []


def test_processes_at_once_write_each_hop_once_and_read_the_same(tmp_path: Path) -> None:
    code = """
import sys, time
from pathlib import Path
import numpy as np
from scipy import sparse
from engines.evaluation.hop_cache import HopCache
from engines.evaluation.hop_store import HopStore
start = Path(sys.argv[1], "start")
print("ready", flush=True)
while not start.exists():
    time.sleep(0.005)
section = HopStore(Path(sys.argv[1], "store"), 10**9).section("s")
ring = sparse.csr_array(np.roll(np.eye(50, dtype=np.float32), 1, axis=1))
features = np.arange(100, dtype=np.float32).reshape(50, 2)
with HopCache({"ring": ring}, features, 10**9, store=section) as hops:
    print(hops.num_steps, hops.hop("ring", 0.5, 20).sum(), hops.num_steps)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    several = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for one in several:
        assert one.stdout is not None
        one.stdout.readline()
    (tmp_path / "start").touch()
    answers = [one.communicate(timeout=60)[0].split() for one in several]
    assert len({answer[1] for answer in answers}) == 1
    assert sum(int(answer[2]) for answer in answers) == 20


def test_sections_used_longest_ago_make_room(tmp_path: Path) -> None:
    for name in ("old", "older", "new"):
        section = HopStore(tmp_path, PLENTY).section(name)
        put(section, 1)
        section.close()
    for seconds, name in enumerate(("older", "old", "new")):
        os.utime(tmp_path / name, (seconds, seconds))
    section = HopStore(tmp_path, 3 * SIZE).section("now")
    assert put(section, 1) is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "now", "old"]


def test_a_section_in_use_is_not_removed_and_the_store_is_full_instead(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    used = HopStore(tmp_path, PLENTY).section("used")
    put(used, 1, 5.0)
    section = HopStore(tmp_path, SIZE).section("now")
    assert put(section, 1) is None
    assert put(section, 2) is None
    assert get(used, 1) == 5.0
    assert len(caplog.records) == 1
    used.close()
    assert put(HopStore(tmp_path, SIZE).section("now"), 1) is not None


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot keep hops in .*file: .*; name another folder"):
        HopStore(tmp_path / "file", PLENTY).section("s")


def test_a_negative_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least 0 bytes, got -1"):
        HopStore(tmp_path, -1)


def test_a_section_removed_while_it_is_opened_is_made_again(tmp_path: Path) -> None:
    first = HopStore(tmp_path, PLENTY).section("s")
    put(first, 1)
    first.close()
    code = """
import fcntl, os, shutil, sys, time
handle = os.open(sys.argv[1] + "/s/lock", os.O_RDWR)
fcntl.flock(handle, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(0.3)
shutil.rmtree(sys.argv[1] + "/s")
"""
    remover = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert remover.stdout is not None
    remover.stdout.readline()
    began = time.monotonic()
    section = HopStore(tmp_path, PLENTY).section("s")
    assert time.monotonic() - began > 0.1
    assert get(section, 1) is None
    assert put(section, 1) is not None
    remover.communicate()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 5), st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3)), max_size=12))
def test_the_limit_holds_whatever_is_stored_and_no_hop_is_another_one(
    tmp_path: Path, room: int, asked: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        store = HopStore(Path(folder), room * SIZE, durable=False)
        for name, k in asked:
            section, value = store.section(name), float(ord(name) + 1000 * k)
            found = get(section, k)
            if found is None and put(section, k, value) is not None:
                found = get(section, k)
            assert found in (None, value)
            assert found == value or room < 3, "three hops of one section fit, since the others make room"
            section.close()
            assert sum(path.stat().st_size for path in Path(folder).rglob("hop-*")) <= room * SIZE
