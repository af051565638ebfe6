"""Matrix Market files: what SciPy writes comes back, what is damaged is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from pasca.datasets.matrix_market import read_mtx
from search_space.errors import DataError

DENSE = np.array([[1.5, 0, -2], [0, 0, 0], [4, 1e-3, 0]])
HEAD = "%%MatrixMarket matrix coordinate real general\n"


def dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.mark.parametrize(
    ("matrix", "options"),
    [
        (sparse.coo_array(DENSE), {}),
        (sparse.coo_array(DENSE.astype(np.int64)), {}),
        (sparse.coo_array(DENSE != 0), {"field": "pattern"}),
        (sparse.coo_array(DENSE + DENSE.T), {"symmetry": "symmetric"}),
        (sparse.coo_array(DENSE - DENSE.T), {"symmetry": "skew-symmetric"}),
        (sparse.coo_array((3, 2)), {}),
        (DENSE, {}),
        (DENSE[:, :2], {"comment": "two columns"}),
    ],
)
def test_what_scipy_writes_comes_back(tmp_path: Path, matrix: Any, options: dict[str, Any]) -> None:
    mmwrite(tmp_path / "m.mtx", matrix, **options)
    back = read_mtx(tmp_path / "m.mtx")
    assert np.allclose(dense(back), dense(matrix))
    assert sparse.issparse(back) == sparse.issparse(matrix)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has a line with sizes, found none"),
        ("hello\n", "expected %%MatrixMarket"),
        (HEAD, "has a line with sizes, found none"),
        (HEAD.replace("real", "complex") + "1 1 0\n", "expected %%MatrixMarket"),
        (HEAD + "3 2\n", r"the sizes of a matrix are numbers, got '3 2' in line 2"),
        (HEAD + "3 2 5\n1 1 1.0\n", "claims 5 entries|expected 5 entries of 3 numbers, got 1"),
        (HEAD + "3 2 1\n1 1 1.0\n2 2 1.0\n", "expected 1 entries of 3 numbers, got 2 of 3"),
        (HEAD + "3 2 2\n1 1 1.0\n2 2\n", "its entries cannot be read"),
        (HEAD + "3 2 1\n1 1 x\n", "its entries cannot be read"),
        (HEAD + "3 2 1\n4 1 1.0\n", r"index 3 .* is outside 0\.\.2"),
        (HEAD + "3 2 1\n0 1 1.0\n", r"index -1 .* is outside 0\.\.2"),
        (HEAD + "3 2 1\n1.5 1 1.0\n", "whole numbers from 1"),
        (HEAD + "3 2 1\nnan 1 1.0\n", "whole numbers from 1"),
        (HEAD + "3 2 999999999999\n1 1 1.0\n", "claims 999999999999 entries, more than the file can hold"),
        (HEAD + "999999999999 2 1\n1 1 1.0\n", "1 entries do not make a matrix of 999999999999 rows"),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "m.mtx").write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_mtx(tmp_path / "m.mtx")
    assert "\n" not in str(caught.value)
