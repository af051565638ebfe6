import numpy as np
import pytest

from engines.search.fitting import LEAST_NOISE, FitFailure, Hyperparameters, fit
from engines.search.surrogate import Posterior, prepare
from search_space.space import SearchSpace

SPACE = SearchSpace.paper(k_pre=[0, 1, 2], message=["mean", "max"], k_trans=[1, 2, 3], k_post=[0, 1])
WHOLE = prepare(SPACE)
ROWS = np.array([3, 50, 7, 81, 20, 64])
X = WHOLE.features[ROWS]
Y = np.array([0.3, 0.1, 0.25, 0.4, 0.2, 0.15])
NOISE = np.array([1e-3, 2e-3, 0.0, 1e-3, 5e-4, 1e-3])
EVERY = np.arange(len(SPACE))
FOUND = Hyperparameters(WHOLE.kernel.prior_means + 0.2, nugget=0.1, mean=-0.2, centre=0.25, scale=0.1, log_density=0.0)


def dense(noise: np.ndarray, as_noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of all true values by plain conditioning; what is not noise is part of the truth."""
    prior = WHOLE.kernel.matrix(FOUND.parameters, WHOLE.features, WHOLE.features)
    prior += (FOUND.nugget - as_noise) * np.eye(len(SPACE))
    gain = prior[:, ROWS] @ np.linalg.inv(prior[np.ix_(ROWS, ROWS)] + np.diag(noise / 0.01 + LEAST_NOISE + as_noise))
    mean = 0.25 + 0.1 * (-0.2 + gain @ ((Y - 0.25) / 0.1 + 0.2))
    return mean, 0.01 * (prior - gain @ prior[ROWS])


def test_with_known_noise_the_nugget_is_part_of_the_truth() -> None:
    model = Posterior(WHOLE, FOUND, X, Y, NOISE, X[:0])
    mean, covariance = dense(NOISE, np.float64(0.0))
    fresh = np.setdiff1d(EVERY, ROWS)
    assert model.means[fresh] == pytest.approx(mean[fresh])
    assert model.deviations(fresh) == pytest.approx(np.sqrt(np.diag(covariance)[fresh]))
    assert model.observed_means == pytest.approx(mean[ROWS])


def test_with_unknown_noise_the_nugget_is_noise() -> None:
    model = Posterior(WHOLE, FOUND, X, Y, np.full(6, np.nan), X[:0])
    mean, covariance = dense(np.zeros(6), np.float64(FOUND.nugget))
    assert model.means == pytest.approx(mean)
    assert model.deviations(EVERY) == pytest.approx(np.sqrt(np.diag(covariance)))
    assert model.observed_means == pytest.approx(mean[ROWS])


def test_running_designs_leave_means_and_shrink_deviations() -> None:
    running = WHOLE.features[[10, 90]]
    before, after = Posterior(WHOLE, FOUND, X, Y, NOISE, X[:0]), Posterior(WHOLE, FOUND, X, Y, NOISE, running)
    assert after.means == pytest.approx(before.means)
    assert (after.deviations(EVERY) <= before.deviations(EVERY) + 1e-12).all()
    assert after.deviations(np.array([11]))[0] < 0.99 * before.deviations(np.array([11]))[0]


def test_a_running_design_counts_as_observed_at_its_mean() -> None:
    running = WHOLE.features[[10]]
    before = Posterior(WHOLE, FOUND, X, Y, NOISE, X[:0])
    believed = Posterior(WHOLE, FOUND, X, Y, NOISE, running)
    usual = (NOISE / 0.01 + LEAST_NOISE).mean() * 0.01 - LEAST_NOISE * 0.01
    told = Posterior(
        WHOLE, FOUND, np.vstack((X, running)), np.append(Y, before.means[10]), np.append(NOISE, usual), X[:0]
    )
    assert told.means == pytest.approx(believed.means)
    assert told.deviations(EVERY) == pytest.approx(believed.deviations(EVERY))


def test_an_exact_observation_is_believed() -> None:
    found = Hyperparameters(WHOLE.kernel.prior_means, nugget=0.0, mean=0.0, centre=0.0, scale=1.0, log_density=0.0)
    model = Posterior(WHOLE, found, X, Y, np.zeros(6), X[:0])
    assert model.observed_means == pytest.approx(Y, abs=1e-4)
    assert model.means[ROWS] == pytest.approx(Y, abs=1e-4)
    assert model.deviations(ROWS) == pytest.approx(0.0, abs=5e-3)


def test_predictions_improve_with_observations() -> None:
    truth = -np.abs(np.log1p(WHOLE.features[:, 0]) - 0.7) - 0.2 * (WHOLE.features[:, 2] == 1) * WHOLE.features[:, 3]
    errors = []
    for count in (6, 60):
        rows = np.random.default_rng(0).choice(len(SPACE), count, replace=False)
        noise = np.full(count, np.nan)
        seen, y = WHOLE.features[rows], truth[rows]
        model = Posterior(WHOLE, fit(WHOLE.kernel, seen, y, noise), seen, y, noise, seen[:0])
        errors.append(float(np.abs(model.means - truth).mean()))
    assert errors[1] < 0.2 * errors[0]


def test_a_matrix_that_cannot_be_factored_is_a_failure() -> None:
    broken = Hyperparameters(FOUND.parameters, nugget=-2.0, mean=0.0, centre=0.0, scale=1.0, log_density=0.0)
    with pytest.raises(FitFailure, match="the kernel matrix of 6 designs is not positive definite"):
        Posterior(WHOLE, broken, X, Y, np.full(6, np.nan), X[:0])


def test_rows_appended_one_by_one_give_the_same_predictions() -> None:
    together, grown = Posterior(WHOLE, FOUND, X, Y, NOISE, X[:0]), Posterior(WHOLE, FOUND, X, Y, NOISE, X[:0], start=2)
    assert grown.means == pytest.approx(together.means, rel=1e-12)
    assert grown.deviations(EVERY) == pytest.approx(together.deviations(EVERY), rel=1e-9)


def test_an_earlier_posterior_changes_no_number() -> None:
    running = WHOLE.features[[10, 90]]
    earlier = Posterior(WHOLE, FOUND, X[:4], Y[:4], NOISE[:4], running[:1], start=3)
    earlier.deviations(EVERY[::2])
    continued = Posterior(WHOLE, FOUND, X, Y, NOISE, running, start=3, earlier=earlier)
    fresh = Posterior(WHOLE, FOUND, X, Y, NOISE, running, start=3)
    assert (continued.means == fresh.means).all()
    assert (continued.observed_means == fresh.observed_means).all()
    assert (continued.deviations(EVERY) == fresh.deviations(EVERY)).all()


@pytest.mark.parametrize("change", ["observation", "noise", "start", "hyperparameters"])
def test_an_earlier_posterior_of_something_else_is_not_used(change: str) -> None:
    other = X[::-1] if change == "observation" else X
    noise = NOISE + 1e-3 if change == "noise" else NOISE
    found = FOUND
    if change == "hyperparameters":
        found = Hyperparameters(WHOLE.kernel.prior_means, nugget=0.2, mean=0.0, centre=0.2, scale=0.1, log_density=0.0)
    earlier = Posterior(WHOLE, found, other[:4], Y[:4], noise[:4], X[:0], start=2 if change == "start" else 3)
    continued = Posterior(WHOLE, FOUND, X, Y, NOISE, X[:0], start=3, earlier=earlier)
    assert continued.means == pytest.approx(Posterior(WHOLE, FOUND, X, Y, NOISE, X[:0]).means, rel=1e-12)


def test_upper_bounds_on_deviations_hold_and_tighten_where_asked() -> None:
    running = WHOLE.features[[10, 90]]
    model = Posterior(WHOLE, FOUND, X, Y, NOISE, running, start=3)
    before, exact = model.largest_deviations, model.deviations(EVERY)
    assert (before >= exact).all()
    after = model.largest_deviations
    assert (after >= exact).all()
    assert after == pytest.approx(Posterior(WHOLE, FOUND, X, Y, NOISE, X[:0]).deviations(EVERY), rel=1e-6)


def test_bounds_of_an_earlier_posterior_hold_for_a_longer_one() -> None:
    earlier = Posterior(WHOLE, FOUND, X[:4], Y[:4], NOISE[:4], X[:0], start=3)
    earlier.deviations(EVERY)
    longer = Posterior(WHOLE, FOUND, X, Y, NOISE, X[:0], start=3, earlier=earlier)
    assert (longer.largest_deviations >= longer.deviations(EVERY)).all()


def test_a_row_that_cannot_be_appended_is_a_failure() -> None:
    noise = np.append(np.zeros(5), -1.0)
    with pytest.raises(FitFailure, match="the kernel matrix of 6 designs is not positive definite"):
        Posterior(WHOLE, FOUND, np.vstack((X[:5], X[:1])), Y, noise, X[:0], start=5)


def test_each_group_of_descriptors_adds_a_term_and_many_columns_share_a_length_scale() -> None:
    class Counted(SearchSpace):
        def descriptors(self) -> dict[str, np.ndarray]:
            codes = self.codes().astype(float)
            return {"sum": codes.sum(axis=1, keepdims=True), "wide": np.tile(codes, (1, 3))}

    space = Counted(**SPACE.as_mapping())  # type: ignore[arg-type]
    whole = prepare(space)
    assert whole.features.shape == (len(SPACE), 6 + 1 + 18)
    choices, few, many = whole.kernel.terms
    assert [term.factors[0].columns for term in (few, many)] == [(6,), tuple(range(7, 25))]
    assert [len(term.factors[0].prior_means) for term in (few, many)] == [1, 1]
    assert len(choices.factors) == 6
    assert len(prepare(SPACE).kernel.terms) == 1
