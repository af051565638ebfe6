from collections import Counter
from itertools import islice

import numpy as np
import pytest

from engines.objectives import OBJECTIVES, Bound
from engines.search.candidates import InitialOrder, checked_known, excess, find_rows, permitted, random_order, to_codes
from search_space.errors import ObjectiveError, ShapeError
from search_space.space import SearchSpace

PAPER = SearchSpace.paper()
SMALL = SearchSpace.paper(k_pre=[0, 1], message=["mean", "max"], k_trans=[1, 2], k_post=[0, 1])
SECONDS, BYTES = OBJECTIVES["inference_seconds"], OBJECTIVES["peak_memory_bytes"]


def test_the_initial_order_begins_with_the_starting_designs() -> None:
    first = list(islice(InitialOrder(PAPER, 0), 8))
    assert [PAPER.design(row) for row in first] == PAPER.starting_designs()


def test_the_initial_order_visits_every_design_once() -> None:
    assert sorted(InitialOrder(SMALL, 3)) == list(range(len(SMALL)))


def test_the_initial_order_is_fixed_by_the_seed() -> None:
    one, same, other = (list(islice(InitialOrder(PAPER, seed), 50)) for seed in (1, 1, 2))
    assert one == same != other


def test_an_initial_order_can_be_read_again_from_its_start() -> None:
    order = InitialOrder(PAPER, 0)
    assert list(islice(order, 20)) == list(islice(order, 30))[:20]


def test_the_quasi_random_part_is_more_even_than_chance() -> None:
    # 80 points on the ten depths: eight each, give or take two; plain random draws spread far more.
    rows = list(islice(InitialOrder(PAPER, 0), 8, 88))
    counts = Counter(PAPER.design(row).k_trans for row in rows)
    assert len(counts) == 10
    assert max(counts.values()) - min(counts.values()) <= 4


def test_points_of_the_cube_become_canonical_codes() -> None:
    points = np.array([[0.0, 0.9, 0.9, 0.0, 0.0, 0.9], [0.999999, 0.0, 0.999999, 0.5, 0.5, 0.3]])
    assert to_codes(points, PAPER.choices).tolist() == [[0, -1, -1, 0, 0, -1], [10, 0, 5, 5, 5, 1]]


def test_a_choice_without_values_is_inactive() -> None:
    space = SearchSpace.paper(k_pre=[0], pre_aggregator=[], message=[], k_post=[0], post_aggregator=[])
    assert to_codes(np.full((1, 6), 0.5), space.choices).tolist() == [[0, -1, -1, 5, 0, -1]]


def test_rows_are_found_by_their_codes() -> None:
    codes = PAPER.codes()
    wanted = codes[[5, 153_509, 77]].copy()
    assert find_rows(codes, PAPER.choices, wanted).tolist() == [5, 153_509, 77]
    wanted[1] = [3, -1, -1, 0, 0, -1]
    assert find_rows(codes, PAPER.choices, wanted).tolist() == [5, -1, 77]


def test_excess_is_relative_and_adds_up() -> None:
    known = {"inference_seconds": np.array([1.0, 2.0, 4.0]), "peak_memory_bytes": np.array([10.0, 30.0, 5.0])}
    over = excess([Bound(SECONDS, 2.0), Bound(BYTES, 10.0)], known, 3)
    assert over.tolist() == [0.0, 2.0, 1.0]
    assert excess([Bound(SECONDS, 0.0)], known, 3).tolist() == [1.0, 2.0, 4.0]
    assert excess([Bound(OBJECTIVES["val_error"], 0.1)], known, 3).tolist() == [0.0, 0.0, 0.0]


def test_designs_that_keep_the_bounds_are_permitted_and_else_all_nearest_first() -> None:
    assert permitted(np.array([0.5, 0.0, 2.0, 0.0])).tolist() == [1, 3]
    assert permitted(np.array([0.5, 0.1, 2.0, 0.1])).tolist() == [1, 3, 0, 2]


def test_a_random_order_is_a_permutation_fixed_by_the_seed() -> None:
    assert sorted(random_order(100, 0)) == list(range(100))
    assert (random_order(100, 0) == random_order(100, 0)).all()
    assert (random_order(100, 0) != random_order(100, 1)).any()


def test_known_values_must_fit_the_space_and_be_finite() -> None:
    with pytest.raises(ShapeError, match=rf"inference_seconds have shape \({len(SMALL)},\), one a design; got \(3,\)"):
        checked_known(SMALL, {"inference_seconds": np.ones(3)})
    values = np.ones(len(SMALL))
    values[1] = np.nan
    with pytest.raises(ObjectiveError, match=r"inference_seconds of -/-/mlp-1/augmented\^1 is nan"):
        checked_known(SMALL, {"inference_seconds": values})
