import numpy as np
import pytest

from engines.search.kernel import Kernel, Term
from engines.search.similarity import Near, Similarity, similarities
from engines.search.whole_space import WholeSpace
from search_space.space import SearchSpace

SPACE = SearchSpace.paper(k_pre=[0, 1, 2], message=["mean", "max"], k_trans=[1, 2, 3], k_post=[0, 1])
DESCRIPTORS = np.random.default_rng(0).integers(0, 3, (len(SPACE), 2))
FEATURES = np.column_stack((SPACE.codes(), DESCRIPTORS)).astype(float)
KERNELS = {
    "choices": Kernel((Term(tuple(similarities(SPACE.choices))),)),
    "descriptors": Kernel((Term((Near((6, 7)),)),)),
    "both": Kernel((Term(tuple(similarities(SPACE.choices))), Term((Near((6, 7)),), variance=0.3))),
    "one choice": Kernel((Term((similarities(SPACE.choices)[2],)),)),
}


def parameters(kernel: Kernel) -> np.ndarray:
    return kernel.prior_means + 0.4 * np.random.default_rng(5).standard_normal(len(kernel.prior_means))


@pytest.mark.parametrize("rows", [slice(None), slice(1, None, 3)])
@pytest.mark.parametrize("name", KERNELS)
def test_everything_equals_the_dense_kernel(name: str, rows: slice) -> None:
    kernel, features = KERNELS[name], FEATURES[rows]
    p, rng = parameters(kernel), np.random.default_rng(0)
    X = features[rng.choice(len(features), 9, replace=False)]
    whole, dense = WholeSpace(kernel, features), kernel.matrix(p, features, X)
    tables = whole.tables(p, X)
    observed_weights = rng.standard_normal(9)
    some = np.array([4, 0, 7, 4])
    assert whole.weighted_sum(tables, observed_weights) == pytest.approx(dense @ observed_weights)
    assert whole.covariances(tables, some) == pytest.approx(dense[some])
    square = kernel.matrix(p, features, features)
    layers = features[:, 3]
    # Any weights, those of a choice's value against all, the same without the mean, and none.
    for weights in (rng.standard_normal(len(features)), (layers == 1) * 2.0 - 0.5, (layers == 1) * 0.2, 0.0 * layers):
        assert whole.toward(tables, weights) == pytest.approx(weights @ dense)
        assert whole.quadratic(whole.between_parts(p), weights) == pytest.approx(weights @ square @ weights)


def test_the_papers_space_is_cut_between_pre_processing_and_the_rest() -> None:
    kinds: tuple[Similarity, ...] = tuple(similarities(SearchSpace.paper().choices))
    kernel = Kernel((Term(kinds),))
    whole = WholeSpace(kernel, SearchSpace.paper().codes().astype(float))
    ((left, right),) = whole.tables(kernel.prior_means, whole.features[:2])
    assert len(whole) == 153_510
    assert (left.shape, right.shape) == ((301, 2), (510, 2))
