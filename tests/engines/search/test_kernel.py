import numpy as np
import pytest
from scipy.optimize import approx_fprime

from engines.search.kernel import FixedDesigns, Kernel, Term
from engines.search.similarity import Near, similarities
from search_space.space import SearchSpace

SPACE = SearchSpace.paper(k_pre=[0, 1, 2], message=["mean", "max"], k_trans=[1, 2, 3], k_post=[0, 1])
FEATURES = np.column_stack((SPACE.codes(), np.random.default_rng(0).random((len(SPACE), 2))))
KERNEL = Kernel((Term(tuple(similarities(SPACE.choices))), Term((Near((6, 7)),), variance=0.5)))
X = FEATURES[np.random.default_rng(1).choice(len(SPACE), 12, replace=False)]


def some_parameters(seed: int = 0) -> np.ndarray:
    return KERNEL.prior_means + 0.4 * np.random.default_rng(seed).standard_normal(len(KERNEL.prior_means))


def test_a_kernel_is_the_sum_of_its_terms_products() -> None:
    parameters = some_parameters()
    (first, of_choices), (second, of_near) = KERNEL.split(parameters)
    expected = np.empty((12, 12))
    for i in range(12):
        for k in range(12):
            product = first
            for j, (similarity, own) in enumerate(zip(KERNEL.terms[0].factors, of_choices, strict=True)):
                product *= float(similarity.between(own, X[[i]][:, [j]], X[[k]][:, [j]])[0, 0])
            near = KERNEL.terms[1].factors[0].between(of_near[0], X[[i]][:, 6:], X[[k]][:, 6:])
            expected[i, k] = product + second * float(near[0, 0])
    assert KERNEL.matrix(parameters, X, X) == pytest.approx(expected)
    assert KERNEL.matrix(parameters, X[:3], X) == pytest.approx(expected[:3])


def test_the_variance_is_the_diagonal() -> None:
    parameters = some_parameters()
    assert np.diag(KERNEL.matrix(parameters, X, X)) == pytest.approx(KERNEL.variance(parameters))


def test_the_matrix_of_fixed_designs_is_the_same() -> None:
    parameters = some_parameters(3)
    assert FixedDesigns(KERNEL, X).evaluate(parameters).matrix == pytest.approx(KERNEL.matrix(parameters, X, X))


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_agree_with_differences(seed: int) -> None:
    parameters = some_parameters(seed)
    slopes = np.random.default_rng(seed).standard_normal((12, 12))
    designs = FixedDesigns(KERNEL, X)
    numeric = approx_fprime(parameters, lambda p: float((slopes * KERNEL.matrix(p, X, X)).sum()), 1e-7)
    assert designs.pull_back(parameters, designs.evaluate(parameters), slopes) == pytest.approx(numeric, abs=2e-5)


def test_the_prior_is_that_of_the_parts_in_order() -> None:
    assert len(KERNEL.prior_means) == len(KERNEL.prior_deviations) == len(some_parameters())
    assert KERNEL.prior_means[0] == 0.0
    assert KERNEL.prior_means[-3] == pytest.approx(np.log(0.5))


def test_similarities_that_underflow_pull_nothing_back() -> None:
    kernel = Kernel((Term((Near((0,)), Near((1,)))),))
    far = np.array([[0.0, 0.0], [1e6, 1.0], [2e6, 3.0]])
    parameters = kernel.prior_means
    designs = FixedDesigns(kernel, far)
    found = designs.pull_back(parameters, designs.evaluate(parameters), np.ones((3, 3)))
    assert found.tolist() == pytest.approx([3.0, 0.0, 0.0])
