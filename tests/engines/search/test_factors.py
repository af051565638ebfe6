import numpy as np
import pytest

from engines.search.factors import Factors, cross
from search_space.space import SearchSpace

SPACE = SearchSpace.paper(k_pre=[0, 1, 2], message=["mean", "max"], k_trans=[1, 2, 3], k_post=[0, 1])


def random_tables(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.random((len(choice.values) + 1, len(choice.values) + 1)) for choice in SPACE.choices]


def plain_product(tables: list[np.ndarray], one: np.ndarray, other: np.ndarray) -> float:
    return float(np.prod([table[a + 1, b + 1] for table, a, b in zip(tables, one, other, strict=True)]))


def test_the_papers_space_is_cut_between_pre_processing_and_the_rest() -> None:
    factors = Factors(SearchSpace.paper().codes())
    assert len(factors) == 153_510
    assert len(factors.left_parts) * len(factors.right_parts) == 153_510
    assert sorted((len(factors.left_parts), len(factors.right_parts))) == [301, 510]


def test_a_cross_product_is_the_product_of_table_entries() -> None:
    tables, codes = random_tables(0), SPACE.codes()
    found = cross(tables, codes[:7], codes[3:9])
    expected = [[plain_product(tables, a, b) for b in codes[3:9]] for a in codes[:7]]
    assert found == pytest.approx(np.array(expected))


def test_sums_and_similarities_over_the_space_equal_the_plain_product() -> None:
    tables, codes = random_tables(1), SPACE.codes()
    rng = np.random.default_rng(0)
    observed, weights = codes[rng.choice(len(codes), 9, replace=False)], rng.standard_normal(9)
    factors = Factors(codes)
    sides = factors.sides(tables, observed)
    dense = cross(tables, codes, observed)
    rows = np.array([4, 0, 17, 4])
    assert factors.weighted_sum(sides, weights) == pytest.approx(dense @ weights)
    assert factors.similarities(sides, rows) == pytest.approx(dense[rows])


def test_a_space_that_is_no_full_product_is_served_too() -> None:
    tables, codes = random_tables(2), SPACE.codes()[::3]
    factors = Factors(codes)
    sides = factors.sides(tables, codes[:5])
    weights = np.arange(1.0, 6.0)
    assert factors.weighted_sum(sides, weights) == pytest.approx(cross(tables, codes, codes[:5]) @ weights)


def test_a_single_choice_needs_no_cut() -> None:
    codes = np.arange(4, dtype=np.int16)[:, None]
    table = np.random.default_rng(0).random((5, 5))
    factors = Factors(codes)
    assert factors.weighted_sum(factors.sides([table], codes[:2]), np.ones(2)) == pytest.approx(
        table[1:, 1] + table[1:, 2]
    )
