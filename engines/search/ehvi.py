"""EHVISearcher: the design with the largest expected hypervolume improvement over the whole space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.history import History
from engines.objectives import Bound, Floats, Objective
from engines.search.argmax import Best, Predictions, best_design
from engines.search.base import Suggestion
from engines.search.candidates import (
    InitialOrder,
    checked_known,
    excess,
    permitted,
    random_order,
)
from engines.search.fitting import FitFailure, Hyperparameters, fit
from engines.search.noise import pooled_variances
from engines.search.observations import Observations, initial_trials, observe
from engines.search.reference import extents, reference_point
from engines.search.surrogate import Posterior, prepare
from engines.search.warping import IDENTITY, Warp, choose_warp
from engines.trial import Trial
from search_space.errors import ConfigError, ObjectiveError
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
        names = [objective.name for objective in objectives]
        if not names or len(set(names)) < len(names):
            raise ObjectiveError(f"a search needs objectives, each once; got {', '.join(names) or 'none'}")
        if num_initial < 1:
            raise ConfigError(f"num_initial must be at least 1, got {num_initial}")
        checked = checked_known(space, known)
        for bound in bounds:
            if bound.objective.name not in (*names, *checked):
                raise ObjectiveError(
                    f"a bound needs an objective that is searched or known, got {bound.objective.name!r}; "
                    f"choose from: {', '.join(dict.fromkeys((*names, *checked)))}"
                )
        self._space, self._objectives, self._bounds = space, tuple(objectives), tuple(bounds)
        self._seed, self._num_initial = seed, num_initial
        over = excess(bounds, checked, len(space))
        self._permitted = permitted(over)
        self._none_keeps = bool(over[self._permitted[0]] > 0.0)
        self._uncertain = np.array([name not in checked for name in names])
        self._means = np.zeros((len(space), len(names)))
        for j, objective in enumerate(objectives):
            if not self._uncertain[j]:
                self._means[:, j] = objective.gains(checked[objective.name])
        self._at_least = np.full(len(names), -np.inf)
        for bound in bounds:
            if bound.objective.name in names:
                # A bound is a largest measured value: a least gain where small is good. parse_bound makes no others.
                j = names.index(bound.objective.name)
                self._at_least[j] = max(self._at_least[j], float(bound.objective.gains(np.float64(bound.at_most))))  # type: ignore[arg-type]
        self._whole = prepare(space)
        self._extents = extents(checked, bounds)
        self._initial = InitialOrder(space, seed, warm_start)
        self._warm_rows = {space.index(design) for design in warm_start}
        self._reference: Floats | None = None
        self._warps: dict[bytes, Warp] = {}
        self._fits: dict[bytes, Hyperparameters] = {}
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
            "objectives": [objective.name for objective in self._objectives],
            "known": [o.name for o, uncertain in zip(self._objectives, self._uncertain, strict=True) if not uncertain],
            "bounds": {bound.objective.name: bound.at_most for bound in self._bounds},
            "num_designs": len(self._space),
            "warm_start": [str(self._space.design(row)) for row in sorted(self._warm_rows)],
            "reference_point": None if self._reference is None else self._measured(self._reference),
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
        observed = observe(list(history), self._space, self._objectives)
        for j in map(int, np.flatnonzero(self._uncertain)):
            objective = self._objectives[j]
            try:
                warp, posterior = self._posterior(j, observed, np.empty(0, dtype=np.int64))
            except FitFailure:
                return [{} for _ in designs]
            for values, mean, deviation in zip(found, posterior.means[rows], posterior.deviations(rows), strict=True):
                gain = np.float64(warp.inverse(mean))
                values[objective.name] = (
                    float(objective.measured(gain)),  # type: ignore[arg-type]
                    float(deviation / warp.slope(gain)),  # type: ignore[arg-type]
                )
        return found

    def _suggest(self, history: History[D]) -> Suggestion[D] | None:
        taken = np.zeros(len(self._space), dtype=bool)
        taken[[self._space.index(design) for design in history.attempted()]] = True
        free = self._permitted[~taken[self._permitted]]
        if not free.size:
            return None
        if self._none_keeps:
            limits = ", ".join(f"{bound.objective.name} <= {bound.at_most:g}" for bound in self._bounds)
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
        stated = reference_point(history, self._objectives, self._extents, self._num_initial)
        assert stated is not None  # one of the initial trials holds values
        self._reference = np.array([float(o.gains(np.asarray(stated[o.name]))) for o in self._objectives])
        try:
            best = self._best(history, free, self._reference)
        except FitFailure as failure:
            return self._random(taken, f"the surrogate failed: {failure}")
        if best is None:
            return self._random(taken, "no design left can improve the hypervolume")
        return Suggestion(
            self._space.design(best.row),
            {
                "method": "ehvi",
                "log_ehvi": best.log_value,
                "predicted": self._measured(best.mean),
                "deviation": {
                    o.name: float(best.deviation[j]) for j, o in enumerate(self._objectives) if self._uncertain[j]
                },
            },
        )

    def _random(self, taken: NDArray[np.bool_], reason: str) -> Suggestion[D]:
        allowed = np.zeros(len(self._space), dtype=bool)
        allowed[self._permitted] = True
        order = random_order(len(self._space), self._seed)
        row = int(order[np.argmax((allowed & ~taken)[order])])
        return Suggestion(self._space.design(row), {"method": "random", "fallback": reason})

    def _best(self, history: History[D], free: NDArray[np.int64], reference: Floats) -> Best | None:
        observed = observe(list(history), self._space, self._objectives)
        pending = np.array([self._space.index(trial.design) for trial in history.running], dtype=np.int64)
        means = self._means.copy()
        largest = np.zeros_like(means)
        at_observed = self._means[observed.rows]
        at_least, worst = self._at_least.copy(), reference.copy()
        warps = [IDENTITY] * len(self._objectives)
        deviations = []
        for j in np.flatnonzero(self._uncertain):
            warps[j], posterior = self._posterior(int(j), observed, pending)
            means[:, j] = posterior.means
            largest[:, j] = posterior.largest_deviations
            at_observed[:, j] = posterior.observed_means
            at_least[j], worst[j] = warps[j](at_least[j]), warps[j](worst[j])
            deviations.append(posterior.deviations)
        front = np.concatenate((at_observed[observed.complete], means[pending]))
        front = front[(front >= at_least).all(axis=1)]
        predictions = Predictions(means, self._uncertain, largest, deviations, at_least)
        best = best_design(predictions, np.sort(free), front, worst)
        return None if best is None else _unwarped(best, warps)

    def _posterior(self, j: int, observed: Observations, pending: NDArray[np.int64]) -> tuple[Warp, Posterior]:
        """The posterior of objective j on a warped scale.

        What was computed for a shorter history is used again, and changes nothing.
        """
        size = fit_size(len(observed))
        X, y = self._whole.features[observed.rows], observed.Y[:, j]
        few = min(warp_size(len(observed)), size)
        noise = pooled_variances(observed.variances[:, j], observed.num_seeds, few)
        warp = self._warp(X[:few], y[:few], noise[:few])
        noise = pooled_variances(observed.variances[:, j], observed.num_seeds, size) * warp.slope(y) ** 2
        posterior = Posterior(
            self._whole,
            self._fitted(X[:size], warp(y[:size]), noise[:size]),
            X,
            warp(y),
            noise,
            self._whole.features[pending],
            start=size,
            earlier=self._posteriors.get(j),
        )
        self._posteriors[j] = posterior
        return warp, posterior

    def _warp(self, X: Floats, y: Floats, noise: Floats) -> Warp:
        """The warp that explains the observations best, remembered by what it was chosen from."""
        key = _content(X, y, noise)
        if key not in self._warps:
            self._warps[key] = choose_warp(self._whole.kernel, *_thinned(X, y, noise))
        return self._warps[key]

    def _fitted(self, X: Floats, y: Floats, noise: Floats) -> Hyperparameters:
        """Hyperparameters, remembered by the content of what they were fitted to."""
        key = _content(X, y, noise)
        if key not in self._fits:
            self._fits[key] = fit(self._whole.kernel, *_thinned(X, y, noise))
        return self._fits[key]

    def _measured(self, gains: Floats) -> dict[str, float]:
        return {
            objective.name: float(objective.measured(gains[j : j + 1])[0])
            for j, objective in enumerate(self._objectives)
        }


def _unwarped(best: Best, warps: Sequence[Warp]) -> Best:
    """The same in gains; a deviation is carried over by the slope at the mean."""
    mean = np.array([float(warp.inverse(best.mean[j])) for j, warp in enumerate(warps)])
    slopes = np.array([float(warp.slope(mean[j])) for j, warp in enumerate(warps)])
    return Best(best.row, best.log_value, mean, best.deviation / slopes)


def _content(*arrays: Floats) -> bytes:
    return b"".join(array.tobytes() for array in arrays)


def _thinned(*arrays: Floats) -> list[Floats]:
    """The same rows of each array, evenly spread where there are more than are fitted."""
    count = len(arrays[0])
    chosen = np.unique(np.linspace(0, count - 1, min(count, _MOST_FITTED)).astype(np.int64))
    return [array[chosen] for array in arrays]


def fit_size(num_observations: int) -> int:
    """How many observations the hyperparameters are fitted to: the schedule grows by one, or by 10 % from 20 on.

    A function of the count alone, so that a resumed search refits where the uninterrupted one did.
    """
    size = min(num_observations, 20)
    while size + max(1, size // 10) <= num_observations:
        size += max(1, size // 10)
    return size


def warp_size(num_observations: int) -> int:
    """How many observations decide on the warp: up to 16 all, then half as many more each time."""
    size = min(num_observations, 16)
    while size + size // 2 <= num_observations and size >= 16:
        size += size // 2
    return size
