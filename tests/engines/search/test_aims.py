"""What a search is for is checked once, and carried between measured values and gains."""

from __future__ import annotations

import numpy as np
import pytest

from engines.objectives import Bound, Objective, parse_objectives
from engines.search.aims import Aims
from search_space.errors import ObjectiveError

ERROR, SECONDS = parse_objectives("val_error,inference_seconds")
ACCURACY = Objective("accuracy", "1", "maximise")


def test_gains_and_measured_values_are_each_others_inverse_whichever_way_is_better() -> None:
    aims = Aims((ACCURACY, SECONDS), ("inference_seconds",), ())
    gains = aims.gains({"inference_seconds": 0.25, "accuracy": 0.9})
    np.testing.assert_array_equal(gains, [0.9, -0.25])
    assert aims.measured(gains) == {"accuracy": 0.9, "inference_seconds": 0.25}
    np.testing.assert_array_equal(aims.uncertain, [True, False])


def test_of_several_bounds_on_an_objective_the_tightest_counts() -> None:
    aims = Aims((ERROR, SECONDS), (), (Bound(ERROR, 0.3), Bound(ERROR, 0.2)))
    np.testing.assert_array_equal(aims.at_least, [-0.2, -np.inf])


def test_a_bound_on_a_known_objective_that_is_not_searched_limits_no_gain() -> None:
    aims = Aims((ERROR,), ("inference_seconds",), (Bound(SECONDS, 1.0),))
    np.testing.assert_array_equal(aims.at_least, [-np.inf])
    assert aims.statement() == {"objectives": ["val_error"], "known": [], "bounds": {"inference_seconds": 1.0}}


@pytest.mark.parametrize(
    ("objectives", "bounds", "message"),
    [
        ((), (), "a search needs objectives, each once; got none"),
        ((ERROR, ERROR), (), "each once; got val_error, val_error"),
        ((ERROR,), (Bound(SECONDS, 1.0),), "got 'inference_seconds'; choose from: val_error"),
    ],
)
def test_aims_without_sense_are_refused(objectives: tuple, bounds: tuple, message: str) -> None:
    with pytest.raises(ObjectiveError, match=message):
        Aims(objectives, (), bounds)
