"""Files and folders appear whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pasca.atomic import leftovers, new_file, new_folder, remove_leftovers, write_file, write_json
from search_space.errors import RunError, StorageError


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    write_file(tmp_path / "a", "first")
    write_file(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="it is a folder; give a file"):
        write_file(tmp_path, "x")
    assert os.listdir(tmp_path) == []


def test_json_keeps_names_of_any_alphabet(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"name": "Żółw", "number": 0.1})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"name": "Żółw", "number": 0.1}


def test_the_file_gets_the_permissions_of_an_ordinary_one(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_file(tmp_path / "a", "x")
    finally:
        os.umask(mask)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_an_error_while_writing_keeps_the_earlier_file_and_leaves_no_other() -> None:
    """The limit on file sizes stands for a full disk; it is set in a process of its own."""
    code = """
import os, resource, sys, tempfile
from pathlib import Path
from pasca.atomic import write_file
from search_space.errors import StorageError
folder = Path(tempfile.mkdtemp())
write_file(folder / "a", "before")
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    write_file(folder / "a", "x" * 10_000)
except StorageError as error:
    assert str(folder / "a") in str(error) and "too large" in str(error), error
else:
    sys.exit("nothing was raised")
assert os.listdir(folder) == ["a"] and (folder / "a").read_text() == "before"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"missing/a: No such file"):
        write_file(tmp_path / "missing" / "a", "x")


def test_a_folder_appears_with_everything_in_it(tmp_path: Path) -> None:
    with new_folder(tmp_path / "deep" / "out") as folder:
        (folder / "a").write_text("x")
        assert not (tmp_path / "deep" / "out").exists()
    assert (tmp_path / "deep" / "out" / "a").read_text() == "x"
    assert os.listdir(tmp_path / "deep") == ["out"]


def test_an_error_leaves_no_folder(tmp_path: Path) -> None:
    def stop_halfway() -> None:
        with new_folder(tmp_path / "out") as folder:
            (folder / "a").write_text("x")
            raise ValueError("halfway")

    with pytest.raises(ValueError, match="halfway"):
        stop_halfway()
    assert os.listdir(tmp_path) == []


def test_an_existing_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(RunError, match="exists already"), new_folder(tmp_path / "out"):
        pass


def test_what_killed_writers_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
import pasca.atomic
os.replace = lambda *paths: os._exit(9)
os.rename = os.replace
if sys.argv[2] == "file":
    pasca.atomic.write_file(Path(sys.argv[1]) / "a", "x")
with pasca.atomic.new_folder(Path(sys.argv[1]) / "out") as folder:
    (folder / "b").write_text("x")
"""
    (tmp_path / "kept").write_text("x")
    for kind in ("file", "folder"):
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path), kind], check=False, timeout=60)
        assert done.returncode == 9
    assert len(leftovers(tmp_path)) == 2
    assert len(remove_leftovers(tmp_path)) == 2
    assert os.listdir(tmp_path) == ["kept"]


def test_a_writer_that_is_still_at_work_is_spared(tmp_path: Path) -> None:
    with new_folder(tmp_path / "out") as folder, new_file(tmp_path / "a") as file:
        (folder / "b").write_text("x")
        file.write(b"x")
        assert len(leftovers(tmp_path)) == 2
        assert remove_leftovers(tmp_path) == []
    assert sorted(os.listdir(tmp_path)) == ["a", "out"]


def test_the_next_writer_of_a_file_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from pasca.atomic import new_file
with new_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    for name in ("a", "b"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=False, timeout=60)
    assert len(leftovers(tmp_path)) == 2
    write_file(tmp_path / "a", "whole")
    assert len(leftovers(tmp_path)) == 1, "that of b is not a's to remove"
    assert (tmp_path / "a").read_text() == "whole"


def test_an_interrupted_file_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), new_file(tmp_path / "a"):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
