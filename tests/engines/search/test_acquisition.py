from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from engines.search.acquisition import log_ehvi, log_ehvi_bound, log_feasible, log_h, open_boxes
from engines.search.pareto import hypervolume, non_dominated


def random_front(rng: np.random.Generator, size: int, m: int) -> np.ndarray:
    Y = rng.random((size, m))
    return Y[non_dominated(Y)]


def gain(front: np.ndarray, y: np.ndarray, reference: np.ndarray) -> float:
    """Hypervolume that one more point adds, by its definition."""
    return hypervolume(np.vstack((front, y)), reference) - hypervolume(front, reference)


def gains(front: np.ndarray, points: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The same for many points: every cell of the grid through the front's coordinates, dominated ones left out."""
    axes = [
        np.concatenate(([low], np.unique(column[column > low]), [100.0]))
        for low, column in zip(reference, front.T, strict=True)
    ]
    lower = np.stack([part.ravel() for part in np.meshgrid(*(axis[:-1] for axis in axes), indexing="ij")], axis=1)
    upper = np.stack([part.ravel() for part in np.meshgrid(*(axis[1:] for axis in axes), indexing="ij")], axis=1)
    free = ~(upper[:, None, :] <= front[None]).all(axis=2).any(axis=1)
    total = np.zeros(len(points))
    for low, high in zip(lower[free], upper[free], strict=True):
        total += np.clip(np.minimum(points, high) - low, 0.0, None).prod(axis=1)
    return total


def strips(cost: float, mean: float, deviation: float, front: np.ndarray, r1: float, r2: float) -> float:
    """EHVI of one design with known cost, as the design notes write it: costs and errors, smaller is better."""
    t = np.sort(np.append(front[:, 1], [0.0, r2]))
    total = 0.0
    for left, right in pairwise(t):
        best = min([r1, *front[front[:, 1] <= left, 0]])
        z = (best - mean) / deviation
        psi = (best - mean) * stats.norm.cdf(z) + deviation * stats.norm.pdf(z)
        total += max(right - max(left, cost), 0.0) * psi
    return total


@pytest.mark.parametrize("z", [-4.0, -1.5, -1.0, -0.999, 0.0, 0.7, 5.0])
def test_log_h_is_the_expected_positive_part(z: float) -> None:
    expected, _ = integrate.quad(lambda x: max(x + z, 0.0) * stats.norm.pdf(x), -z, 40.0)
    assert np.exp(log_h(np.array(z))) == pytest.approx(expected, rel=1e-8)


def test_log_h_stays_exact_where_h_underflows() -> None:
    # h(z) = φ(z)/z² · (1 - 3/z² + 15/z⁴ - ...)
    for z in (-30.0, -300.0, -999.0, -1001.0, -1e5, -1e9):
        series = stats.norm.logpdf(z) - 2 * np.log(-z) + np.log1p(-3 / z**2 + 15 / z**4 - 105 / z**6)
        assert log_h(np.array(z)) == pytest.approx(series, rel=1e-9)


def test_log_h_rises_without_a_jump() -> None:
    z = np.concatenate((np.linspace(-1010, -990, 4001), np.linspace(-2, 2, 4001)))
    assert (np.diff(log_h(z)) > 0).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_boxes_give_the_hypervolume_that_a_certain_point_adds(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    front, reference = random_front(rng, 8, m), np.full(m, 0.1)
    lower, upper = open_boxes(front, reference)
    points = rng.uniform(-0.1, 1.3, (30, m))
    found = np.exp(log_ehvi(points, np.zeros_like(points), lower, upper))
    assert found == pytest.approx([gain(front, point, reference) for point in points], abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("m", "known"), [(2, ()), (2, (0,)), (2, (1,)), (3, ()), (3, (1,)), (3, (1, 2)), (3, (0, 2))])
def test_ehvi_agrees_with_monte_carlo(m: int, known: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    front, reference = random_front(rng, 7, m), np.full(m, 0.05)
    mean, deviation = rng.uniform(0.2, 1.1, m), rng.uniform(0.05, 0.3, m)
    deviation[list(known)] = 0.0
    expected = gains(front, mean + deviation * rng.standard_normal((20_000, m)), reference)
    found = float(np.exp(log_ehvi(mean[None], deviation[None], *open_boxes(front, reference))[0]))
    assert found == pytest.approx(expected.mean(), abs=4 * expected.std() / np.sqrt(len(expected)) + 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_with_known_cost_ehvi_is_the_sum_over_cost_strips(seed: int) -> None:
    rng = np.random.default_rng(seed)
    front = -random_front(rng, 9, 2) + 1.0  # errors and costs in (0, 1)
    costs, means, deviations = rng.random(40), rng.uniform(-0.2, 1.2, 40), rng.uniform(0.01, 0.4, 40)
    found = log_ehvi(
        -np.column_stack((means, costs)),
        np.column_stack((deviations, np.zeros(40))),
        *open_boxes(-front, -np.array([1.1, 1.2])),
    )
    expected = [strips(c, mu, s, front, 1.1, 1.2) for c, mu, s in zip(costs, means, deviations, strict=True)]
    assert np.exp(found) == pytest.approx(np.array(expected), rel=1e-9)


@pytest.mark.parametrize("m", [2, 3])
def test_an_empty_front_leaves_everything_above_the_reference(m: int) -> None:
    mean, deviation = np.full((1, m), 0.3), np.full((1, m), 0.2)
    part = 0.3 * stats.norm.cdf(1.5) + 0.2 * stats.norm.pdf(1.5)
    found = log_ehvi(mean, deviation, *open_boxes(np.empty((0, m)), np.zeros(m)))
    assert np.exp(found[0]) == pytest.approx(part**m)


def test_hopeless_designs_are_still_ranked() -> None:
    # Sixty and eighty deviations from the front: both expectations are 0 in float64, the first is larger all the same.
    front = np.array([[1.0, 1.0]])
    mean = np.array([[-59.0, 0.5], [-79.0, 0.5], [-79.0, 0.6]])
    deviation = np.array([[1.0, 0.0]] * 3)
    found = log_ehvi(mean, deviation, *open_boxes(front, np.array([0.9, 0.0])))
    assert np.isfinite(found).all()
    assert found[0] > found[2] > found[1]


def test_a_known_point_that_is_dominated_gains_nothing() -> None:
    front = np.array([[1.0, 1.0]])
    found = log_ehvi(np.array([[0.5, 0.5]]), np.zeros((1, 2)), *open_boxes(front, np.zeros(2)))
    assert found[0] == -np.inf


@given(st.integers(0, 10_000), st.integers(2, 3), st.integers(0, 3))
def test_the_cheap_bound_is_never_below(seed: int, m: int, num_known: int) -> None:
    rng = np.random.default_rng(seed)
    front, reference = random_front(rng, 6, m), np.full(m, 0.1)
    uncertain = np.arange(m) >= min(num_known, m - 1)
    mean = rng.uniform(-0.5, 1.5, (20, m))
    deviation = np.where(uncertain, rng.uniform(0.01, 0.5, (20, m)), 0.0)
    larger = deviation * rng.uniform(1.0, 2.0, (20, m))
    exact = log_ehvi(mean, deviation, *open_boxes(front, reference))
    assert (log_ehvi_bound(mean, larger, uncertain, front, reference) >= exact - 1e-9).all()


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 3), st.integers(0, 6))
def test_what_is_known_for_certain_gains_what_it_adds(seed: int, m: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    front, reference = random_front(rng, size, m), np.full(m, 0.1)
    points = rng.uniform(-0.2, 1.2, (8, m))
    found = np.exp(log_ehvi(points, np.zeros((8, m)), *open_boxes(front, reference)))
    assert found == pytest.approx([gain(front, point, reference) for point in points], abs=1e-12)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(0, 8))
def test_with_a_known_cost_it_is_the_sum_over_strips(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    front = -random_front(rng, size, 2) + 1.0  # errors and costs within 0 and 1, smaller is better
    means, deviations, costs = rng.uniform(-0.2, 1.2, 8), rng.uniform(0.01, 0.5, 8), rng.uniform(0.0, 1.2, 8)
    found = log_ehvi(
        -np.stack((means, costs), axis=1),
        np.stack((deviations, np.zeros(8)), axis=1),
        *open_boxes(-front, np.array([-1.1, -1.1])),
    )
    expected = [strips(*one, front, 1.1, 1.1) for one in zip(costs, means, deviations, strict=True)]
    assert np.exp(found) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("num_known", [1, 2])
def test_the_cheap_bound_of_one_uncertain_objective_starts_at_the_best_point_that_covers_it(num_known: int) -> None:
    """Known gains 0, 0.5, 1, 2 and 3 beside front points at 1, 0 and 2, in no order, whose uncertain gains are
    3, 5 and 1; a second known objective that is the same changes nothing."""
    at_known, at_uncertain = np.array([1.0, 0.0, 2.0]), np.array([3.0, 5.0, 1.0])
    known, floors = np.array([0.0, 0.5, 1.0, 2.0, 3.0]), np.array([5.0, 3.0, 3.0, 1.0, -2.0])
    front = np.column_stack([*[at_known] * num_known, at_uncertain])
    means = np.column_stack([*[known] * num_known, np.full(5, 0.7)])
    uncertain, reference = np.arange(num_known + 1) == num_known, np.full(num_known + 1, -2.0)
    found = log_ehvi_bound(means, np.full((5, num_known + 1), 0.3), uncertain, front, reference)
    expected = num_known * np.log(known + 2.0) + np.log(0.3) + log_h((0.7 - floors) / 0.3)
    assert found == pytest.approx(expected)


def test_ehvi_grows_with_uncertainty() -> None:
    rng = np.random.default_rng(0)
    front = random_front(rng, 6, 2)
    mean = np.repeat(rng.random((1, 2)), 50, axis=0)
    for j in range(2):
        deviation = np.full((50, 2), 0.1)
        deviation[:, j] = np.linspace(0.01, 0.5, 50)
        assert (np.diff(log_ehvi(mean, deviation, *open_boxes(front, np.zeros(2)))) >= -1e-12).all()


def test_the_probability_of_a_bound_is_that_of_the_normal_tail() -> None:
    found = log_feasible(np.array([0.0, 1.0]), np.array([1.0, 2.0]), 0.5)
    assert np.exp(found) == pytest.approx([stats.norm.sf(0.5), stats.norm.sf(-0.25)])
