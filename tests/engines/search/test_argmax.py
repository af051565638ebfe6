import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.search.acquisition import log_ehvi, log_feasible, open_boxes
from engines.search.argmax import Best, Predictions, best_design
from engines.search.pareto import non_dominated


class Problem:
    """Random predictions of N designs, bounds on deviations that are too large, and a front."""

    def __init__(self, seed: int, N: int = 3000, uncertain: tuple[bool, ...] = (True, False)) -> None:
        rng = np.random.default_rng(seed)
        m = len(uncertain)
        self.uncertain = np.array(uncertain)
        self.means = rng.normal(0.0, 0.3, (N, m))
        self.exact = np.where(self.uncertain, rng.uniform(0.01, 0.3, (N, m)), 0.0)
        self.asked: list[np.ndarray] = []
        Y = rng.normal(0.3, 0.2, (8, m))
        self.front, self.reference = Y[non_dominated(Y)], np.full(m, -1.0)
        self.at_least = np.full(m, -np.inf)
        self.largest = self.exact * rng.uniform(1.0, 1.5, (N, m))

    def predictions(self) -> Predictions:
        def of(j: int, rows: np.ndarray) -> np.ndarray:
            self.asked.append(rows)
            return self.exact[rows, j]

        callables = [lambda rows, j=j: of(j, rows) for j in np.flatnonzero(self.uncertain)]
        return Predictions(self.means, self.uncertain, self.largest, callables, self.at_least)

    def solve(self, rows: np.ndarray | None = None) -> Best | None:
        rows = np.arange(len(self.means)) if rows is None else rows
        return best_design(self.predictions(), rows, self.front, self.reference)

    def values(self) -> np.ndarray:
        value = log_ehvi(self.means, self.exact, *open_boxes(self.front, self.reference))
        for j in np.flatnonzero(np.isfinite(self.at_least) & self.uncertain):
            value += log_feasible(self.means[:, j], self.exact[:, j], self.at_least[j])
        return value


@settings(max_examples=40)
@given(st.integers(0, 1000), st.sampled_from([(True, False), (False, True), (True, True), (True, False, False)]))
def test_the_best_of_all_is_found(seed: int, uncertain: tuple[bool, ...]) -> None:
    problem = Problem(seed, 600, uncertain)
    best = problem.solve()
    assert best is not None
    assert best.log_value == pytest.approx(problem.values().max(), abs=1e-8)
    assert best.row == int(np.argmax(problem.values()))
    assert (best.mean == problem.means[best.row]).all()
    assert (best.deviation == problem.exact[best.row]).all()


def test_few_exact_deviations_are_asked_for() -> None:
    problem = Problem(1, 50_000)
    problem.solve()
    assert sum(len(rows) for rows in problem.asked) < 5000


def test_only_permitted_rows_are_considered() -> None:
    problem = Problem(2)
    first = problem.solve()
    assert first is not None
    rest = np.setdiff1d(np.arange(3000), [first.row])
    second = problem.solve(rest)
    assert second is not None
    assert second.row == rest[np.argmax(problem.values()[rest])]


def test_equal_designs_go_to_the_lower_row() -> None:
    problem = Problem(3)
    first = problem.solve()
    assert first is not None
    for twin in (0, 2999):
        problem.means[twin], problem.exact[twin], problem.largest[twin] = (
            problem.means[first.row],
            problem.exact[first.row],
            problem.largest[first.row],
        )
    again = problem.solve()
    assert again is not None
    assert again.row == 0


def test_rounding_errors_do_not_decide_between_equal_designs() -> None:
    problem = Problem(4)
    first = problem.solve()
    assert first is not None
    problem.means[7] = problem.means[first.row] * (1.0 - 1e-15)
    problem.exact[7], problem.largest[7] = problem.exact[first.row], problem.largest[first.row]
    again = problem.solve()
    assert again is not None
    assert again.row == min(7, first.row)


def test_a_bound_on_an_uncertain_objective_weighs_by_its_probability() -> None:
    problem = Problem(5)
    problem.at_least = np.array([0.6, -np.inf])
    best = problem.solve()
    assert best is not None
    assert best.row == int(np.argmax(problem.values()))


def test_where_nothing_can_be_gained_there_is_no_best_design() -> None:
    problem = Problem(6, uncertain=(False, False))
    problem.means = np.full_like(problem.means, -0.9)
    problem.front = np.array([[0.5, 0.5]])
    assert problem.solve() is None
    assert problem.solve(np.array([], dtype=np.int64)) is None
