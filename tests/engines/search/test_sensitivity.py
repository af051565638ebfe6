"""Effects of choices: closed forms, a space with stages that are off, uncertainty against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from engines.search.fitting import Hyperparameters
from engines.search.sensitivity import decompose
from engines.search.surrogate import Posterior, prepare
from search_space.errors import ShapeError
from search_space.space import SearchSpace


def product_space() -> SearchSpace:
    """18 designs: three depths, two aggregators, three step counts, no stage that can be switched off."""
    return SearchSpace(
        k_pre=(1, 2, 3),
        pre_aggregator=("augmented", "ppr0.1"),
        message=("mean",),
        k_trans=(1, 2, 3),
        k_post=(0,),
        post_aggregator=(),
    )


def small_space() -> SearchSpace:
    """(1 + 2·2·1) · 2 · (1 + 1) = 20 designs with both stages that can be switched off."""
    return SearchSpace(
        k_pre=(0, 1, 2),
        pre_aggregator=("augmented", "ppr0.1"),
        message=("mean",),
        k_trans=(1, 2),
        k_post=(0, 3),
        post_aggregator=("augmented",),
    )


def test_shares_of_an_additive_quantity_are_its_terms_variances() -> None:
    space = product_space()
    codes = space.codes()
    # Three equally likely values 0, 1, 2 have variance 2/3, two have 1/4.
    values = 3.0 * codes[:, 0] + 2.0 * codes[:, 1]
    by_name = {dimension.name: dimension for dimension in decompose(space, values.astype(float))}
    total = 9 * 2 / 3 + 4 * 1 / 4
    assert by_name["k_pre"].alone == pytest.approx(6 / total)
    assert by_name["pre_aggregator"].alone == pytest.approx(1 / total)
    assert by_name["k_trans"].alone == pytest.approx(0.0, abs=1e-12)
    assert by_name["k_pre"].with_others == pytest.approx(by_name["k_pre"].alone)


def test_an_interaction_counts_for_both_choices_only_with_others() -> None:
    space = product_space()
    codes = space.codes().astype(float)
    values = (codes[:, 0] - 1) * (2 * codes[:, 1] - 1)  # no main effect at all
    by_name = {dimension.name: dimension for dimension in decompose(space, values)}
    for name in ("k_pre", "pre_aggregator"):
        assert by_name[name].alone == pytest.approx(0.0, abs=1e-12)
        assert by_name[name].with_others == pytest.approx(1.0)


def test_a_choice_that_is_off_comes_first_and_has_no_value() -> None:
    space = small_space()
    values = np.arange(20.0)
    by_name = {dimension.name: dimension for dimension in decompose(space, values)}
    off, augmented, ppr = by_name["pre_aggregator"].effects
    assert (off.value, off.num_designs, augmented.value, ppr.value) == (None, 4, "augmented", "ppr0.1")
    assert [effect.value for effect in by_name["k_pre"].effects] == [0, 1, 2]


def test_means_and_bests_are_those_of_the_members() -> None:
    space = small_space()
    values = np.random.default_rng(3).normal(size=20)
    for j, dimension in enumerate(decompose(space, values)):
        for effect in dimension.effects:
            code = -1 if effect.value is None else space.choices[j].values.index(effect.value)
            members = [values[i] for i in range(20) if space.codes()[i, j] == code]
            assert (effect.mean, effect.best) == (pytest.approx(np.mean(members)), min(members))


def test_a_constant_quantity_has_no_shares() -> None:
    found = decompose(small_space(), np.full(20, 0.25))
    assert {(dimension.alone, dimension.with_others) for dimension in found} == {(0.0, 0.0)}


def test_values_that_do_not_match_the_space_are_refused() -> None:
    with pytest.raises(ShapeError, match="20 designs needs as many values"):
        decompose(small_space(), np.zeros(19))


def posterior(space: SearchSpace, noise: float) -> tuple[Posterior, Hyperparameters, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    whole = prepare(space)
    parameters = whole.kernel.prior_means + rng.normal(0.0, 0.3, whole.kernel.prior_means.shape)
    found = Hyperparameters(parameters, nugget=0.05, mean=0.1, centre=2.0, scale=0.5, log_density=0.0)
    X = whole.features[[0, 3, 7, 11, 19]]
    y = rng.normal(2.0, 0.5, size=5)
    model = Posterior(whole, found, X, y, np.full(5, noise), X[:0])
    return model, found, X, y


def test_the_uncertainty_of_a_weighted_sum_matches_dense_algebra() -> None:
    space, noise = small_space(), 0.01
    model, found, X, y = posterior(space, noise)
    whole = prepare(space)
    K = whole.kernel.matrix(found.parameters, X, X) + np.diag(np.full(5, noise / 0.25 + 1e-6 + found.nugget))
    k = whole.kernel.matrix(found.parameters, whole.features, X)
    C = whole.kernel.matrix(found.parameters, whole.features, whole.features) + found.nugget * np.eye(20)
    C -= k @ np.linalg.solve(K, k.T)
    means = 2.0 + 0.5 * (0.1 + k @ np.linalg.solve(K, (y - 2.0) / 0.5 - 0.1))
    weights = np.random.default_rng(1).normal(size=20)
    mean, deviation = model.contrast(weights)
    assert mean == pytest.approx(weights @ means)
    assert deviation == pytest.approx(0.5 * np.sqrt(weights @ C @ weights))


def test_predictions_of_left_out_observations_match_leaving_each_out() -> None:
    space, noise = small_space(), 0.01
    model, found, X, y = posterior(space, noise)
    for i, predicted in enumerate(model.left_out_means()):
        kept = [row for row in range(5) if row != i]
        fewer = Posterior(prepare(space), found, X[kept], y[kept], np.full(4, noise), X[:0])
        row = int(np.flatnonzero((space.codes() == X[i]).all(axis=1))[0])
        assert predicted == pytest.approx(fewer.means[row])
