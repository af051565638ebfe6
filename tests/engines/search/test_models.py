"""Models are found on a schedule that depends on counts alone, and remembered by what they were found from."""

from __future__ import annotations

import numpy as np

from engines.search.kernel import Kernel, Term
from engines.search.models import Models, fit_size, warp_size
from engines.search.observations import Observations
from engines.search.similarity import Near


def observations(count: int, seed: int = 0) -> tuple[np.ndarray, Observations]:
    rng = np.random.default_rng(seed)
    X = rng.random((count, 2))
    Y = np.column_stack((np.sin(3 * X[:, 0]) + 0.1 * X[:, 1], X[:, 1]))
    unknown = np.full(Y.shape, np.nan)
    return X, Observations(np.arange(count), Y, unknown, np.ones(count), np.ones(count, dtype=bool))


def models(most: int = 100) -> Models:
    return Models(Kernel((Term((Near((0, 1)),)),)), most)


def test_between_two_refits_hyperparameters_and_warp_stay_the_same_objects() -> None:
    found = models()
    X, observed = observations(24)
    first = found.of(0, X[:22], part(observed, 22))
    assert first.start == fit_size(22) == 22
    second = found.of(0, X[:23], part(observed, 23))
    assert second.start == 22
    assert second.found is first.found
    assert second.warp is first.warp
    assert len(second.y) == 23
    assert found.of(0, X, observed).found is not first.found


def test_another_searcher_with_the_same_observations_finds_the_same() -> None:
    X, observed = observations(15)
    one, other = (models().of(0, X, observed) for _ in range(2))
    np.testing.assert_array_equal(one.found.parameters, other.found.parameters)
    np.testing.assert_array_equal(one.y, other.y)


def test_more_observations_than_are_fitted_are_thinned_out_evenly() -> None:
    X, observed = observations(20)
    whole = models(11).of(0, X, observed)
    # The warp looks at 16, the fit at 20, both at 11 of them: some row is in neither.
    used = np.concatenate([np.linspace(0, last, 11).astype(np.int64) for last in (15, 19)])
    left_out = np.setdiff1d(np.arange(20), used)[0]
    observed.Y[left_out, 0] += 0.1
    again = models(11).of(0, X, observed)
    np.testing.assert_array_equal(again.found.parameters, whole.found.parameters)
    observed.Y[used[1], 0] += 0.1
    assert (models(11).of(0, X, observed).found.parameters != whole.found.parameters).any()


def part(observed: Observations, count: int) -> Observations:
    return Observations(
        *(getattr(observed, name)[:count] for name in ("rows", "Y", "variances", "num_seeds", "complete"))
    )


def test_refits_follow_a_schedule_that_depends_on_the_count_alone() -> None:
    sizes = [fit_size(n) for n in range(1, 400)]
    assert sizes[:20] == list(range(1, 21))
    assert all(size <= n and n - size <= n / 10 for n, size in enumerate(sizes, start=1))
    assert len(set(sizes)) < 60


def test_the_warp_is_chosen_anew_after_half_as_many_observations_more() -> None:
    sizes = [warp_size(n) for n in range(1, 100)]
    assert sizes[:16] == list(range(1, 17))
    assert sorted(set(sizes[15:])) == [16, 24, 36, 54, 81]
