"""Arrays from files: exactly what the header describes, no objects, no bombs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from pasca.datasets import arrays
from pasca.datasets.arrays import Npz, peek_npy, read_npy
from search_space.errors import DataError


@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.asfortranarray(np.eye(3, 2)), np.zeros((0, 4)), np.array(["a", "ü"])]
)
def test_arrays_come_back_equal_and_writable(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", array)
    np.savez_compressed(tmp_path / "a.npz", a=array)
    with Npz(tmp_path / "a.npz") as npz:
        for back in (read_npy(tmp_path / "a.npy"), npz["a"]):
            assert np.array_equal(back, array)
            assert back.dtype == array.dtype
            assert back.flags.writeable
    assert peek_npy(tmp_path / "a.npy") == array.shape


def test_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object))
    with pytest.raises(DataError, match=r"a\.npy: the .* holds pickled objects|a\.npy holds pickled objects"):
        read_npy(tmp_path / "a.npy")


def test_asking_whether_an_array_is_there_reads_nothing(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.array([{}], dtype=object))
    with Npz(tmp_path / "a.npz") as npz:
        assert "a" in npz
        assert "b" not in npz
        assert npz.is_object("a")
        assert not npz.is_object("b")


@pytest.mark.parametrize("kept", [0, 5, 40, 127, 130, -1])
def test_a_truncated_npy_is_one_line(tmp_path: Path, kept: int) -> None:
    np.save(tmp_path / "whole.npy", np.arange(10))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:kept])
    with pytest.raises(DataError, match=r"cut\.npy.* damaged or cut off"):
        read_npy(tmp_path / "cut.npy")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_npz_is_one_line(tmp_path: Path, share: float) -> None:
    np.savez_compressed(tmp_path / "whole.npz", a=np.arange(1000), b=np.arange(10))
    content = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match=r"cut\.npz: not a complete \.npz archive"):
        Npz(tmp_path / "cut.npz")


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.arange(1000), b=np.arange(10))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[1500] ^= 0xFF  # inside the numbers of `a`
    (tmp_path / "a.npz").write_bytes(bytes(content))
    with Npz(tmp_path / "a.npz") as npz:
        assert npz["b"].size == 10
        with pytest.raises(DataError, match=r"array 'a' is damaged"):
            npz["a"]


def test_a_header_that_claims_more_than_there_is_allocates_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(1))
    content = (tmp_path / "a.npy").read_bytes()
    claim = b"(99999999999,), }"
    (tmp_path / "a.npy").write_bytes(content.replace(b"(1,), }" + b" " * 10, claim))
    with pytest.raises(DataError, match="describes 799999999992 bytes, 8 follow"):
        read_npy(tmp_path / "a.npy")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "HARMLESS_BYTES", 1 << 20)
    with (
        zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a.npy", "w", force_zip64=True) as member,
    ):
        member.write(bytes(1 << 22))
    with pytest.raises(DataError, match=r"member 'a\.npy' would unpack from .* more than 200 times"):
        Npz(tmp_path / "bomb.npz")


def test_a_missing_array_is_named_with_what_exists(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", labels=np.arange(3), edges=np.arange(3))
    with Npz(tmp_path / "a.npz") as npz, pytest.raises(DataError, match="'x' is missing; the file holds labels, edges"):
        npz.require("x")
