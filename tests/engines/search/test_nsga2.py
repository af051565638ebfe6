import numpy as np

from engines.history import History
from engines.objectives import Bound, Objective
from engines.search.nsga2 import NSGA2Searcher
from engines.search.pareto import hypervolume
from engines.search.random_search import RandomSearcher
from engines.trial import Outcome, Trial
from search_space.product import Design, ProductSpace
from search_space.space import SearchSpace

PAIR = (Objective("val_error", "1"), Objective("seconds", "s"))
SPACE = ProductSpace({"a": range(12), "b": range(12), "kind": ["x", "y", "z"], "c": range(6)})


def outcome(design: Design) -> Outcome:
    """Two bowls with different centres: the front is made of what lies between them."""
    penalty = {"x": 0.0, "y": 0.3, "z": 0.6}[design.kind] + 0.1 * design.c
    return Outcome(
        {
            "val_error": ((design.a - 2) ** 2 + (design.b - 9) ** 2) / 100 + penalty,
            "seconds": ((design.a - 8) ** 2 + (design.b - 3) ** 2) / 100 + penalty,
        }
    )


def search(searcher: object, count: int) -> History[Design]:
    history = History[Design]()
    for number in range(count):
        (suggestion,) = searcher.ask(history)  # type: ignore[attr-defined]
        trial = Trial(number, suggestion.design, details={"suggestion": suggestion.details})
        history = history.with_trial(trial.complete(outcome(suggestion.design), PAIR, 1.0))
    return history


def volume(history: History[Design]) -> float:
    return hypervolume(-np.array([list(trial.values.values()) for trial in history]), np.array([-3.0, -3.0]))


def test_children_follow_the_first_generation() -> None:
    methods = [t.details["suggestion"]["method"] for t in search(NSGA2Searcher(SPACE, PAIR, seed=0), 40)]
    assert methods[:20] == ["initial"] * 20
    assert methods[20:] == ["nsga2"] * 20


def test_it_finds_more_than_random_search() -> None:
    ours = [volume(search(NSGA2Searcher(SPACE, PAIR, seed=seed), 100)) for seed in range(2)]
    theirs = [volume(search(RandomSearcher(SPACE, seed=seed), 100)) for seed in range(2)]
    assert np.mean(ours) > np.mean(theirs) + 0.1


def test_what_it_remembers_changes_nothing() -> None:
    history = search(NSGA2Searcher(SPACE, PAIR, seed=1, population_size=8), 40)
    searcher = NSGA2Searcher(SPACE, PAIR, seed=1, population_size=8)
    trials = list(history)
    for count in (40, 13, 27):  # back and forth: a shorter history is no continuation of a longer one
        fresh = NSGA2Searcher(SPACE, PAIR, seed=1, population_size=8)
        assert searcher.ask(History(trials[:count]), 3) == fresh.ask(History(trials[:count]), 3)


def test_a_design_beyond_a_bound_ranks_below_one_that_keeps_it() -> None:
    bound = Bound(PAIR[1], 0.2)
    bounded = search(NSGA2Searcher(SPACE, PAIR, seed=0, bounds=[bound], population_size=10), 100)
    free = search(NSGA2Searcher(SPACE, PAIR, seed=0, population_size=10), 100)
    kept = [sum(bound.allows(trial.values["seconds"]) for trial in history) for history in (bounded, free)]
    assert kept[0] > 1.5 * kept[1]


def test_choices_that_are_switched_off_stay_off() -> None:
    space = SearchSpace.paper(k_pre=[0, 1, 2], k_trans=[1, 2], k_post=[0, 1])
    history = History()  # type: ignore[var-annotated]
    searcher = NSGA2Searcher(space, PAIR, seed=0, population_size=6)
    for number in range(40):
        (suggestion,) = searcher.ask(history)
        assert suggestion.design in space
        row = space.index(suggestion.design)
        value = Outcome({"val_error": 1.0 / (1 + row % 17), "seconds": float(row)})
        history = history.with_trial(Trial(number, suggestion.design).complete(value, PAIR, 1.0))
    assert len(history.attempted()) == 40


def test_when_all_children_are_known_a_design_is_drawn_and_the_reason_recorded() -> None:
    space = ProductSpace({"a": range(3000)})
    value = Outcome({"val_error": 1.0, "seconds": 1.0})
    tried = [Trial(row, space.design(row)).complete(value, PAIR, 1.0) for row in range(len(space) - 1)]
    (suggestion,) = NSGA2Searcher(space, PAIR, seed=0, population_size=1500).ask(History(tried))
    assert suggestion.design == space.design(len(space) - 1)
    assert suggestion.details["method"] == "random"
    assert "64 children in a row" in suggestion.details["fallback"]


def test_optunas_logging_is_left_as_it_was() -> None:
    import optuna

    before = optuna.logging.get_verbosity()
    search(NSGA2Searcher(SPACE, PAIR, seed=0, population_size=4), 6)
    assert optuna.logging.get_verbosity() == before


def test_a_population_has_two_designs_or_more() -> None:
    assert NSGA2Searcher(SPACE, PAIR, seed=0, population_size=1).statement()["population_size"] == 2
