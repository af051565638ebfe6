"""Feature normalisation: in float, safe on empty rows, fitted once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from engines.evaluation.normalise import Normaliser
from search_space.errors import ConfigError, ShapeError

X = np.array([[60000, 60000, 0], [0, 0, 0], [1, -3, 0]], dtype=np.float32)


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("row", [[0.5, 0.5, 0], [0, 0, 0], [0.25, -0.75, 0]]),
        # columns sum to 60001 and 60003, rows to 120000, 0 and 4
        (
            "symmetric",
            [
                [60000 / (120000 * 60001) ** 0.5, 60000 / (120000 * 60003) ** 0.5, 0],
                [0, 0, 0],
                [1 / (4 * 60001) ** 0.5, -3 / (4 * 60003) ** 0.5, 0],
            ],
        ),
        ("l2", [[0.5**0.5, 0.5**0.5, 0], [0, 0, 0], [10**-0.5, -3 * 10**-0.5, 0]]),
        ("none", X),
    ],
)
def test_rows_by_hand(as_given: type, kind: str, expected: object) -> None:
    given = as_given(X)
    found = Normaliser.fit(kind, given).apply(given)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_standard_centres_and_scales_columns_and_spares_constant_ones(as_given: type) -> None:
    given = as_given(X)
    found = Normaliser.fit("standard", given).apply(given)
    expected = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["standard", "symmetric"])
def test_statistics_are_not_refitted_on_other_features(kind: str) -> None:
    fitted = Normaliser.fit(kind, X)
    again = Normaliser.from_mapping(fitted.as_mapping())
    row = np.array([[5.0, 6.0, 7.0]], dtype=np.float32)
    np.testing.assert_array_equal(again.apply(row), fitted.apply(row))
    assert np.abs(fitted.apply(row)).max() > 0, "a single row would be zero if it were centred on itself"


def test_the_features_given_are_left_alone() -> None:
    before = X.copy()
    Normaliser.fit("row", X).apply(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kind", ["standard", "symmetric"])
def test_another_number_of_features_is_refused(kind: str) -> None:
    with pytest.raises(ShapeError, match="expected 3 features, found 2"):
        Normaliser.fit(kind, X).apply(X[:, :2])


def test_an_unknown_kind_lists_what_exists() -> None:
    with pytest.raises(
        ConfigError, match="unknown normalisation 'max'; choose from: row, symmetric, l2, standard, none"
    ):
        Normaliser.fit("max", X)
