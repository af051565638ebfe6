import math

import numpy as np
import pytest
from gpytorch.kernels import MaternKernel
from scipy.optimize import approx_fprime

from engines.search.similarity import Categorical, Near, Ordered, Similarity, matern, places, similarities
from search_space.space import Choice, SearchSpace

ALL: list[tuple[Similarity, np.ndarray]] = [
    (Categorical(0, 4), np.array([[-1.0], [0.0], [2.0], [3.0]])),
    (Categorical(0, 3), np.array([[0.0]])),
    (Ordered(0, (0.0, 0.3, 0.7, 1.0)), np.array([[-1.0], [0.0], [1.0], [3.0]])),
    (Ordered(0, (0.0,)), np.array([[0.0]])),
    (Near((0, 1, 2), shared=True), np.random.default_rng(1).standard_normal((6, 3))),
    (Near((0, 1, 2)), np.random.default_rng(0).standard_normal((5, 3))),
]


def some_parameters(similarity: Similarity, seed: int) -> np.ndarray:
    return similarity.prior_means + 0.5 * np.random.default_rng(seed).standard_normal(len(similarity.prior_means))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("similarity", "rows"), ALL)
def test_a_similarity_is_a_correlation(similarity: Similarity, rows: np.ndarray, seed: int) -> None:
    matrix = similarity.between(some_parameters(similarity, seed), rows, rows)
    assert (matrix == matrix.T).all()
    assert np.diag(matrix) == pytest.approx(1.0)
    assert ((matrix > 0) & (matrix <= 1.0)).all()
    assert np.linalg.eigvalsh(matrix).min() > -1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("similarity", "rows"), ALL)
def test_derivatives_agree_with_differences(similarity: Similarity, rows: np.ndarray, seed: int) -> None:
    parameters = some_parameters(similarity, seed)
    slopes = np.random.default_rng(seed).standard_normal((len(rows), len(rows)))
    numeric = approx_fprime(parameters, lambda p: float((slopes * similarity.between(p, rows, rows)).sum()), 1e-7)
    assert similarity.pull_back(parameters, rows, slopes) == pytest.approx(numeric, abs=1e-5)


def test_an_odd_category_leaves_the_others_alike() -> None:
    similar = Categorical(0, 3).between(
        np.log([0.1, 0.01, 0.01, 3.0]), np.arange(3.0)[:, None], np.arange(3.0)[:, None]
    )
    assert similar[0, 1] == pytest.approx(math.exp(-0.02))
    assert similar[0, 2] == similar[1, 2] == pytest.approx(math.exp(-3.01))


def test_two_inactive_values_are_equal_and_an_inactive_one_is_equally_far_from_all_others() -> None:
    rows = np.array([[-1.0], [-1.0], [0.0], [2.0]])
    for similarity in (Categorical(0, 3), Ordered(0, (0.0, 0.5, 1.0))):
        parameters = similarity.prior_means
        similar = similarity.between(parameters, rows, rows)
        assert similar[0, 1] == 1.0
        assert similar[0, 2] == similar[0, 3] < 1.0


def test_nearer_values_are_more_alike_and_the_relevance_bounds_the_difference() -> None:
    similarity = Ordered(0, (0.0, 0.2, 0.5, 1.0))
    rows = np.arange(4.0)[:, None]
    similar = similarity.between(np.array([math.log(0.2), 0.0, 0.0]), rows, rows)
    assert (np.diff(similar[0]) < 0).all()
    assert similar.min() > 0.5


@pytest.mark.parametrize("distance", [0.0, 0.1, 1.0, 4.0])
def test_matern_agrees_with_gpytorch(distance: float) -> None:
    import torch

    reference = MaternKernel(nu=2.5).double()
    reference.lengthscale = 1.0
    expected = reference(torch.zeros(1, 1).double(), torch.full((1, 1), distance).double()).to_dense().item()
    assert matern(np.array(distance)) == pytest.approx(expected, rel=1e-9)


def test_near_scales_each_column_by_itself() -> None:
    one, other = np.array([[0.0, 0.0]]), np.array([[1.0, 8.0]])
    found = Near((0, 1)).between(np.log([1.0, 4.0]), one, other)
    assert found[0, 0] == pytest.approx(float(matern(np.array(math.sqrt(1 + 4)))))


def test_positions_count_logarithmically_and_numbers_by_their_value() -> None:
    assert places(Choice("steps", "ordinal", (0, 1, 2, 3))) == pytest.approx(
        (0.0, math.log(2) / math.log(4), math.log(3) / math.log(4), 1.0)
    )
    assert places(Choice("rate", "number", (0.5, 0.75, 1.5))) == (0.0, 0.25, 1.0)
    assert places(Choice("steps", "ordinal", (7,))) == (0.0,)
    assert places(Choice("steps", "ordinal", ())) == ()


def test_every_choice_of_the_papers_space_has_its_kind_of_similarity() -> None:
    kinds = [type(similarity) for similarity in similarities(SearchSpace.paper().choices)]
    assert kinds == [Ordered, Categorical, Categorical, Ordered, Ordered, Categorical]
