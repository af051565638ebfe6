import numpy as np
import pytest

from engines.search.noise import pooled_variances

NAN = np.nan


def test_a_zero_variance_from_three_seeds_is_not_believed() -> None:
    found = pooled_variances(np.array([0.0, 4e-5, 2e-5]), np.full(3, 3.0))
    assert (found > 0).all()
    assert found[0] < found[2] < found[1]


def test_the_weights_are_the_degrees_of_freedom() -> None:
    # Per-seed variances 0, 12, 6 with 2 degrees each: pooled 6; own values count 2 against 8; the mean of 3 seeds.
    found = pooled_variances(np.array([0.0, 4.0, 2.0]), np.full(3, 3.0))
    assert found == pytest.approx([(8 * 6 + 2 * own) / 10 / 3 for own in (0, 12, 6)])


def test_more_seeds_make_a_mean_surer() -> None:
    found = pooled_variances(np.array([1e-4, 1e-4 * 3 / 30]), np.array([3.0, 30.0]))
    assert found[1] == pytest.approx(found[0] / 10)


def test_an_unknown_variance_takes_the_pooled_one() -> None:
    found = pooled_variances(np.array([2.0, NAN, NAN]), np.array([3.0, 3.0, 6.0]))
    assert found == pytest.approx([2.0, 2.0, 1.0])


def test_where_no_variance_is_known_none_is_made_up() -> None:
    assert np.isnan(pooled_variances(np.full(3, NAN), np.full(3, 3.0))).all()


def test_exactly_known_values_stay_exact() -> None:
    assert pooled_variances(np.zeros(3), np.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_the_estimate_is_right_on_average() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(0.0, 0.02, (4000, 3))
    found = pooled_variances(scores.var(axis=1, ddof=1) / 3, np.full(4000, 3.0))
    assert found.mean() == pytest.approx(0.02**2 / 3, rel=0.05)


def test_with_a_fixed_pool_new_observations_leave_old_variances_alone() -> None:
    variances, seeds = np.array([1e-5, 4e-5, 9e-5]), np.full(3, 3.0)
    longer = pooled_variances(variances, seeds, pool=2)
    assert (longer[:2] == pooled_variances(variances[:2], seeds[:2], pool=2)).all()
    assert np.isnan(pooled_variances(np.array([NAN, 1e-5]), seeds[:2], pool=1)).all()
