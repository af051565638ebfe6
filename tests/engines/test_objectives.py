import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.objectives import (
    DEFAULT_OBJECTIVES,
    OBJECTIVES,
    Bound,
    Objective,
    parse_bound,
    parse_objectives,
    register_objective,
)
from search_space.errors import ObjectiveError

ACCURACY = Objective("accuracy", "1", direction="maximise")


def test_the_default_pair_is_error_and_inference_time() -> None:
    error, seconds = parse_objectives(DEFAULT_OBJECTIVES)
    assert (error.name, error.kind, error.unit) == ("val_error", "measured", "1")
    assert (seconds.name, seconds.kind, seconds.unit) == ("inference_seconds", "known", "s")


def test_larger_gains_are_better_in_either_direction() -> None:
    values = np.array([0.1, 0.3])
    assert OBJECTIVES["val_error"].gains(values).argmax() == 0
    assert ACCURACY.gains(values).argmax() == 1


@given(st.sampled_from([*OBJECTIVES.values(), ACCURACY]), st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_measured_undoes_gains(objective: Objective, values: list[float]) -> None:
    assert (objective.measured(objective.gains(np.array(values))) == values).all()


def test_a_list_is_read_from_text_or_names() -> None:
    names = ["val_error", "parameters", "macs"]
    assert [objective.name for objective in parse_objectives("val_error, parameters,macs")] == names
    assert parse_objectives(names) == parse_objectives("val_error,parameters,macs")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "val_error,latency",
            "unknown objective 'latency'; choose from: val_error, inference_seconds, parameters, macs",
        ),
        ("val_error,val_error", "objectives are repeated: val_error, val_error"),
        ("val_error", "a search needs two or more objectives, got val_error"),
        ("", "unknown objective ''"),
    ],
)
def test_a_wrong_list_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(ObjectiveError, match=re.escape(told)):
        parse_objectives(text)


def test_no_objectives_at_all_are_refused() -> None:
    with pytest.raises(ObjectiveError, match="got none"):
        parse_objectives([])


@pytest.mark.parametrize(
    ("text", "at_most"),
    [
        ("inference_seconds=5ms", 0.005),
        ("inference_seconds = 2.5e-3", 0.0025),
        ("inference_seconds=1e-3s", 0.001),
        ("inference_seconds=2min", 120.0),
        ("peak_memory_bytes=2GB", 2e9),
        ("peak_memory_bytes=2 GiB", 2 * 1024**3),
        ("val_error=20%", 0.2),
        ("val_error=0.2", 0.2),
        ("parameters=1.5M", 1.5e6),
        ("macs=0", 0.0),
    ],
)
def test_a_bound_is_read_in_the_unit_given(text: str, at_most: float) -> None:
    bound = parse_bound(text)
    assert bound.objective.name == text.split("=")[0].strip()
    assert bound.at_most == pytest.approx(at_most, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("inference_seconds", "a bound is OBJECTIVE=NUMBER[UNIT]"),
        ("inference_seconds<=5ms", "a bound is OBJECTIVE=NUMBER[UNIT]"),
        ("latency=5ms", "unknown objective 'latency'; choose from: val_error"),
        ("inference_seconds=5kg", "unknown unit 'kg' in 'inference_seconds=5kg'; inference_seconds takes: s, ms"),
        ("inference_seconds=-5ms", "a finite number of at least 0"),
        ("inference_seconds=1e999", "a finite number of at least 0"),
        ("inference_seconds=5..2", "'5..2' in the bound 'inference_seconds=5..2' is not a number"),
        ("inference_seconds=nan", "a bound is OBJECTIVE=NUMBER[UNIT]"),
    ],
)
def test_a_wrong_bound_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(ObjectiveError, match=re.escape(told)):
        parse_bound(text)


def test_a_bound_allows_its_own_value() -> None:
    bound = Bound(OBJECTIVES["inference_seconds"], 2.0)
    assert [bound.allows(value) for value in (1.0, 2.0, 2.0000001)] == [True, True, False]


def test_an_objective_of_ones_own_is_known_once_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.objectives.OBJECTIVES", dict(OBJECTIVES))
    battery = Objective("battery", "J", description="per classification")
    assert register_objective(register_objective(battery)) is battery
    assert parse_objectives("val_error,battery")[1] is battery
    assert parse_bound("battery=2.5J").at_most == parse_bound("battery=2.5").at_most == 2.5


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (Objective("val_error", "s"), "another objective 'val_error' already"),
        (Objective("Energy 2", "J"), "signs a-z and _, got 'Energy 2'"),
        (Objective("margin", "1", direction="maximise"), "smaller values .* are better, got margin to maximise"),
    ],
)
def test_an_objective_that_would_be_misread_is_not_registered(objective: Objective, message: str) -> None:
    with pytest.raises(ObjectiveError, match=message):
        register_objective(objective)
