import itertools
import warnings
from collections.abc import Iterator

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from engines.search.pareto import non_dominated
from pasca.optuna import EHVISampler
from search_space.errors import SpaceError

SPACE = {
    "kind": CategoricalDistribution(["a", None, True, 2]),
    "depth": IntDistribution(1, 4),
    "rate": FloatDistribution(0.0, 0.5, step=0.1),
}
WIDTH = {"width": IntDistribution(2, 9, log=True)}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def values(kind: object, depth: int, rate: float) -> tuple[float, float]:
    """Quality to maximise and cost to minimise."""
    bonus = {"a": 0.0, "None": 0.6, "True": 0.3, "2": -0.2}[str(kind)]
    return bonus + 1.0 - (depth - 3) ** 2 / 4 - (rate - 0.2) ** 2, depth * (1.0 + rate) + 0.2 * (kind is None)


def objective(trial: optuna.Trial) -> tuple[float, float]:
    kind = trial.suggest_categorical("kind", ["a", None, True, 2])
    return values(kind, trial.suggest_int("depth", 1, 4), trial.suggest_float("rate", 0.0, 0.5, step=0.1))


def designs(study: optuna.Study) -> list[str]:
    return [str(trial.params) for trial in study.trials]


def test_a_study_of_two_objectives_finds_the_front_that_brute_force_finds() -> None:
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=EHVISampler(SPACE, num_initial=10))
    study.optimize(objective, n_trials=34)
    grid = [
        values(kind, depth, 0.1 * step)
        for kind, depth, step in itertools.product(["a", None, True, 2], range(1, 5), range(6))
    ]
    Y = np.array(grid) * [1.0, -1.0]
    wanted = {(round(q, 9), round(-c, 9)) for q, c in Y[non_dominated(Y)]}
    found = {(round(t.values[0], 9), round(t.values[1], 9)) for t in study.best_trials}
    assert found == wanted
    assert len(set(designs(study))) == 34


def test_without_a_stated_space_it_is_what_the_trials_have_in_common() -> None:
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=EHVISampler(num_initial=4))
    study.optimize(objective, n_trials=12)
    assert len(set(designs(study))) == 12


def test_one_objective_is_enough() -> None:
    study = optuna.create_study(direction="maximize", sampler=EHVISampler(SPACE, num_initial=8))
    study.optimize(lambda trial: objective(trial)[0], n_trials=22)
    assert study.best_params == {"kind": None, "depth": 3, "rate": 0.2}


def test_the_study_ends_when_every_combination_was_tried() -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=EHVISampler(WIDTH, num_initial=3))
    study.optimize(lambda trial: (trial.suggest_int("width", 2, 9, log=True), 1.0), n_trials=50)
    assert sorted(trial.params["width"] for trial in study.trials) == list(range(2, 10))


def test_asking_beyond_the_last_combination_says_so() -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=EHVISampler(WIDTH))
    for _ in range(8):
        study.ask(WIDTH)
    with pytest.raises(SpaceError, match="all 8 combinations of width were tried; end the study"):
        study.ask(WIDTH)


def test_running_trials_are_not_suggested_again() -> None:
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=EHVISampler(SPACE, num_initial=5))
    study.optimize(objective, n_trials=8)
    asked = [study.ask() for _ in range(4)]  # their parameters are not recorded yet
    for trial in asked:
        objective(trial)
    assert len(set(designs(study))) == 12


def test_threads_may_share_a_sampler() -> None:
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=EHVISampler(SPACE, num_initial=6))
    study.optimize(objective, n_trials=16, n_jobs=4)
    assert len(set(designs(study))) == 16


def test_failed_repeated_and_foreign_trials_do_no_harm() -> None:
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=EHVISampler(SPACE, num_initial=4))
    study.optimize(objective, n_trials=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.enqueue_trial(study.trials[0].params)
        study.optimize(objective, n_trials=1)
    study.tell(study.ask(), state=optuna.trial.TrialState.FAIL)
    study.add_trial(optuna.create_trial(values=[9.0, 9.0]))
    study.optimize(objective, n_trials=4)
    assert len({str(trial.params) for trial in study.trials[8:]} | set(designs(study)[:5])) == 9


def test_a_continued_study_suggests_what_the_uninterrupted_one_would_have() -> None:
    def run(*parts: int) -> list[str]:
        study = optuna.create_study(directions=["maximize", "minimize"])
        for part in parts:
            study.sampler = EHVISampler(SPACE, num_initial=6)
            study.optimize(objective, n_trials=part)
        return designs(study)

    assert run(14) == run(9, 5)


def test_of_categories_that_optuna_takes_for_one_there_is_one() -> None:
    space = {"kind": CategoricalDistribution([True, 1, "1"])}
    study = optuna.create_study(directions=["minimize"] * 2, sampler=EHVISampler(space))
    assert {repr(study.ask(space).params["kind"]) for _ in range(2)} == {"True", "'1'"}
    with pytest.raises(SpaceError, match="all 2 combinations"):
        study.ask(space)


def test_a_parameter_without_a_list_of_values_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"a list of values, but rate is FloatDistribution\(.*\); give it a step"):
        EHVISampler({"rate": FloatDistribution(0.0, 1.0)})
