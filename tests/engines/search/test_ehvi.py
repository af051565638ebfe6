import numpy as np
import pytest

from engines.history import History
from engines.objectives import OBJECTIVES, Bound, Objective, parse_objectives
from engines.search import models
from engines.search.candidates import random_order
from engines.search.ehvi import EHVISearcher
from engines.search.fitting import FitFailure
from engines.search.pareto import hypervolume
from engines.search.random_search import RandomSearcher
from engines.trial import Outcome, Trial
from search_space.architecture import Architecture
from search_space.errors import ConfigError, ObjectiveError, ShapeError
from search_space.space import SearchSpace

SPACE = SearchSpace.paper(k_pre=range(6), k_trans=range(1, 5), k_post=range(4), post_aggregator=["augmented", "ppr0.2"])
PAIR = parse_objectives("val_error,inference_seconds")
ERROR, SECONDS = PAIR
CODES = SPACE.codes().astype(float)
COST = 1e-3 * (
    1.0 + CODES[:, 0] * (1.0 + 0.5 * (CODES[:, 1] == 4) + (CODES[:, 2] == 3)) + 0.4 * CODES[:, 3] + 0.3 * CODES[:, 4]
)
TRUE_ERROR = (
    0.2
    + 0.06 * np.abs(np.log1p(CODES[:, 0]) - 1.4)
    + 0.05 * (CODES[:, 1] == 4)
    + 0.02 * np.abs(CODES[:, 2] - 4.0) * (CODES[:, 0] > 0)
    + 0.03 * (CODES[:, 3] - 1.0) ** 2
    - 0.01 * (CODES[:, 4] > 0)
    + 0.004 * np.random.default_rng(0).standard_normal(len(SPACE))
)


def result(row: int, rng: np.random.Generator | None = None) -> Outcome:
    scores = TRUE_ERROR[row] + (0.004 * rng.standard_normal(3) if rng else np.array([-0.001, 0.0, 0.001]))
    values = {"val_error": float(scores.mean()), "inference_seconds": float(COST[row])}
    return Outcome(values, {"val_error": float(scores.var(ddof=1) / 3)})


def searched(searcher: EHVISearcher[Architecture], count: int, seed: int = 0) -> History[Architecture]:
    rng = np.random.default_rng(seed)
    history = History[Architecture]()
    for number in range(count):
        (suggestion,) = searcher.ask(history)
        trial = Trial(number, suggestion.design, seeds=(0, 1, 2), details={"suggestion": dict(suggestion.details)})
        history = history.with_trial(trial.complete(result(SPACE.index(suggestion.design), rng), PAIR, 1.0))
    return history


def make(**settings: object) -> EHVISearcher[Architecture]:
    settings = {"known": {"inference_seconds": COST}, "seed": 0, "num_initial": 10, **settings}
    return EHVISearcher(SPACE, PAIR, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def history() -> History[Architecture]:
    return searched(make(), 24)


def methods(history: History[Architecture]) -> list[str]:
    return [trial.details["suggestion"]["method"] for trial in history]


def test_the_initial_designs_come_first_then_the_model(history: History[Architecture]) -> None:
    assert methods(history) == ["initial"] * 10 + ["ehvi"] * 14
    assert [history[i].design for i in range(3)] == SPACE.starting_designs()[:3]


def test_it_states_what_a_suggestion_depends_on() -> None:
    stated = make(seed=3, warm_start=[SPACE.design(7), SPACE.design(5)]).statement()
    assert stated == {
        "searcher": "ehvi",
        "seed": 3,
        "num_initial": 10,
        "objectives": ["val_error", "inference_seconds"],
        "known": ["inference_seconds"],
        "bounds": {},
        "num_designs": len(SPACE),
        "warm_start": [str(SPACE.design(5)), str(SPACE.design(7))],
        "reference_point": None,
    }


def test_the_reference_point_is_the_stated_rule(history: History[Architecture]) -> None:
    searcher = make()
    assert searcher.statement()["reference_point"] is None
    searcher.ask(history)
    errors = [history[i].values["val_error"] for i in range(10)]
    assert searcher.statement()["reference_point"] == pytest.approx(
        {
            "val_error": max(errors) + 0.1 * (max(errors) - min(errors)),
            "inference_seconds": COST.max() + 0.1 * (COST.max() - COST.min()),
        }
    )


def test_the_reference_point_never_moves(history: History[Architecture]) -> None:
    worse = Outcome({"val_error": 0.99, "inference_seconds": 1.0})
    searcher, later = make(), make()
    searcher.ask(history)
    later.ask(history.with_trial(Trial(24, SPACE.design(0)).complete(worse, PAIR, 1.0)))
    assert searcher.statement() == later.statement()


def test_the_reference_point_of_a_known_cost_is_that_of_feasible_designs(history: History[Architecture]) -> None:
    limit = float(np.median(COST))
    feasible = COST[limit >= COST]
    searcher = make(bounds=[Bound(SECONDS, limit)])
    searcher.ask(history)
    expected = feasible.max() + 0.1 * (feasible.max() - feasible.min())
    assert searcher.statement()["reference_point"]["inference_seconds"] == pytest.approx(expected)


def test_a_suggestion_states_its_prediction(history: History[Architecture]) -> None:
    (suggestion,) = make().ask(history)
    row = SPACE.index(suggestion.design)
    assert suggestion.details["predicted"]["inference_seconds"] == pytest.approx(COST[row])
    assert abs(suggestion.details["predicted"]["val_error"] - TRUE_ERROR[row]) < 0.1
    assert 0 < suggestion.details["deviation"]["val_error"] < 0.3
    assert "inference_seconds" not in suggestion.details["deviation"]


def test_the_posterior_of_a_design_is_what_a_suggestion_of_it_states(history: History[Architecture]) -> None:
    searcher = make()
    suggestion = searcher.ask(history)[0]
    (found,) = searcher.posterior(history, [suggestion.design])
    assert list(found) == ["val_error"]  # the other objective is known
    mean, deviation = found["val_error"]
    assert mean == pytest.approx(suggestion.details["predicted"]["val_error"], rel=1e-9)
    assert deviation == pytest.approx(suggestion.details["deviation"]["val_error"], rel=1e-9)


def test_there_is_no_posterior_before_the_model(history: History[Architecture]) -> None:
    few = History(list(history)[:2])
    assert make().posterior(few, [few[0].design]) == [{}]


def test_results_that_come_back_out_of_order_give_the_same_suggestion(history: History[Architecture]) -> None:
    shuffled = History(sorted(history, key=lambda trial: -trial.number))
    assert make().ask(shuffled) == make().ask(history)


def test_several_are_asked_for_at_once_until_none_is_left() -> None:
    bound = float(np.sort(COST)[2])  # three designs keep it
    searcher = make(bounds=[Bound(SECONDS, bound)])
    kept = {SPACE.design(int(row)) for row in np.flatnonzero(bound >= COST)}
    assert len(searcher.ask(History(), 2)) == 2
    found = searcher.ask(History(), 9)
    assert {suggestion.design for suggestion in found} == kept
    assert len(found) == len(kept)


def test_a_running_design_keeps_the_next_one_away(history: History[Architecture]) -> None:
    searcher = make()
    (first,) = searcher.ask(history)
    (second,) = searcher.ask(history.with_trial(Trial(24, first.design)))
    assert second.design != first.design
    assert second.details["log_ehvi"] < first.details["log_ehvi"]


def test_while_initial_designs_run_further_ones_are_given_and_the_reference_waits() -> None:
    searcher = make(num_initial=4)
    trials = [Trial(i, SPACE.design(i * 7)).complete(result(i * 7), PAIR, 1.0) for i in range(4)]
    trials[2] = Trial(2, SPACE.design(14))
    (suggestion,) = searcher.ask(History(trials))
    assert suggestion.details == {"method": "initial"}
    assert searcher.statement()["reference_point"] is None


def test_a_fit_that_fails_gives_a_random_design_and_says_why(
    history: History[Architecture], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise FitFailure("not positive definite")

    monkeypatch.setattr(models, "choose_warp", broken)
    (suggestion,) = make().ask(history)
    assert suggestion.details["method"] == "random"
    assert suggestion.details["fallback"] == "the surrogate failed: not positive definite"
    assert suggestion.design not in history.attempted()


def test_the_random_design_is_the_first_of_its_order_that_is_free_and_keeps_the_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*arguments: object) -> None:
        raise FitFailure("not positive definite")

    monkeypatch.setattr(models, "choose_warp", broken)
    bound = float(np.median(COST))
    of_seed = [[int(row) for row in random_order(len(SPACE), seed) if COST[row] <= bound] for seed in (0, 1)]
    trials = [
        Trial(number, SPACE.design(row), seeds=(0, 1, 2)).complete(result(row), PAIR, 1.0)
        for number, row in enumerate((of_seed[0][-1], of_seed[0][0]))
    ]
    for seed, count, row in ((0, 1, of_seed[0][0]), (0, 2, of_seed[0][1]), (1, 1, of_seed[1][0])):
        searcher = make(bounds=[Bound(SECONDS, bound)], num_initial=1, seed=seed)
        (suggestion,) = searcher.ask(History(trials[:count]))
        assert (suggestion.details["method"], SPACE.index(suggestion.design)) == ("random", row)


def test_a_bound_that_no_design_keeps_gives_the_nearest_and_says_so() -> None:
    first, second = make(bounds=[Bound(SECONDS, 1e-9)]).ask(History(), 2)
    assert first.details["method"] == "nearest"
    assert first.details["fallback"] == "no design keeps the bounds inference_seconds <= 1e-09; the nearest come first"
    assert COST[SPACE.index(first.design)] == COST.min()
    assert COST[SPACE.index(second.design)] <= np.partition(COST, 1)[1]


def test_a_bound_on_error_turns_the_search_to_designs_that_may_keep_it(history: History[Architecture]) -> None:
    limit = float(np.quantile(TRUE_ERROR, 0.05))
    free, bound = make().ask(history)[0], make(bounds=[Bound(ERROR, limit)]).ask(history)[0]
    assert bound.details["predicted"]["val_error"] <= max(free.details["predicted"]["val_error"], limit + 0.05)
    assert bound.details["log_ehvi"] <= free.details["log_ehvi"] + 1.0


def test_a_bound_may_be_on_a_known_objective_that_is_not_searched() -> None:
    memory = np.arange(float(len(SPACE)))
    searcher = make(
        known={"inference_seconds": COST, "peak_memory_bytes": memory},
        bounds=[Bound(OBJECTIVES["peak_memory_bytes"], 99.0)],
    )
    assert all(SPACE.index(s.design) <= 99 for s in searcher.ask(History(), 20))


def test_two_uncertain_objectives_are_searched_too() -> None:
    searcher = make(known={}, num_initial=6)
    history = searched(searcher, 10)
    (suggestion,) = searcher.ask(history)
    assert set(suggestion.details["deviation"]) == {"val_error", "inference_seconds"}


def test_three_objectives_with_two_known_are_searched_too() -> None:
    triple = (*PAIR, OBJECTIVES["parameters"])
    parameters = 100.0 * (1.0 + CODES[:, 3]) * (1 + 2 * (CODES[:, 2] == 3))
    searcher = EHVISearcher(
        SPACE, triple, known={"inference_seconds": COST, "parameters": parameters}, seed=0, num_initial=6
    )
    history = History[Architecture]()
    for number in range(9):
        (suggestion,) = searcher.ask(history)
        row = SPACE.index(suggestion.design)
        value = Outcome({**result(row).values, "parameters": parameters[row]}, {"val_error": 1e-5})
        history = history.with_trial(Trial(number, suggestion.design).complete(value, triple, 1.0))
    assert suggestion.details["method"] == "ehvi"
    assert suggestion.details["predicted"]["parameters"] == parameters[row]


def test_a_maximised_objective_is_searched_upwards() -> None:
    accuracy = Objective("accuracy", "1", direction="maximise")
    kwargs = {"known": {"inference_seconds": COST}, "seed": 0, "num_initial": 8}
    up = EHVISearcher(SPACE, (accuracy, SECONDS), **kwargs)  # type: ignore[arg-type]
    down = EHVISearcher(SPACE, PAIR, **kwargs)  # type: ignore[arg-type]
    rows = [SPACE.index(s.design) for s in down.ask(History(), 8)]

    def history(objective: Objective, sign: float, offset: float) -> History[Architecture]:
        trials = []
        for number, row in enumerate(rows):
            values = {objective.name: offset + sign * float(TRUE_ERROR[row]), "inference_seconds": float(COST[row])}
            outcome = Outcome(values, {objective.name: 1e-5})
            trials.append(Trial(number, SPACE.design(row)).complete(outcome, (objective, SECONDS), 1.0))
        return History(trials)

    assert up.ask(history(accuracy, -1.0, 1.0))[0].design == down.ask(history(ERROR, 1.0, 0.0))[0].design


def test_all_objectives_known_finds_the_front_then_falls_back() -> None:
    space = SearchSpace.paper(k_pre=[0, 1], message=["mean"], k_trans=[1, 2, 3], k_post=[0])
    first = np.arange(float(len(space)))
    known = {"parameters": first, "macs": first[::-1] + 10.0 * (first % 2)}
    pair = (OBJECTIVES["parameters"], OBJECTIVES["macs"])
    searcher = EHVISearcher(space, pair, known=known, seed=0, num_initial=2)
    history = History[Architecture]()
    said = []
    for number in range(len(space)):
        (suggestion,) = searcher.ask(history)
        row = space.index(suggestion.design)
        said.append((row, suggestion.details))
        values = {name: float(column[row]) for name, column in known.items()}
        history = history.with_trial(Trial(number, suggestion.design).complete(Outcome(values), pair, 1.0))
    late = [details for _, details in said if details["method"] == "random"]
    assert late
    assert all(details["fallback"] == "no design left can improve the hypervolume" for details in late)
    found = {row for row, details in said[2:] if details["method"] == "ehvi"}
    assert found | {row for row, _ in said[:2]} >= {0, 2, 4, 6, 8, 10, 12, 14, 16}


def test_ehvi_beats_random_search_on_average() -> None:
    reference = np.array([-0.6, -1.1 * COST.max()])
    Y = np.column_stack((-TRUE_ERROR, -COST))

    def share(searcher: object, seed: int) -> float:
        rows = [SPACE.index(t.design) for t in searched(searcher, 30, seed)]  # type: ignore[arg-type]
        return hypervolume(Y[rows], reference) / hypervolume(Y, reference)

    model = [share(make(seed=seed), seed) for seed in range(2)]
    chance = [share(RandomSearcher(SPACE, seed=seed), seed) for seed in range(8)]
    assert min(model) > np.mean(chance)
    assert np.mean(model) > 0.97


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        ({"num_initial": 0}, ConfigError, "num_initial must be at least 1, got 0"),
        ({"known": {"inference_seconds": np.ones(3)}}, ShapeError, r"got \(3,\)"),
        ({"known": {"inference_seconds": np.full(len(SPACE), np.inf)}}, ObjectiveError, "known values are finite"),
        (
            {"bounds": [Bound(OBJECTIVES["macs"], 1.0)]},
            ObjectiveError,
            "searched or known, got 'macs'; choose from: val_",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, object], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        make(**settings)


def test_objectives_are_given_each_once() -> None:
    with pytest.raises(ObjectiveError, match="objectives, each once; got val_error, val_error"):
        EHVISearcher(SPACE, (ERROR, ERROR), known={}, seed=0)
    with pytest.raises(ObjectiveError, match="got none"):
        EHVISearcher(SPACE, (), known={}, seed=0)
