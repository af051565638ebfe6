"""Sparse and dense features in files of their own, and claims that a file cannot back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pasca.datasets.feature_files import read_features
from search_space.errors import DataError

DENSE = np.array([[1.5, 0, -2], [0, 0, 0]])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_sparse_npz_of_every_layout_is_read(tmp_path: Path, kind: Any) -> None:
    sparse.save_npz(tmp_path / "f.npz", kind(DENSE))
    back = read_features(tmp_path / "f.npz")
    assert back.format == "csr"
    assert np.array_equal(back.toarray(), DENSE)


def test_a_list_of_numbers_is_one_column(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.arange(3))
    assert read_features(tmp_path / "f.npy").tolist() == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"format": b"dia", "shape": [2, 2], "data": [1.0]}, "is csr, csc or coo here, got .'dia'"),
        ({"format": b"\xff", "shape": [2, 2], "data": [1.0]}, "not a sparse matrix"),
        ({"format": b"csr", "shape": [2, 2], "data": [1.0], "indices": [5], "indptr": [0, 1, 1]}, "index 5 in row 0"),
        ({"format": b"coo", "shape": [2, 2], "data": [1.0], "row": [2], "col": [0]}, r"index 2 .* outside 0\.\.1"),
        ({"format": b"coo", "shape": [10**12, 2], "data": [1.0], "row": [2], "col": [0]}, "do not make a matrix of"),
        ({"format": b"coo", "shape": ["a", "b"], "data": [1.0], "row": [0], "col": [0]}, "two non-negative sides"),
        ({"format": b"csc", "shape": [10**12, 1], "data": [1.0], "indices": [0], "indptr": [0, 1]}, "do not make"),
        ({"format": b"csr", "shape": [2, 2], "data": [1.0]}, "'indices' is missing"),
        ({"one": [[1.0]], "two": [[2.0]]}, "expected one array or a sparse matrix, the file holds one, two"),
        ({"one": ["a"]}, "expected a matrix of numbers"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "f.npz", **{key: np.array(value) for key, value in arrays.items()})
    with pytest.raises(DataError, match=message):
        read_features(tmp_path / "f.npz")


def test_another_suffix_lists_what_is_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"features come as \.npy, \.npz, \.mtx or a table"):
        read_features(tmp_path / "f.mat")
