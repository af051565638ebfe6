"""The search engine as a sampler of Optuna: `optuna.create_study(sampler=pasca.optuna.EHVISampler(...))`.

For spaces in which every parameter has a list of values: categorical, whole numbers, and real numbers with a step.
Importing this module imports Optuna.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from engines.history import History
from engines.objectives import Objective
from engines.search.ehvi import EHVISearcher
from engines.trial import Outcome, Trial
from search_space.errors import SpaceError
from search_space.product import Design, ProductSpace

_logger = logging.getLogger(__name__)


class EHVISampler(BaseSampler):
    """Suggests the parameters with the largest expected hypervolume improvement among all that were not tried.

    For one objective that is the expected improvement. No combination of values is suggested twice; once all were
    tried, `Study.optimize` ends. Suggestions are a function of the seed and of the trials that the study holds, those
    that run included; several threads may share a sampler.

    Args:
        search_space: distribution of every parameter. Left out, it is what the finished trials have in common, and
            the first trial is drawn at random.
        seed: fixes the initial trials.
        num_initial: trials before the model is used.
    Raises:
        SpaceError: a parameter has infinitely many values, or the space has over a million combinations.
    """

    def __init__(
        self,
        search_space: Mapping[str, BaseDistribution] | None = None,
        *,
        seed: int = 0,
        num_initial: int = 16,
    ) -> None:
        self._given = None if search_space is None else dict(search_space)
        self._seed, self._num_initial = seed, num_initial
        self._common = IntersectionSearchSpace()
        self._random = RandomSampler(seed=seed)
        self._lock = threading.Lock()
        self._engine: _Engine | None = None
        if self._given is not None:
            _values_of(self._given)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The space that was given, or what the finished trials have in common."""
        return dict(self._given if self._given is not None else self._common.calculate(study))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values for the parameters of the search space.

        Raises:
            SpaceError: all combinations were tried, and no call of `Study.optimize` is there to be ended.
        """
        if not search_space:
            return {}
        with self._lock:
            engine = self._engine_for(study, search_space)
            suggestions = engine.searcher.ask(engine.history(study, trial.number))
            if suggestions:
                engine.handed_out[trial.number] = suggestions[0].design
                return engine.parameters(suggestions[0].design)
        said = f"all {len(engine.space)} combinations of {', '.join(search_space)} were tried"
        try:
            study.stop()
        except RuntimeError:
            raise SpaceError(f"{said}; end the study, or widen its space") from None
        _logger.warning("%s; the study ends, and this trial repeats one", said)
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value for a parameter outside the search space."""
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """New random numbers for what is drawn at random; suggestions by the model have none."""
        self._random.reseed_rng()

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """End `Study.optimize` when this was the last combination."""
        engine = self._engine
        if engine is None:
            return
        with self._lock:
            left = len(engine.space) - len(engine.history(study, None).attempted())
        if left == 0:
            with contextlib.suppress(RuntimeError):  # trials that are asked for one by one have no loop to end
                study.stop()

    def _engine_for(self, study: Study, search_space: Mapping[str, BaseDistribution]) -> _Engine:
        key = (tuple(sorted(search_space.items(), key=lambda item: item[0])), tuple(study.directions))
        if self._engine is None or self._engine.key != key:
            values = _values_of(search_space)
            space = ProductSpace({f"p{i}": _scale(search_space[name], values[name]) for i, name in enumerate(values)})
            objectives = tuple(
                Objective(f"objective_{i}", "1", "maximise" if way is StudyDirection.MAXIMIZE else "minimise")
                for i, way in enumerate(study.directions)
            )
            searcher = EHVISearcher(space, objectives, known={}, seed=self._seed, num_initial=self._num_initial)
            self._engine = _Engine(key, values, space, objectives, searcher, {})
        return self._engine


@dataclass(frozen=True)
class _Engine:
    """A searcher for one search space, and how its designs are written as parameters.

    Attributes:
        key: what it was made for.
        values: of each parameter, in the order of the choices of the space.
        handed_out: designs of trials whose parameters may not be recorded yet.
    """

    key: Any
    values: Mapping[str, tuple[Any, ...]]
    space: ProductSpace
    objectives: tuple[Objective, ...]
    searcher: EHVISearcher[Design]
    handed_out: dict[int, Design]

    def parameters(self, design: Design) -> dict[str, Any]:
        code = self.space.encode([design])[0]
        return {name: values[int(at)] for (name, values), at in zip(self.values.items(), code, strict=True)}

    def design(self, trial: FrozenTrial) -> Design | None:
        """The design of a trial, None where it has other parameters or values."""
        items = []
        for choice, (name, values) in zip(self.space.choices, self.values.items(), strict=True):
            if name not in trial.params:
                return self.handed_out.get(trial.number)
            place = _place(values, trial.params[name])
            if place is None:
                return None
            items.append((choice.name, choice.values[place]))
        return Design(tuple(items))

    def history(self, study: Study, asking: int | None) -> History[Design]:
        """What the study knows of designs of the space, without the trial that is being asked for."""
        first: dict[Design, int] = {}
        trials: list[Trial[Design]] = []
        for found in study.get_trials(deepcopy=False):
            design = None if found.number == asking else self.design(found)
            if design is None:
                continue
            trial = Trial(found.number, design, repeats_of=first.get(design))
            if found.state is TrialState.COMPLETE:
                values = {o.name: value for o, value in zip(self.objectives, found.values, strict=True)}
                trial = trial.complete(Outcome(values), self.objectives, 0.0)
            elif found.state.is_finished():
                trial = trial.fail(f"the trial ended as {found.state.name.lower()}")
            if trial.values:
                first.setdefault(design, found.number)
            trials.append(trial)
        return History(trials)


def _values_of(search_space: Mapping[str, BaseDistribution]) -> dict[str, tuple[Any, ...]]:
    """The values of each parameter, in ascending order where they have one."""
    return {name: _listed(name, search_space[name]) for name in sorted(search_space)}


def _listed(name: str, distribution: BaseDistribution) -> tuple[Any, ...]:
    if isinstance(distribution, CategoricalDistribution):
        # Of values that are equal, such as 1 and True, Optuna takes the first whichever is meant.
        return tuple(v for i, v in enumerate(distribution.choices) if distribution.to_internal_repr(v) == i)
    if isinstance(distribution, IntDistribution):
        return tuple(range(distribution.low, distribution.high + 1, distribution.step))
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        count = round((distribution.high - distribution.low) / distribution.step) + 1
        return tuple(min(distribution.low + i * distribution.step, distribution.high) for i in range(count))
    raise SpaceError(
        f"this sampler needs parameters with a list of values, but {name} is {distribution}; give it a step"
    )


def _scale(distribution: BaseDistribution, values: tuple[Any, ...]) -> list[Any]:
    """Values as the engine compares them: names of categories, numbers, or logarithms of numbers."""
    if isinstance(distribution, CategoricalDistribution):
        return [f"category {i}" for i in range(len(values))]
    logarithmic = isinstance(distribution, IntDistribution) and distribution.log
    return [math.log(value) if logarithmic else float(value) for value in values]


def _place(values: tuple[Any, ...], value: Any) -> int | None:
    """Position of a value; a real number may be off by rounding."""
    for place, own in enumerate(values):
        if own is value or own == value:
            return place
        if isinstance(own, float) and isinstance(value, float) and math.isclose(own, value, abs_tol=1e-12):
            return place
    return None
