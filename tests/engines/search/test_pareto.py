from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from engines.objectives import Bound, Objective, parse_objectives
from engines.search.pareto import front, hypervolume, non_dominated
from engines.trial import Outcome, Trial
from search_space.errors import ObjectiveError, ShapeError

ERROR, SECONDS = parse_objectives("val_error,inference_seconds")
ACCURACY = Objective("accuracy", "1", direction="maximise")
# The observations of a published case: A and D are equal, B and E tie in error, C ties with A in seconds.
POINTS = {"A": (0.20, 3.0), "B": (0.10, 5.0), "C": (0.30, 3.0), "D": (0.20, 3.0), "E": (0.10, 6.0), "F": (0.25, 2.9)}

# Few distinct values, so that ties and doubles are the rule.
grids = st.integers(1, 4).flatmap(
    lambda m: arrays.arrays(
        np.float64, st.tuples(st.integers(0, 12), st.just(m)), elements=st.integers(0, 4).map(float)
    )
)


def trials(points: dict[str, tuple[float, float]]) -> list[Trial[str]]:
    return [
        Trial(number, name).complete(
            Outcome({"val_error": error, "accuracy": 1 - error, "inference_seconds": seconds}), [ERROR, SECONDS], 1.0
        )
        for number, (name, (error, seconds)) in enumerate(points.items())
    ]


def dominated_by_definition(Y: np.ndarray, i: int) -> bool:
    return any((Y[j] >= Y[i]).all() and (Y[j] > Y[i]).any() for j in range(len(Y)))


def union_volume(Y: np.ndarray, reference: np.ndarray) -> float:
    """Volume of a union of boxes by inclusion and exclusion."""
    Y = np.maximum(Y, reference)
    return sum(
        (-1) ** (size + 1) * float(np.prod(Y[list(chosen)].min(axis=0) - reference))
        for size in range(1, len(Y) + 1)
        for chosen in combinations(range(len(Y)), size)
    )


@given(grids)
def test_a_row_is_kept_exactly_when_no_other_dominates_it(Y: np.ndarray) -> None:
    expected = [not dominated_by_definition(Y, i) for i in range(len(Y))]
    assert non_dominated(Y).tolist() == expected


def test_equal_rows_are_both_kept() -> None:
    assert non_dominated(np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 2.0]])).tolist() == [True, True, False]


def test_values_too_large_to_add_are_still_compared() -> None:
    Y = np.array([[1e300, 1.0], [1e300, 2.0]])
    assert non_dominated(Y).tolist() == [False, True]


@given(grids.filter(lambda Y: len(Y) <= 7))
def test_hypervolume_is_the_volume_of_the_union_of_boxes(Y: np.ndarray) -> None:
    reference = np.full(Y.shape[1], 0.5)
    assert hypervolume(Y, reference) == pytest.approx(union_volume(Y, reference), abs=1e-9)


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_leaving_a_point_out_costs_what_it_alone_dominates(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Y = rng.random((12, m))
    Y = Y[non_dominated(Y)]
    reference = np.zeros(m)
    draws = rng.random((200_000, m))
    # (draws, points): which points dominate each draw
    covers = (draws[:, None, :] <= Y[None, :, :]).all(axis=2)
    for i in range(len(Y)):
        alone = float((covers[:, i] & (covers.sum(axis=1) == 1)).mean())
        lost = hypervolume(Y, reference) - hypervolume(np.delete(Y, i, axis=0), reference)
        assert lost == pytest.approx(alone, abs=5 * np.sqrt(max(alone, 1e-5) / len(draws)))


@given(grids, st.randoms(use_true_random=False))
def test_hypervolume_does_not_depend_on_order_or_on_dominated_rows(Y: np.ndarray, random: object) -> None:
    reference = np.full(Y.shape[1], -1.0)
    shuffled = Y[np.random.default_rng(len(Y)).permutation(len(Y))]
    assert hypervolume(shuffled, reference) == pytest.approx(hypervolume(Y, reference))
    assert hypervolume(Y[non_dominated(Y)], reference) == pytest.approx(hypervolume(Y, reference))


def test_a_point_that_only_touches_the_reference_adds_nothing() -> None:
    assert hypervolume(np.array([[0.0, 5.0], [5.0, 0.0], [-1.0, 9.0]]), np.zeros(2)) == 0.0
    assert hypervolume(np.empty((0, 2)), np.zeros(2)) == 0.0


@pytest.mark.parametrize("second", [ERROR, ACCURACY])
def test_the_front_of_the_published_case_is_a_b_d_f_in_either_direction(second: Objective) -> None:
    assert [trial.design for trial in front(trials(POINTS), [second, SECONDS])] == ["A", "B", "D", "F"]


def test_the_hypervolume_of_the_published_case_is_2_625() -> None:
    Y = -np.array(list(POINTS.values()))
    assert hypervolume(Y, np.array([-0.5, -10.0])) == pytest.approx(2.625, rel=1e-12)


def test_a_bound_removes_designs_before_dominance_is_asked() -> None:
    points = {"a": (0.1, 5.0), "b": (0.2, 3.0), "c": (0.3, 1.0)}
    assert [t.design for t in front(trials(points), [ERROR, SECONDS], [Bound(SECONDS, 2.0)])] == ["c"]
    assert front(trials(points), [ERROR, SECONDS], [Bound(SECONDS, 1e-9)]) == []


def test_only_first_complete_trials_are_on_a_front() -> None:
    best = Outcome({"val_error": 0.01, "inference_seconds": 0.1})
    stopped = Outcome(best.values, stopped=True)
    others: list[Trial[str]] = [
        Trial(10, "stopped").complete(stopped, [ERROR, SECONDS], 1.0),
        Trial(11, "failed").fail("no memory"),
        Trial(12, "running"),
        Trial(13, "E", repeats_of=99).complete(best, [ERROR, SECONDS], 1.0),
    ]
    assert [t.design for t in front(trials(POINTS) + others, [ERROR, SECONDS])] == ["A", "B", "D", "F"]
    assert front(others, [ERROR, SECONDS]) == []


def test_further_seeds_can_take_a_design_from_the_front() -> None:
    # B had 0.10 and then 0.60 at 5 s: with 0.35 it is behind A, and E comes in its place
    worse = Outcome({"val_error": 0.60, "inference_seconds": 5.0})
    again: Trial[str] = Trial(6, "B", repeats_of=1).complete(worse, [ERROR, SECONDS], 1.0)
    found = front([*trials(POINTS), again], [ERROR, SECONDS])
    assert [trial.design for trial in found] == ["A", "D", "E", "F"]


def test_a_bound_without_a_value_is_refused() -> None:
    (memory,) = (o for o in parse_objectives("val_error,peak_memory_bytes") if o.unit == "B")
    with pytest.raises(ObjectiveError, match="trial 0 has none for 'peak_memory_bytes'; it has: val_error, accuracy"):
        front(trials(POINTS), [ERROR, SECONDS], [Bound(memory, 1e9)])


def test_values_that_are_not_finite_and_shapes_that_disagree_are_refused() -> None:
    with pytest.raises(ObjectiveError, match=r"finite, got \[nan, 1.0\] in row 1"):
        non_dominated(np.array([[0.0, 1.0], [np.nan, 1.0]]))
    with pytest.raises(ObjectiveError, match="a reference point is finite"):
        hypervolume(np.zeros((1, 2)), np.array([0.0, -np.inf]))
    with pytest.raises(ShapeError, match=r"has shape \(2,\), got \(3,\)"):
        hypervolume(np.zeros((1, 2)), np.zeros(3))
    with pytest.raises(ShapeError, match=r"have shape \(n, m\)"):
        non_dominated(np.zeros(3))
