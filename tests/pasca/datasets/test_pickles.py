"""An unpickler that builds arrays and containers, and calls nothing that a file names."""

from __future__ import annotations

import os
import pickle
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pasca.datasets.pickles import read_pickle
from search_space.errors import DataError

MATRIX = sparse.csr_matrix(np.array([[0, 2.5, 0], [1, 0, 0]], dtype=np.float64))


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "file.pickle"
    path.write_bytes(content)
    return path


def read_or_message(path: Path) -> Any:
    """The content, or the one line that says why there is none."""
    try:
        return read_pickle(path)
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_matrices_of_every_protocol_come_back(tmp_path: Path, protocol: int) -> None:
    back = read_pickle(written(tmp_path, pickle.dumps(MATRIX, protocol=protocol)))
    assert np.array_equal(back.toarray(), MATRIX.toarray())


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3), np.array([[1.5], [-2]], ">f8"), np.ones((2, 2), bool)])
@pytest.mark.parametrize("protocol", [2, 5])
def test_arrays_keep_shape_and_byte_order(tmp_path: Path, array: np.ndarray, protocol: int) -> None:
    back = read_pickle(written(tmp_path, pickle.dumps(array, protocol=protocol)))
    assert np.array_equal(back, array)
    assert back.dtype == array.dtype


def test_names_of_python_2_are_understood(tmp_path: Path, python2_pickle: Callable[[Any], bytes]) -> None:
    content = python2_pickle(MATRIX)
    assert b"scipy.sparse.csr\n" in content
    assert np.array_equal(read_pickle(written(tmp_path, content)).toarray(), MATRIX.toarray())


def test_a_default_dict_of_lists_becomes_a_dict(tmp_path: Path) -> None:
    value = defaultdict(list, {0: [1, 2], 1: []})
    assert read_pickle(written(tmp_path, pickle.dumps(value, protocol=2))) == {0: [1, 2], 1: []}


class Shout:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("CANARY EXECUTED",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_foreign_global_is_named_and_not_run(
    tmp_path: Path, protocol: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, pickle.dumps([MATRIX, Shout()], protocol=protocol))
    with pytest.raises(DataError, match=r"print") as caught:
        read_pickle(path)
    assert str(path) in str(caught.value)
    assert "CANARY" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x02cposix\nsystem\nU\x04true\x85R.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.",
        b"(S'true'\nios\nsystem\n.",
    ],
)
def test_every_way_to_name_a_function_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match="asks for"):
        read_pickle(written(tmp_path, content))


def test_a_state_is_given_to_stand_ins_only(tmp_path: Path) -> None:
    # BUILD with a slot state would set attributes of a function on the list of names.
    content = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nN}X\x08\x00\x00\x00__code__NsN\x86b."
    with pytest.raises(DataError):
        read_pickle(written(tmp_path, content))


def test_a_claimed_size_allocates_nothing(tmp_path: Path) -> None:
    # LONG_BINPUT of memo number 2**31 - 1 makes the C unpickler allocate 16 GB or more.
    for content in (b"\x80\x02K\x01r\xff\xff\xff\x7f.", b"\x80\x02X\xff\xff\xff\x7fab.", b"\x80\x04\x95" + b"\xff" * 8):
        value = read_or_message(written(tmp_path, content))
        assert value == 1 or "not a complete pickle" in value


def test_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        read_pickle(written(tmp_path, pickle.dumps(np.array([Shout()], dtype=object), protocol=2)))


def test_indices_outside_a_matrix_are_refused(tmp_path: Path) -> None:
    bad = sparse.csr_matrix(MATRIX)
    bad.indices = np.array([1, 7], dtype=np.int32)
    with pytest.raises(DataError, match=r"index 7 in row 1 is outside 0\.\.2"):
        read_pickle(written(tmp_path, pickle.dumps(bad, protocol=2)))


@pytest.mark.parametrize("kept", [0, 1, 20, -1])
def test_a_truncated_pickle_is_one_line(tmp_path: Path, kept: int) -> None:
    content = pickle.dumps(MATRIX, protocol=2)
    with pytest.raises(DataError, match=r"not a complete pickle|asks for") as caught:
        read_pickle(written(tmp_path, content[:kept]))
    assert "\n" not in str(caught.value)


@settings(max_examples=150)
@given(data=st.data())
def test_mutated_pickles_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(pickle.dumps([MATRIX, {0: [1]}], protocol=2))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = Path(os.fspath(tmp_path_factory.getbasetemp())) / "mutated.pickle"
    path.write_bytes(bytes(content))
    assert "\n" not in str(read_or_message(path))
