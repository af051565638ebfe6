"""EHVISearcher: the design with the largest expected hypervolume improvement over the whole space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.history import History
from engines.objectives import Bound, Floats, Objective
from engines.search.aims import Aims
from engines.search.argmax import Best, Predictions, best_design
from engines.search.base import Suggestion
from engines.search.candidates import (
    InitialOrder,
    checked_known,
    excess,
    permitted,
    random_order,
)
from engines.search.fitting import FitFailure
from engines.search.models import Models
from engines.search.observations import Observations, initial_trials, observe
from engines.search.reference import extents, reference_point
from engines.search.surrogate import Posterior, prepare
from engines.search.warping import IDENTITY, Warp
from engines.trial import Trial
from search_space.errors import ConfigError
from search_space.space import Space

D = TypeVar("D")

_MOST_FITTED = 400
"""Observations used to fit hyperparameters at most; all observations inform the predictions."""


class EHVISearcher(Generic[D]):
    """Bayesian multi-objective search of a finite space.

    The first `num_initial` suggestions are the space's starting designs, then a quasi-random sequence. After that each
    objective without known values gets a Gaussian process, and the suggestion is the design with the largest expected
    hypervolume improvement among all that were not attempted. An objective with a long tail of bad values is modelled,
    and its part of the volume counted, with that tail drawn in (`warping.py`). Running designs count as observed at
    their predicted values; so do earlier suggestions of the same call.

    A bound on a known objective cuts the space; when every design breaks one, the nearest designs are suggested, and
    `details["fallback"]` says so. A bound on another objective weighs EHVI by the probability of keeping it.

    Args:
        space: what to search.
        objectives: the m objectives.
        known: measured values, shape (len(space),), of every objective that is known for all designs beforehand.
        seed: fixes the initial designs and the fallback; nothing else is random.
        num_initial: trials before the model is used, at least 1.
        bounds: on objectives of the search or on anything in `known`.
        warm_start: designs that did well elsewhere, tried after the space's starting designs. Only what they measure
            here informs the model.
    Raises:
        SpaceError: a design to start with is not in the space.
        ConfigError: `num_initial` is below 1.
        ObjectiveError: there is no objective, one is repeated, known values are not finite, or a bound is on an
            objective that is neither searched nor known.
        ShapeError: known values have another length than the space.
    """

    def __init__(
        self,
        space: Space[D],
        objectives: Sequence[Objective],
        *,
        known: Mapping[str, Floats],
        seed: int,
        num_initial: int = 16,
        bounds: Sequence[Bound] = (),
        warm_start: Sequence[D] = (),
    ) -> None:
        if num_initial < 1:
            raise ConfigError(f"num_initial must be at least 1, got {num_initial}")
        checked = checked_known(space, known)
        self._aims = Aims(objectives, checked, bounds)
        self._space, self._seed, self._num_initial = space, seed, num_initial
        over = excess(bounds, checked, len(space))
        self._permitted = permitted(over)
        self._none_keeps = bool(over[self._permitted[0]] > 0.0)
        self._means = np.zeros((len(space), len(objectives)))
        for j, objective in enumerate(objectives):
            if not self._aims.uncertain[j]:
                self._means[:, j] = objective.gains(checked[objective.name])
        self._whole = prepare(space)
        self._models = Models(self._whole.kernel, _MOST_FITTED)
        self._extents = extents(checked, bounds)
        self._initial = InitialOrder(space, seed, warm_start)
        self._warm_rows = {space.index(design) for design in warm_start}
        self._reference: Floats | None = None
        self._posteriors: dict[int, Posterior] = {}

    def ask(self, history: History[D], count: int = 1) -> list[Suggestion[D]]:
        """Propose designs; see `Searcher.ask`. Suggestions of one call take each other for running."""
        found: list[Suggestion[D]] = []
        while len(found) < count:
            suggestion = self._suggest(history)
            if suggestion is None:
                break
            found.append(suggestion)
            if len(found) < count:
                history = history.with_trial(Trial(number=history.last_number + 1, design=suggestion.design))
        return found

    def statement(self) -> Mapping[str, Any]:
        """Name, settings, and the reference point in measured values (None until the first suggestion by EHVI)."""
        return {
            "searcher": "ehvi",
            "seed": self._seed,
            "num_initial": self._num_initial,
            **self._aims.statement(),
            "num_designs": len(self._space),
            "warm_start": [str(self._space.design(row)) for row in sorted(self._warm_rows)],
            "reference_point": None if self._reference is None else self._aims.measured(self._reference),
        }

    def posterior(self, history: History[D], designs: Sequence[D]) -> list[dict[str, tuple[float, float]]]:
        """What the model makes of designs: mean and standard deviation of the true value, in measured units.

        Returns:
            A mapping for each design, from the names of objectives without known values; empty ones while the initial
            trials are not all finished, or where the surrogate fails.
        """
        found: list[dict[str, tuple[float, float]]] = [{} for _ in designs]
        if initial_trials(history, self._num_initial) is None:
            return found
        rows = np.array([self._space.index(design) for design in designs], dtype=np.int64)
        observed = observe(list(history), self._space, self._aims.objectives)
        for j in map(int, np.flatnonzero(self._aims.uncertain)):
            try:
                warp, posterior = self._posterior(j, observed, np.empty(0, dtype=np.int64))
            except FitFailure:
                return [{} for _ in designs]
            believed = self._aims.believed(j, warp, posterior.means[rows], posterior.deviations(rows))
            for values, pair in zip(found, believed, strict=True):
                values[self._aims.objectives[j].name] = pair
        return found

    def _suggest(self, history: History[D]) -> Suggestion[D] | None:
        taken = np.zeros(len(self._space), dtype=bool)
        taken[[self._space.index(design) for design in history.attempted()]] = True
        free = self._permitted[~taken[self._permitted]]
        if not free.size:
            return None
        if self._none_keeps:
            limits = ", ".join(f"{bound.objective.name} <= {bound.at_most:g}" for bound in self._aims.bounds)
            return Suggestion(
                self._space.design(int(free[0])),
                {"method": "nearest", "fallback": f"no design keeps the bounds {limits}; the nearest come first"},
            )
        if initial_trials(history, self._num_initial) is None:
            allowed = np.zeros(len(self._space), dtype=bool)
            allowed[free] = True
            row = next(row for row in self._initial if allowed[row])
            details = {"method": "initial", **({"warm_start": True} if row in self._warm_rows else {})}
            return Suggestion(self._space.design(row), details)
        stated = reference_point(history, self._aims.objectives, self._extents, self._num_initial)
        assert stated is not None  # one of the initial trials holds values
        self._reference = self._aims.gains(stated)
        try:
            best = self._best(history, free, self._reference)
        except FitFailure as failure:
            return self._random(free, f"the surrogate failed: {failure}")
        if best is None:
            return self._random(free, "no design left can improve the hypervolume")
        return Suggestion(
            self._space.design(best.row),
            {
                "method": "ehvi",
                "log_ehvi": best.log_value,
                "predicted": self._aims.measured(best.mean),
                "deviation": {
                    o.name: float(best.deviation[j])
                    for j, o in enumerate(self._aims.objectives)
                    if self._aims.uncertain[j]
                },
            },
        )

    def _random(self, free: NDArray[np.int64], reason: str) -> Suggestion[D]:
        """The first design of a random order that is free."""
        place_of = np.argsort(random_order(len(self._space), self._seed))
        row = int(free[np.argmin(place_of[free])])
        return Suggestion(self._space.design(row), {"method": "random", "fallback": reason})

    def _best(self, history: History[D], free: NDArray[np.int64], reference: Floats) -> Best | None:
        observed = observe(list(history), self._space, self._aims.objectives)
        pending = np.array([self._space.index(trial.design) for trial in history.running], dtype=np.int64)
        means = self._means.copy()
        largest = np.zeros_like(means)
        at_observed = self._means[observed.rows]
        at_least, worst = self._aims.at_least.copy(), reference.copy()
        warps = [IDENTITY] * len(self._aims.objectives)
        deviations = []
        for j in np.flatnonzero(self._aims.uncertain):
            warps[j], posterior = self._posterior(int(j), observed, pending)
            means[:, j] = posterior.means
            largest[:, j] = posterior.largest_deviations
            at_observed[:, j] = posterior.observed_means
            at_least[j], worst[j] = warps[j](at_least[j]), warps[j](worst[j])
            deviations.append(posterior.deviations)
        front = np.concatenate((at_observed[observed.complete], means[pending]))
        front = front[(front >= at_least).all(axis=1)]
        predictions = Predictions(means, self._aims.uncertain, largest, deviations, at_least)
        best = best_design(predictions, np.sort(free), front, worst)
        return None if best is None else best.unwarped(warps)

    def _posterior(self, j: int, observed: Observations, pending: NDArray[np.int64]) -> tuple[Warp, Posterior]:
        """The posterior of objective j on a warped scale.

        What was computed for a shorter history is used again, and changes nothing.
        """
        X = self._whole.features[observed.rows]
        model = self._models.of(j, X, observed)
        posterior = Posterior(
            self._whole,
            model.found,
            X,
            model.y,
            model.noise,
            self._whole.features[pending],
            start=model.start,
            earlier=self._posteriors.get(j),
        )
        self._posteriors[j] = posterior
        return model.warp, posterior
