"""The contract of every searcher; a searcher that is not listed in `SEARCHERS` of the catalogue cannot be made."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from engines.history import INTERRUPTED, History
from engines.objectives import Bound, parse_objectives
from engines.search.base import Searcher
from engines.search.catalogue import SEARCHERS, create_searcher
from engines.trial import Outcome, Trial
from search_space.architecture import Architecture
from search_space.space import SearchSpace

# 2 · (1 + 2·2·2) · 3 designs with three seeds each would be enough for a real search, and a suggestion stays quick.
SPACE = SearchSpace.paper(
    k_pre=[0, 1, 2], pre_aggregator=["augmented", "triangle"], message=["mean", "max"], k_trans=[1, 2, 3], k_post=[0, 2]
)
PAIR = parse_objectives("val_error,inference_seconds")
SECONDS = 1e-3 * (1.0 + SPACE.codes().clip(0) @ np.array([1.0, 0.5, 0.2, 0.4, 0.3, 0.1]))
KNOWN = {"inference_seconds": SECONDS}

Maker = Callable[..., Searcher[Architecture]]


@pytest.fixture(params=SEARCHERS)
def make(request: pytest.FixtureRequest) -> Maker:
    def maker(space: SearchSpace = SPACE, seed: int = 0, **settings: object) -> Searcher[Architecture]:
        settings = {"known": KNOWN, "num_initial": 5, **settings}
        return create_searcher(request.param, space, PAIR, seed=seed, **settings)  # type: ignore[arg-type]

    return maker


def outcome(design: Architecture) -> Outcome:
    row = SPACE.index(design)
    error = 0.5 - 0.1 * np.log1p(design.k_pre) + 0.02 * (design.k_trans - 2) ** 2 + 0.003 * np.sin(row)
    return Outcome({"val_error": float(error), "inference_seconds": float(SECONDS[row])}, {"val_error": 1e-5})


def run(
    searcher: Searcher[Architecture], history: History[Architecture], count: int, batch: int = 1
) -> list[Architecture]:
    """Search sequentially (or in whole batches) and return the designs in order."""
    tried: list[Architecture] = []
    while len(tried) < count:
        suggestions = searcher.ask(history, batch)
        if not suggestions:
            break
        for suggestion in suggestions:
            trial = Trial(len(history), suggestion.design, seeds=(0, 1, 2))
            history = history.with_trial(trial.complete(outcome(suggestion.design), PAIR, 1.0))
            tried.append(suggestion.design)
    return tried


def test_asking_twice_gives_the_same_answer(make: Maker) -> None:
    searcher = make()
    history = History[Architecture]()
    for number in range(8):
        suggestion = searcher.ask(history)[0]
        assert searcher.ask(history)[0] == suggestion
        history = history.with_trial(Trial(number, suggestion.design).complete(outcome(suggestion.design), PAIR, 1.0))


def test_a_resumed_search_continues_as_the_uninterrupted_one(make: Maker) -> None:
    whole = run(make(), History(), 12)
    for cut in (3, 7, 10):
        done = [Trial(i, d, seeds=(0, 1, 2)).complete(outcome(d), PAIR, 1.0) for i, d in enumerate(whole[:cut])]
        assert run(make(), History(done), 12 - cut) == whole[cut:]


def test_the_seed_decides_the_designs(make: Maker) -> None:
    assert run(make(seed=1), History(), 8) == run(make(seed=1), History(), 8)
    assert run(make(seed=1), History(), 8) != run(make(seed=2), History(), 8)


def test_no_design_is_suggested_twice_and_the_space_is_exhausted(make: Maker) -> None:
    small = SearchSpace.paper(
        k_pre=[0, 1, 2], pre_aggregator=["augmented"], message=["mean"], k_trans=[1, 2], k_post=[0, 2]
    )
    seconds = np.array([SECONDS[SPACE.index(small.design(0))]] * len(small))
    searcher = make(small, known={"inference_seconds": seconds}, num_initial=3)
    history = History[Architecture]()
    for number in range(len(small)):
        (suggestion,) = searcher.ask(history)
        assert suggestion.design not in history.attempted()
        value = Outcome({"val_error": 0.1 + 0.01 * number, "inference_seconds": float(seconds[0])})
        history = history.with_trial(Trial(number, suggestion.design).complete(value, PAIR, 1.0))
    assert history.attempted() == {small.design(row) for row in range(len(small))}
    assert searcher.ask(history) == []
    assert searcher.ask(history, 4) == []


def test_a_space_of_three_designs_gives_three_to_four_evaluators(make: Maker) -> None:
    space = SearchSpace.paper(
        k_pre=[0, 1], pre_aggregator=["augmented", "ppr0.1"], message=["none"], k_trans=[1], k_post=[0]
    )
    searcher = make(space, known={"inference_seconds": np.array([1.0, 2.0, 2.0])}, num_initial=16)
    suggestions = searcher.ask(History(), 4)
    assert {str(s.design) for s in suggestions} == {"-/-/mlp-1/-", "augmented^1/none/mlp-1/-", "ppr0.1^1/none/mlp-1/-"}
    running = History([Trial(i, s.design) for i, s in enumerate(suggestions)])
    assert searcher.ask(running) == []


def test_a_batch_is_distinct_and_avoids_what_runs(make: Maker) -> None:
    searcher = make()
    designs = run(searcher, History(), 7)
    history = History([Trial(i, d).complete(outcome(d), PAIR, 1.0) for i, d in enumerate(designs)])
    for number in (7, 8):
        history = history.with_trial(Trial(number, searcher.ask(history)[0].design))
    batch = [suggestion.design for suggestion in searcher.ask(history, 5)]
    assert len(set(batch)) == 5
    assert not set(batch) & history.attempted()


def test_a_batch_is_what_asking_one_by_one_gives(make: Maker) -> None:
    searcher = make()
    designs = run(searcher, History(), 7)
    history = History([Trial(i, d).complete(outcome(d), PAIR, 1.0) for i, d in enumerate(designs)])
    batch = searcher.ask(history, 3)
    for number, suggestion in enumerate(batch, start=7):
        assert searcher.ask(history)[0] == suggestion
        history = history.with_trial(Trial(number, suggestion.design))


def test_an_interrupted_design_may_come_again(make: Maker) -> None:
    first = make().ask(History())[0].design
    assert make().ask(History([Trial(0, first).fail(INTERRUPTED)]))[0].design == first


def test_an_interrupted_trial_changes_nothing_but_the_numbers(make: Maker) -> None:
    designs = run(make(), History(), 8)
    done = [Trial(i + (i > 3), d, seeds=(0, 1, 2)).complete(outcome(d), PAIR, 1.0) for i, d in enumerate(designs)]
    interrupted = Trial(4, SPACE.design(len(SPACE) - 1)).fail(INTERRUPTED)
    assert make().ask(History([*done, interrupted]))[0].design == make().ask(History(done))[0].design


def test_a_search_of_which_nothing_has_finished_still_suggests(make: Maker) -> None:
    searcher = make(num_initial=3)
    for status in ("running", "failed"):
        history = History[Architecture]()
        for number in range(6):
            (suggestion,) = searcher.ask(history)
            trial = Trial(number, suggestion.design)
            history = history.with_trial(trial if status == "running" else trial.fail("no memory"))
        assert len(history.attempted()) == 6


def test_one_observation_is_enough_to_go_on(make: Maker) -> None:
    assert len(run(make(num_initial=1), History(), 5)) == 5


def test_equal_objectives_everywhere_still_give_suggestions(make: Maker) -> None:
    searcher = make(known={"inference_seconds": np.full(len(SPACE), 2.0)}, num_initial=3)
    history = History[Architecture]()
    for number in range(10):
        (suggestion,) = searcher.ask(history)
        value = Outcome({"val_error": 0.25, "inference_seconds": 2.0}, {"val_error": 0.0})
        history = history.with_trial(Trial(number, suggestion.design).complete(value, PAIR, 1.0))
    assert len(history.attempted()) == 10


def test_a_trial_with_nan_is_failed_and_leaves_no_trace_in_later_suggestions(make: Maker) -> None:
    searcher = make(num_initial=3)
    history = History[Architecture]()
    for number in range(8):
        (suggestion,) = searcher.ask(history)
        value = outcome(suggestion.design)
        if number in (2, 4):
            value = Outcome({**value.values, "val_error": np.nan if number == 2 else np.inf})
        history = history.with_trial(Trial(number, suggestion.design, seeds=(0, 1)).complete(value, PAIR, 1.0))
        assert np.isfinite([v for v in suggestion.details.values() if isinstance(v, float)]).all()
    assert len(history.complete) == 6


def test_designs_that_did_well_elsewhere_come_after_the_starting_designs(make: Maker) -> None:
    warm = [SPACE.design(40), SPACE.design(7)]
    searcher = make(warm_start=warm, num_initial=12)
    suggestions = searcher.ask(History(), 12)
    tried = [suggestion.design for suggestion in suggestions]
    if searcher.statement()["searcher"] == "random":
        assert tried == [suggestion.design for suggestion in make(num_initial=12).ask(History(), 12)]
        return
    first = len(SPACE.starting_designs())
    assert tried[first : first + 2] == warm
    assert [suggestion.details.get("warm_start", False) for suggestion in suggestions] == [
        first <= number < first + 2 for number in range(12)
    ]
    assert set(searcher.statement()["warm_start"]) == {str(design) for design in warm}


def test_a_known_bound_is_kept_by_every_suggestion(make: Maker) -> None:
    limit = float(np.quantile(SECONDS, 0.3))
    designs = run(make(bounds=[Bound(PAIR[1], limit)], num_initial=4), History(), 12)
    assert len(designs) == 12
    assert all(SECONDS[SPACE.index(design)] <= limit for design in designs)


def test_a_bound_that_no_design_keeps_still_gives_suggestions(make: Maker) -> None:
    assert len(run(make(bounds=[Bound(PAIR[1], 1e-9)]), History(), 8)) == 8


def test_a_bound_on_what_is_measured_that_nothing_keeps_still_gives_suggestions(make: Maker) -> None:
    searcher = make(bounds=[Bound(PAIR[0], 1e-6)], num_initial=4)
    assert len(set(run(searcher, History(), 10))) == 10


def test_two_measured_objectives_that_never_vary_still_give_suggestions(make: Maker) -> None:
    searcher = make(known={}, num_initial=3)
    history = History[Architecture]()
    for number in range(8):
        (suggestion,) = searcher.ask(history)
        value = Outcome({"val_error": 0.25, "inference_seconds": 2.0}, {"val_error": 0.0, "inference_seconds": 0.0})
        history = history.with_trial(Trial(number, suggestion.design).complete(value, PAIR, 1.0))
    assert len(history.attempted()) == 8


@pytest.mark.parametrize("same_values", [True, False])
def test_ten_records_of_one_design_still_give_another(make: Maker, same_values: bool) -> None:
    design = SPACE.design(17)
    history = History[Architecture]()
    for number in range(10):
        values = dict(outcome(design).values)
        values["val_error"] += 0.0 if same_values else 0.01 * number
        history = history.with_trial(Trial(number, design, seeds=(number,)).complete(Outcome(values), PAIR, 1.0))
    suggestions = make(num_initial=5).ask(history, 3)
    assert len({suggestion.design for suggestion in suggestions} - {design}) == 3


def test_what_a_searcher_says_can_be_written_as_json(make: Maker) -> None:
    searcher = make()
    designs = run(searcher, History(), 6)
    history = History([Trial(i, d).complete(outcome(d), PAIR, 1.0) for i, d in enumerate(designs)])
    suggestion = searcher.ask(history)[0]
    assert json.loads(json.dumps(dict(suggestion.details))) == suggestion.details
    assert json.loads(json.dumps(dict(searcher.statement()))) == searcher.statement()
    assert suggestion.details["method"] in ("initial", "ehvi", "random", "nsga2")


def test_the_global_random_state_is_left_alone(make: Maker) -> None:
    import torch

    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    before = (np.random.get_state()[1].copy(), torch.get_rng_state().clone())  # type: ignore[index, union-attr]  # noqa: NPY002
    run(make(), History(), 8)
    assert (np.random.get_state()[1] == before[0]).all()  # type: ignore[index]  # noqa: NPY002
    assert (torch.get_rng_state() == before[1]).all()
