import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import approx_fprime

from engines.search import fitting
from engines.search.fitting import LEAST_NOISE, FitFailure, Loss, fit
from engines.search.kernel import Kernel, Term
from engines.search.similarity import similarities
from search_space.space import SearchSpace

SPACE = SearchSpace.paper(k_pre=range(6), k_trans=range(1, 6), k_post=range(3))
KERNEL = Kernel((Term(tuple(similarities(SPACE.choices))),))
FEATURES = SPACE.codes().astype(float)


def sample(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Designs, and values that depend on depth alone, with noise of deviation 0.05."""
    rng = np.random.default_rng(seed)
    X = FEATURES[rng.choice(len(SPACE), count, replace=False)]
    return X, np.cos(X[:, 3]) + 0.05 * rng.standard_normal(count)


def some_parameters(loss: Loss, seed: int) -> np.ndarray:
    return loss.prior_means + 0.3 * np.random.default_rng(seed).standard_normal(len(loss.prior_means))


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_the_negative_log_density_of_data_and_parameters(seed: int) -> None:
    X, y = sample(15)
    noise = np.full(15, 0.01)
    loss, other = Loss(KERNEL, X, y, noise), Loss(KERNEL, X, y + 0.1, noise)
    p = some_parameters(loss, seed)
    covariance = KERNEL.matrix(p[:-2], X, X) + np.diag(noise + math.exp(p[-2]))

    def expected(values: np.ndarray) -> float:
        data = stats.multivariate_normal(np.full(15, p[-1]), covariance).logpdf(values)
        return -float(data + stats.norm(loss.prior_means, loss.prior_deviations).logpdf(p).sum())

    # The loss leaves constants out, so it is compared through a difference, and against itself at other parameters.
    assert loss(p)[0] - other(p)[0] == pytest.approx(expected(y) - expected(y + 0.1))
    q = some_parameters(loss, seed + 10)
    difference = loss(p)[0] - loss(q)[0] - expected(y)
    p, covariance = q, KERNEL.matrix(q[:-2], X, X) + np.diag(noise + math.exp(q[-2]))
    assert difference == pytest.approx(-expected(y))


@pytest.mark.parametrize("seed", range(3))
def test_its_gradient_agrees_with_differences(seed: int) -> None:
    loss = Loss(KERNEL, *sample(20), np.full(20, 0.01))
    p = some_parameters(loss, seed)
    assert loss(p)[1] == pytest.approx(approx_fprime(p, lambda q: loss(q)[0], 1e-6), abs=1e-3)


def test_a_fit_ends_where_the_gradient_vanishes_and_is_better_than_its_start() -> None:
    X, y = sample(40)
    found = fit(KERNEL, X, y, np.full(40, np.nan))
    standard = (y - found.centre) / found.scale
    loss = Loss(KERNEL, X, standard, np.full(40, LEAST_NOISE))
    p = np.append(found.parameters, [math.log(found.nugget), found.mean])
    assert -found.log_density == pytest.approx(loss(p)[0])
    assert loss(p)[0] < loss(loss.prior_means)[0]
    assert np.abs(loss(p)[1]).max() < 0.05


def test_what_matters_is_found_and_what_does_not_is_not() -> None:
    found = fit(KERNEL, *sample(80), np.full(80, np.nan))
    ((_, of_factors),) = KERNEL.split(found.parameters)
    ends = [[0.0], [4.0]]
    for j in (0, 3):
        similar = KERNEL.terms[0].factors[j].between(of_factors[j], np.array(ends[:1]), np.array(ends[1:]))[0, 0]
        assert (similar < 0.6) == (j == 3)


def test_unknown_noise_is_learned_as_the_nugget() -> None:
    found = fit(KERNEL, *sample(120), np.full(120, np.nan))
    assert math.sqrt(found.nugget) * found.scale == pytest.approx(0.05, rel=0.35)


def test_known_noise_leaves_nothing_for_the_nugget() -> None:
    found = fit(KERNEL, *sample(120), np.full(120, 0.05**2))
    assert math.sqrt(found.nugget) * found.scale < 0.035


@pytest.mark.parametrize("y", [np.zeros(10), np.full(10, 0.3), np.full(1, 7.0)])
def test_equal_targets_and_a_single_one_can_be_fitted(y: np.ndarray) -> None:
    found = fit(KERNEL, FEATURES[: len(y)], y, np.zeros(len(y)))
    assert found.centre == pytest.approx(y[0])
    assert found.scale == 1.0
    assert math.isfinite(found.log_density)


def test_ten_identical_points_can_be_fitted() -> None:
    found = fit(KERNEL, np.repeat(FEATURES[:1], 10, axis=0), np.linspace(0.1, 0.2, 10), np.full(10, np.nan))
    assert math.isfinite(found.log_density)


def test_an_optimiser_that_ends_nowhere_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nowhere:
        fun, x = math.inf, np.zeros(3)

    monkeypatch.setattr(fitting, "minimize", lambda *arguments, **settings: Nowhere())
    with pytest.raises(FitFailure, match="a loss of inf"):
        fit(KERNEL, *sample(5), np.full(5, np.nan))


def test_a_matrix_that_is_not_positive_definite_has_infinite_loss() -> None:
    loss = Loss(KERNEL, np.repeat(FEATURES[:1], 5, axis=0), np.zeros(5), np.full(5, -1.0))
    assert loss(loss.prior_means)[0] == math.inf
