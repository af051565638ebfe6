"""What users may give as an evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from engines.objectives import OBJECTIVES
from engines.trial import Outcome
from pasca.evaluators import CustomEvaluator
from search_space.errors import ConfigError, TrialFailure

PAIR = (OBJECTIVES["val_error"], OBJECTIVES["parameters"])


class Object:
    def evaluate(self, design: Any, seeds: Sequence[int]) -> Outcome:
        return Outcome({"val_error": 0.1 * len(seeds), "parameters": design}, {"val_error": 0.01})


@pytest.mark.parametrize(
    "inner",
    [
        Object(),
        lambda design, seeds: Outcome({"val_error": 0.1 * len(seeds), "parameters": design}),
        lambda design: {"val_error": 0.2, "parameters": design},
        lambda design: (0.2, design),
        lambda design: [0.2, design],
        lambda design, *others: (0.2, design),
    ],
)
def test_objects_and_functions_of_several_kinds_say_the_same(inner: Any) -> None:
    outcome = CustomEvaluator(inner, PAIR).evaluate(5, (1, 2))
    assert dict(outcome.values) == {"val_error": 0.2, "parameters": 5}


def test_an_outcome_is_passed_on_whole() -> None:
    assert CustomEvaluator(Object(), PAIR).evaluate(5, (1,)).variances == {"val_error": 0.01}


def test_values_without_a_name_must_be_as_many_as_the_objectives() -> None:
    with pytest.raises(TrialFailure, match="3 values for 2 objectives: val_error, parameters"):
        CustomEvaluator(lambda design: (1, 2, 3), PAIR).evaluate(5, ())


def test_something_else_is_named() -> None:
    with pytest.raises(TrialFailure, match=r"returned 0\.5 instead of values of val_error, parameters"):
        CustomEvaluator(lambda design: 0.5, PAIR).evaluate(5, ())


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(ConfigError, match="got 3"):
        CustomEvaluator(3, PAIR)
