"""Searching a space that cannot be listed: the contract of searchers, and that a model finds what chance does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engines.history import History
from engines.objectives import OBJECTIVES, Bound, Floats
from engines.search.base import Searcher
from engines.search.catalogue import SEARCHERS, create_searcher
from engines.search.pareto import hypervolume
from engines.trial import Outcome, Trial
from search_space.architecture import Architecture
from search_space.extended import ExtendedSpace

RECIPE = {
    "hidden_width": 128,
    "input_dropout": 0.5,
    "dropout": 0.5,
    "learning_rate": 0.03,
    "weight_decay": 5e-4,
    "normalise": "row",
}
PAIR = (OBJECTIVES["val_error"], OBJECTIVES["inference_seconds"])
SPACE = ExtendedSpace(RECIPE)


def seconds(design: Architecture) -> float:
    return 0.01 * (1 + design.k_pre + design.k_trans * (design.hidden_width or 128) / 128 + design.k_post)


def error(design: Architecture) -> float:
    """Best with five high-pass steps, a wide network, a low learning rate and a normalisation layer."""
    return (
        0.05 * abs(design.k_pre - 5)
        + 0.2 * ("highpass" not in (design.pre_aggregator or ""))
        + 0.1 * ((design.learning_rate or 0.03) > 0.005)
        + 0.1 * (design.norm is None)
        + 12.8 / (design.hidden_width or 128)
    )


class Costs:
    names = ("inference_seconds",)

    def of(self, designs: Sequence[Architecture]) -> dict[str, Floats]:
        return {"inference_seconds": np.array([seconds(design) for design in designs])}

    def extents(self, bounds: Sequence[Bound]) -> dict[str, tuple[float, float]]:
        return {"inference_seconds": (0.0125, 0.41)}


def searcher(name: str, space: Any = SPACE, bounds: Sequence[Bound] = (), num_initial: int = 6) -> Searcher[Any]:
    return create_searcher(name, space, PAIR, known=Costs(), seed=3, num_initial=num_initial, bounds=bounds)


def evaluated(history: History[Any], design: Architecture) -> History[Any]:
    number = len(history)
    outcome = Outcome({"val_error": error(design), "inference_seconds": seconds(design)}, {"val_error": 1e-6})
    return history.with_trial(Trial(number=number, design=design, seeds=(1, 2)).complete(outcome, PAIR, 0.1))


def run(name: str, count: int, **options: Any) -> tuple[History[Any], Searcher[Any]]:
    engine, history = searcher(name, **options), History[Any]()
    for _ in range(count):
        for suggestion in engine.ask(history):
            history = evaluated(history, suggestion.design)
    return history, engine


def volume(history: History[Any]) -> float:
    """Hypervolume below an error of 1 and half a second."""
    gains = np.array([[-error(trial.design), -seconds(trial.design)] for trial in history])
    return hypervolume(gains, np.array([-1.0, -0.5]))


@pytest.mark.parametrize("name", SEARCHERS)
def test_suggestions_are_new_designs_of_the_space_and_depend_on_the_history_alone(name: str) -> None:
    history, engine = run(name, 8)
    assert len({trial.design for trial in history}) == 8
    assert all(trial.design in SPACE for trial in history)
    asked, fresh = engine.ask(history, 2), searcher(name).ask(history, 2)
    assert [one.design for one in asked] == [one.design for one in fresh]
    assert len({one.design for one in asked} | {trial.design for trial in history}) == 10


@pytest.mark.parametrize("name", ["ehvi", "nsga2"])
def test_the_classics_come_first(name: str) -> None:
    known = SPACE.starting_designs()
    asked = searcher(name, num_initial=len(known) + 3).ask(History(), len(known))
    assert [suggestion.design for suggestion in asked] == known


@pytest.mark.parametrize("name", SEARCHERS)
def test_a_bound_on_a_known_objective_is_kept(name: str) -> None:
    history, _ = run(name, 9, bounds=[Bound(PAIR[1], 0.06)])
    assert max(seconds(trial.design) for trial in history) <= 0.06


@pytest.mark.parametrize("name", SEARCHERS)
def test_a_space_that_is_exhausted_says_so(name: str) -> None:
    tiny = ExtendedSpace(
        RECIPE,
        {
            "k_pre": 0,
            "k_post": 0,
            "k_trans": [1, 2],
            "hidden_width": 128,
            "dropout": [0.2, 0.5],
            "norm": "none",
            "input_dropout": 0.5,
            "learning_rate": 0.03,
            "weight_decay": 5e-4,
            "label_steps": 0,
            "adjacency": "none",
            "consistency": 0,
            "structure": "none",
            "normalise": "row",
        },
    )
    history, engine = run(name, 6, space=tiny, num_initial=1)
    assert len(history) == len(tiny) == 3
    assert engine.ask(history) == []


def test_the_model_gets_further_from_where_it_starts_than_chance() -> None:
    """From the same first designs: four suggestions by the model against as many drawn at random."""
    start = History[Any]()
    for design in [*SPACE.starting_designs(), *SPACE.sample(12, np.random.default_rng(5))]:
        start = evaluated(start, design)
    volumes = {}
    for name in ("ehvi", "random"):
        history, engine = start, searcher(name)
        for _ in range(4):
            history = evaluated(history, engine.ask(history)[0].design)
        volumes[name] = volume(history)
    assert volumes["ehvi"] > volumes["random"]
    assert "not enumerated" in searcher("ehvi").statement()["candidates"]


def test_a_suggestion_says_how_it_was_found() -> None:
    history, engine = run("ehvi", 8)
    details = engine.ask(history)[0].details
    assert details["method"] == "ehvi"
    assert details["candidates"] > 256
    assert set(details["predicted"]) == {"val_error", "inference_seconds"}
    assert set(details["deviation"]) == {"val_error"}


def test_the_model_states_what_it_makes_of_designs_close_to_what_was_measured() -> None:
    history, engine = run("ehvi", 14)
    designs = [trial.design for trial in history]
    believed = engine.posterior(history, designs)  # type: ignore[attr-defined]
    assert [set(values) for values in believed] == [{"val_error"}] * 14
    for design, values in zip(designs, believed, strict=True):
        mean, deviation = values["val_error"]
        assert abs(mean - error(design)) < max(4 * deviation, 0.02)
        assert deviation > 0
    early = History[Any](list(history)[:3])
    assert engine.posterior(early, designs[:2]) == [{}, {}]  # type: ignore[attr-defined]
