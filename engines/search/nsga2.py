"""NSGA2Searcher: the evolutionary baseline, NSGA-II as Optuna has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.history import History
from engines.objectives import Bound, Floats, Objective
from engines.search.base import Suggestion
from engines.search.candidates import (
    InitialOrder,
    checked_known,
    excess,
    find_rows,
    permitted,
    random_order,
    switch_off,
)
from engines.search.observations import observe
from search_space.space import Space

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

D = TypeVar("D")

_MOST_CHILDREN = 64
"""Children looked at for a suggestion; when all of them were attempted, a design drawn at random takes their place."""

INFEASIBLE = -1e100
"""Gain of a design that breaks a bound, times 1 plus how far: below every other, and ranked by how far it is."""


class NSGA2Searcher(Generic[D]):
    """Genetic search: children of the designs that survived so far, by crossover and mutation of their choices.

    The first `population_size` suggestions are the space's starting designs, then a quasi-random sequence. After that
    the complete trials, in the order of their numbers and `population_size` at a time, are the generations. Each
    suggestion draws its random numbers from the seed and the number of trials before it.

    A bound on a known objective cuts the space, as for `EHVISearcher`; a design that breaks another bound ranks below
    all that keep it.

    Args:
        space: what to search.
        objectives: the m objectives.
        known: measured values, shape (len(space),), of objectives that are known for all designs; for bounds only.
        seed: fixes the order of initial designs and all random numbers.
        population_size: designs of a generation; at least 2 are taken.
        bounds: on objectives of the search or on anything in `known`.
        warm_start: designs that did well elsewhere, tried after the space's starting designs.
    Raises:
        SpaceError: a design to start with is not in the space.
        ShapeError, ObjectiveError: known values do not fit the space or are not finite.
    Source: Deb, Pratap, Agarwal & Meyarivan 2002.
    """

    def __init__(
        self,
        space: Space[D],
        objectives: Sequence[Objective],
        *,
        seed: int,
        known: Mapping[str, Floats] | None = None,
        population_size: int = 20,
        bounds: Sequence[Bound] = (),
        warm_start: Sequence[D] = (),
    ) -> None:
        self._space, self._objectives, self._bounds, self._seed = space, tuple(objectives), tuple(bounds), seed
        self._population_size = max(population_size, 2)
        over = excess(bounds, checked_known(space, known or {}), len(space))
        self._bounds_ignored = bool(len(over) and over.min() > 0.0)
        self._permitted = permitted(over)
        self._codes = space.codes()
        self._warm_rows = {space.index(design) for design in warm_start}
        self._initial = InitialOrder(space, seed, warm_start)
        self._told: list[tuple[int, tuple[float, ...]]] = []
        self._study: Study | None = None

    def ask(self, history: History[D], count: int = 1) -> list[Suggestion[D]]:
        """Propose designs; see `Searcher.ask`."""
        free = np.zeros(len(self._space), dtype=bool)
        free[self._permitted] = True
        free[[self._space.index(design) for design in history.attempted()]] = False
        first = history.last_number + 1
        found: list[Suggestion[D]] = []
        for number in range(first, first + count):
            if not free.any():
                break
            row, details = self._suggest(history, number, free)
            free[row] = False
            found.append(Suggestion(self._space.design(row), details))
        return found

    def statement(self) -> Mapping[str, Any]:
        """Name, settings, and number of designs that may be proposed."""
        return {
            "searcher": "nsga2",
            "seed": self._seed,
            "population_size": self._population_size,
            "objectives": [objective.name for objective in self._objectives],
            "num_designs": int(self._permitted.size),
            "warm_start": [str(self._space.design(row)) for row in sorted(self._warm_rows)],
            "bounds_ignored": self._bounds_ignored,
        }

    def _suggest(self, history: History[D], number: int, free: NDArray[np.bool_]) -> tuple[int, dict[str, Any]]:
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, 3, number]))
        study = self._caught_up(history)
        if number < self._population_size or len(self._told) < 2:
            row = next(row for row in self._initial if free[row])
            return row, {"method": "initial", **({"warm_start": True} if row in self._warm_rows else {})}
        study.sampler = by_count_sampler(self._population_size, int(rng.integers(2**31)))
        for _ in range(_MOST_CHILDREN):
            row = self._child(study)
            if row >= 0 and free[row]:
                return row, {"method": "nsga2"}
        order = random_order(len(self._space), int(rng.integers(2**31)))
        reason = f"{_MOST_CHILDREN} children in a row were attempted before or are no designs"
        return int(order[np.argmax(free[order])]), {"method": "random", "fallback": reason}

    def _child(self, study: Study) -> int:
        """Row of a child, -1 where it is no design of the space."""
        from optuna.trial import TrialState

        trial = study.ask(self._distributions)
        code = np.array([[trial.params.get(choice.name, -1) for choice in self._space.choices]], dtype=np.int16)
        study.tell(trial, state=TrialState.FAIL)  # what is no complete trial is in no generation
        switch_off(code, self._space.choices)
        return int(find_rows(self._codes, self._space.choices, code)[0])

    @cached_property
    def _distributions(self) -> dict[str, BaseDistribution]:
        """Positions of values: whole numbers where order counts, else categories."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        found: dict[str, BaseDistribution] = {}
        for choice in self._space.choices:
            last = len(choice.values) - 1
            if last >= 0:
                kinds = CategoricalDistribution(range(last + 1))
                found[choice.name] = kinds if choice.kind == "categorical" else IntDistribution(0, last)
        return found

    def _caught_up(self, history: History[D]) -> Study:
        """A study that holds every observed design in order; the last one where it needs only to grow."""
        import optuna

        observed = observe(history.complete, self._space, self._objectives)
        values = [tuple(row) for row in ranked(self._objectives, self._bounds, observed.Y).tolist()]
        wanted = list(zip(observed.rows.tolist(), values, strict=True))
        if self._study is None or wanted[: len(self._told)] != self._told:
            verbosity = optuna.logging.get_verbosity()
            optuna.logging.set_verbosity(optuna.logging.ERROR)  # a study without a name says so
            self._study = optuna.create_study(directions=["maximize"] * len(self._objectives))
            optuna.logging.set_verbosity(verbosity)
            self._told = []
        for row, gains in wanted[len(self._told) :]:
            # A choice that is switched off keeps its first value, which a child may inherit.
            code = dict(zip((c.name for c in self._space.choices), self._codes[row].clip(0).tolist(), strict=True))
            self._study.add_trial(
                optuna.create_trial(
                    values=gains,
                    params={name: code[name] for name in self._distributions},
                    distributions=self._distributions,
                )
            )
        self._told = wanted
        return self._study


def ranked(objectives: Sequence[Objective], bounds: Sequence[Bound], Y: Floats) -> Floats:
    """Gains (n, m) that NSGA-II ranks: those of designs that break a bound are replaced."""
    names = [objective.name for objective in objectives]
    beyond = np.zeros(len(Y))
    for bound in bounds:
        if bound.objective.name in names:
            measured = bound.objective.measured(Y[:, names.index(bound.objective.name)])
            beyond += np.maximum(measured - bound.at_most, 0.0) / (abs(bound.at_most) or 1.0)
    replaced: Floats = np.where(beyond[:, None] > 0.0, INFEASIBLE * (1.0 + beyond[:, None]), Y)
    return replaced


def by_count_sampler(population_size: int, seed: int) -> Any:
    """Optuna's sampler, with generations counted by complete trials instead of read from marks that asking leaves."""
    from optuna.samplers import NSGAIISampler
    from optuna.trial import TrialState

    class ByCount(NSGAIISampler):
        def get_trial_generation(self, study: Any, trial: Any) -> int:
            return len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))) // population_size

        def get_population(self, study: Any, generation: int) -> list[Any]:
            complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            found: list[Any] = complete[generation * population_size : (generation + 1) * population_size]
            return found

    return ByCount(population_size=population_size, seed=seed)
