import numpy as np
import pytest
from scipy.optimize import approx_fprime

from engines.search.kernel import Kernel, Term
from engines.search.similarity import similarities
from engines.search.warping import IDENTITY, Warp, choose_warp, tail_warp
from search_space.space import SearchSpace

GAINS = np.array([-50.0, -3.0, -1.0, -0.5, 0.0, 2.0])
WARP = Warp(knee=-0.5, scale=0.7)
SPACE = SearchSpace.paper(k_pre=range(6), k_trans=range(1, 6), k_post=range(3))
KERNEL = Kernel((Term(tuple(similarities(SPACE.choices))),))


def test_above_the_knee_gains_stay_and_below_they_are_drawn_in() -> None:
    assert WARP(GAINS)[3:] == pytest.approx(GAINS[3:])
    # Worked by hand: -0.5 - 0.7 log(1 + 0.5 / 0.7).
    assert WARP(GAINS)[2] == pytest.approx(-0.5 - 0.7 * 0.5389965)
    assert WARP(GAINS)[0] > -4.0


@pytest.mark.parametrize("warp", [WARP, IDENTITY])
def test_the_inverse_undoes_it_and_order_is_kept(warp: Warp) -> None:
    assert warp.inverse(warp(GAINS)) == pytest.approx(GAINS)
    assert (np.diff(warp(GAINS)) > 0).all()


@pytest.mark.parametrize("warp", [WARP, IDENTITY])
def test_the_slope_is_the_derivative(warp: Warp) -> None:
    away = GAINS[warp.knee != GAINS]
    numeric = [approx_fprime([gain], lambda g: float(warp(g)[0]), 1e-6)[0] for gain in away]
    assert warp.slope(away) == pytest.approx(numeric, abs=1e-5)


def test_infinitely_bad_stays_so() -> None:
    assert WARP(np.array(-np.inf)) == -np.inf


def test_the_better_half_is_kept() -> None:
    warp = tail_warp(np.array([0.0, 1.0, 2.0, 3.0, 4.0]))
    assert warp == Warp(knee=2.0, scale=1.0)
    assert tail_warp(np.full(5, 3.0)) is None


def observed(tail: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = SPACE.codes().astype(float)[rng.choice(len(SPACE), 60, replace=False)]
    smooth = np.cos(X[:, 3]) - 0.3 * X[:, 0] + 0.05 * rng.standard_normal(60)
    return X, Warp(float(np.median(smooth)), 0.2).inverse(smooth) if tail else smooth


@pytest.mark.parametrize("tail", [True, False])
def test_the_tail_is_drawn_in_where_the_observations_ask_for_it(tail: bool) -> None:
    X, y = observed(tail)
    assert (choose_warp(KERNEL, X, y, np.full(60, np.nan)) != IDENTITY) == tail


def test_equal_observations_are_left_alone() -> None:
    X, _ = observed(False)
    assert choose_warp(KERNEL, X, np.full(60, 0.25), np.zeros(60)) == IDENTITY
