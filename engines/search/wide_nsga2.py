"""WideNSGA2Searcher: NSGA-II, as Optuna has it, in a space that is too large to list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from engines.history import History
from engines.objectives import Bound, Floats, Objective
from engines.search.base import Suggestion
from engines.search.nsga2 import by_count_sampler, ranked
from engines.search.observations import observe
from engines.search.wide import InitialDesigns, KnownCosts, Limits, Pool, random_design
from search_space.space import Unlisted

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

D = TypeVar("D")

_MOST_CHILDREN = 64
"""Children looked at for a suggestion; when none of them will do, a design drawn at random takes their place."""


class WideNSGA2Searcher(Generic[D]):
    """Genetic search over the choices of a large space; see `NSGA2Searcher`.

    A child's choices that have no effect are dropped; those that it lacks take their usual values.

    Args:
        space: what to search.
        objectives: the m objectives.
        known: objectives that are known beforehand; for bounds only.
        seed: fixes the order of initial designs and all random numbers.
        population_size: designs of a generation; at least 2 are taken.
        bounds: on objectives of the search or on known ones.
        warm_start: designs that did well elsewhere, tried after the space's starting designs.
    """

    def __init__(
        self,
        space: Unlisted[D],
        objectives: Sequence[Objective],
        *,
        known: KnownCosts[D],
        seed: int,
        population_size: int = 20,
        bounds: Sequence[Bound] = (),
        warm_start: Sequence[D] = (),
    ) -> None:
        space.encode(list(warm_start))
        self._space, self._objectives, self._bounds, self._seed = space, tuple(objectives), tuple(bounds), seed
        self._population_size, self._warm_start = max(population_size, 2), tuple(warm_start)
        self._limits = Limits(known, bounds)
        self._initial = InitialDesigns(space, seed, warm_start)

    def ask(self, history: History[D], count: int = 1) -> list[Suggestion[D]]:
        """Propose designs; see `Searcher.ask`."""
        taken, first = history.attempted(), history.last_number + 1
        found: list[Suggestion[D]] = []
        for number in range(first, first + count):
            if len(taken) >= len(self._space):
                break
            suggestion = self._suggest(history, number, taken)
            if suggestion is None:
                break
            taken.add(suggestion.design)
            found.append(suggestion)
        return found

    def statement(self) -> Mapping[str, Any]:
        """Name, settings, and number of designs of the space."""
        return {
            "searcher": "nsga2",
            "seed": self._seed,
            "population_size": self._population_size,
            "objectives": [objective.name for objective in self._objectives],
            "num_designs": len(self._space),
            "candidates": "children of earlier designs",
            "warm_start": [str(design) for design in self._warm_start],
        }

    def _suggest(self, history: History[D], number: int, taken: set[D]) -> Suggestion[D] | None:
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, 3, number]))
        study = self._study(history)
        if number < self._population_size or len(study.trials) < 2:
            for _, design in zip(range(len(taken) + 512), self._initial, strict=False):
                if design not in taken and self._limits.over([design])[0] == 0.0:
                    return Suggestion(design, {"method": "initial"})
        else:
            study.sampler = by_count_sampler(self._population_size, int(rng.integers(2**31)))
            for _ in range(_MOST_CHILDREN):
                child = self._child(study)
                if child not in taken and self._limits.over([child])[0] == 0.0:
                    return Suggestion(child, {"method": "nsga2"})
        drawn = random_design(self._space, self._limits, taken, rng)
        if drawn is None:
            return None
        reason = f"{_MOST_CHILDREN} children in a row were attempted before or break a bound"
        return Suggestion(drawn[0], {"method": "random" if drawn[1] else "nearest", "fallback": reason})

    def _child(self, study: Study) -> D:
        from optuna.trial import TrialState

        trial = study.ask(self._distributions)
        code = np.array([[trial.params[choice.name] for choice in self._space.choices]], dtype=np.int16)
        study.tell(trial, state=TrialState.FAIL)  # what is no complete trial is in no generation
        return self._space.decode(self._space.settle(code))[0]

    @cached_property
    def _distributions(self) -> dict[str, BaseDistribution]:
        """Positions of values: whole numbers where order counts, else categories."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        found: dict[str, BaseDistribution] = {}
        for choice in self._space.choices:
            last = len(choice.values) - 1
            kinds = CategoricalDistribution(range(last + 1))
            found[choice.name] = kinds if choice.kind == "categorical" else IntDistribution(0, last)
        return found

    def _study(self, history: History[D]) -> Study:
        """A study that holds every observed design in order."""
        import optuna

        pool = Pool(self._space, (trial.design for trial in history.complete))
        observed = observe(history.complete, pool, self._objectives)
        values: Floats = ranked(self._objectives, self._bounds, observed.Y)
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # a study without a name says so
        study = optuna.create_study(directions=["maximize"] * len(self._objectives))
        optuna.logging.set_verbosity(verbosity)
        codes = pool.codes() if len(pool) else np.empty((0, 0), np.int16)
        for row, gains in zip(observed.rows.tolist(), values.tolist(), strict=True):
            # A choice that is switched off keeps its first value, which a child may inherit.
            code = dict(zip((c.name for c in self._space.choices), codes[row].clip(0).tolist(), strict=True))
            study.add_trial(optuna.create_trial(values=gains, params=code, distributions=self._distributions))
        return study
