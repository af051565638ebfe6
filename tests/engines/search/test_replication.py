"""Further seeds go to the design whose place on the front is least certain, and no further than needed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engines.history import History
from engines.objectives import Bound, parse_objectives
from engines.search.replication import Replication, front_probabilities
from engines.trial import Outcome, Trial
from search_space.errors import ConfigError

ERROR, SECONDS = OBJECTIVES = parse_objectives("val_error,inference_seconds")
VARIANCE = 0.0001


def done(number: int, design: str, error: float, seconds: float, variance: float = VARIANCE, **more: int) -> Trial[str]:
    outcome = Outcome({"val_error": error, "inference_seconds": seconds}, {"val_error": variance})
    return Trial(number, design, (0, 1, 2), **more).complete(outcome, OBJECTIVES, 1.0)


def test_a_probability_is_that_of_the_normal_difference() -> None:
    # equal costs; b is one deviation of the difference behind a: it is the better one with Φ(-1)
    Y = np.array([[-0.2, -1.0], [-0.2 - 0.01 * math.sqrt(2), -1.0]])
    variances = np.array([[1e-4, 0.0], [1e-4, 0.0]])
    behind = 0.5 * math.erfc(1 / math.sqrt(2))
    np.testing.assert_allclose(front_probabilities(Y, variances), [1 - behind, behind], atol=0.05)


def test_without_noise_probabilities_are_membership() -> None:
    Y = np.array([[-0.2, -1.0], [-0.3, -0.5], [-0.3, -1.0]])
    np.testing.assert_array_equal(front_probabilities(Y, np.zeros_like(Y)), [1.0, 1.0, 0.0])


def test_the_design_in_most_doubt_is_next() -> None:
    # b costs more than a and is hardly better; c is far behind; d is far ahead
    history = History(
        [done(0, "a", 0.2, 1.0), done(1, "b", 0.199, 2.0), done(2, "c", 0.5, 3.0), done(3, "d", 0.05, 4.0)]
    )
    repeat = Replication().next(history, OBJECTIVES)
    assert repeat is not None
    assert (repeat.first.number, repeat.record) == (1, 1)
    assert 0.3 < repeat.probability < 0.7


def test_certain_designs_need_no_more() -> None:
    history = History([done(0, "a", 0.2, 1.0), done(1, "b", 0.1, 2.0), done(2, "c", 0.5, 3.0)])
    assert Replication().next(history, OBJECTIVES) is None


def test_seeds_end_with_the_most_records() -> None:
    trials = [done(0, "a", 0.2, 1.0), done(1, "b", 0.2, 2.0)]
    found = []
    for number in range(2, 20):
        repeat = Replication(most=3).next(History(trials), OBJECTIVES)
        if repeat is None:
            break
        first = repeat.first
        found.append((first.number, repeat.record))
        trials.append(done(number, first.design, 0.2, first.values["inference_seconds"], repeats_of=first.number))
    # a is the cheapest and so on the front whatever b is
    assert found == [(1, 1), (1, 2)]


def test_one_that_is_being_repeated_waits_and_an_interrupted_repeat_never_was() -> None:
    trials = [done(0, "a", 0.2, 1.0), done(1, "b", 0.2, 2.0)]
    running = Trial(2, "b", (3, 4, 5), repeats_of=1)
    assert Replication().next(History([*trials, running]), OBJECTIVES) is None
    interrupted = running.fail("interrupted")
    assert Replication().next(History([*trials, interrupted]), OBJECTIVES) == Replication().next(
        History(trials), OBJECTIVES
    )


def test_designs_that_break_a_bound_get_none() -> None:
    history = History([done(0, "a", 0.2, 1.0), done(1, "b", 0.2, 2.0)])
    assert Replication().next(history, OBJECTIVES, [Bound(SECONDS, 1.5)]) is None


def test_nothing_is_repeated_where_no_variance_is_known() -> None:
    outcome = Outcome({"val_error": 0.2, "inference_seconds": 1.0})
    trials = [Trial(n, d, (0,)).complete(outcome, OBJECTIVES, 1.0) for n, d in enumerate("ab")]
    assert Replication().next(History(trials), OBJECTIVES) is None
    assert Replication().next(History([]), OBJECTIVES) is None


@pytest.mark.parametrize("values", [{"most": 1}, {"certainty": 0.5}, {"certainty": 1.0}])
def test_values_out_of_range_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="got"):
        Replication(**values)  # type: ignore[arg-type]
