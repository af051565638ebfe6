"""WideEHVISearcher: expected hypervolume improvement in a space that is too large to list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from engines.history import History
from engines.objectives import Bound, Floats, Objective
from engines.search.aims import Aims
from engines.search.argmax import Best, Predictions, best_design
from engines.search.base import Suggestion
from engines.search.fitting import FitFailure
from engines.search.kernel import Kernel, Term
from engines.search.models import Models
from engines.search.observations import initial_trials, observe
from engines.search.pareto import non_dominated
from engines.search.reference import reference_point
from engines.search.similarity import similarities
from engines.search.surrogate import Posterior
from engines.search.warping import IDENTITY
from engines.search.whole_space import WholeSpace
from engines.search.wide import InitialDesigns, KnownCosts, Limits, Pool, random_design
from engines.trial import Trial
from search_space.errors import ConfigError
from search_space.space import Unlisted

D = TypeVar("D")

NUM_RANDOM = 256
"""Candidates drawn at random for a suggestion."""
MOST_FRONT = 16
"""Designs of the front whose neighbours are candidates; more are thinned out evenly."""
MOST_STEPS = 12
"""Steps of the local search."""
_USUAL_CHOICES = 6
"""With more choices each of them is expected to matter less."""
_MOST_FITTED = 200
"""Observations used to fit hyperparameters at most: with many choices a step of the fit is dear."""


class WideEHVISearcher(Generic[D]):
    """Proposes, of the designs that it looks at, the one with the largest expected hypervolume improvement.

    The first `num_initial` trials are the space's starting designs, then a quasi-random sequence. After that the
    candidates are the neighbours of the present front (posterior means) and `NUM_RANDOM` designs drawn at random;
    from the best of them a local search goes to the best neighbour as long as that is better. The model is that of
    `EHVISearcher`; so are bounds and running designs.

    Args:
        space: what to search.
        objectives: the m objectives.
        known: objectives that are known beforehand.
        seed: fixes the initial designs and what is drawn.
        num_initial: trials before the model is used, at least 1.
        bounds: on objectives of the search or on known ones.
        warm_start: designs that did well elsewhere, tried after the space's starting designs.
    Raises:
        SpaceError: a design to start with is not in the space.
        ConfigError: `num_initial` is below 1.
        ObjectiveError: a bound is on an objective that is neither searched nor known.
    """

    def __init__(
        self,
        space: Unlisted[D],
        objectives: Sequence[Objective],
        *,
        known: KnownCosts[D],
        seed: int,
        num_initial: int = 16,
        bounds: Sequence[Bound] = (),
        warm_start: Sequence[D] = (),
    ) -> None:
        if num_initial < 1:
            raise ConfigError(f"num_initial must be at least 1, got {num_initial}")
        self._aims = Aims(objectives, known.names, bounds)
        space.encode(list(warm_start))
        self._space, self._known = space, known
        self._seed, self._num_initial, self._warm_start = seed, num_initial, tuple(warm_start)
        self._limits = Limits(known, bounds)
        share = min(1.0, _USUAL_CHOICES / len(space.choices))
        self._kernel = Kernel((Term(tuple(similarities(space.choices, share))),))
        self._models = Models(self._kernel, _MOST_FITTED)
        searched = {objective.name for objective in objectives}
        self._extents = {name: pair for name, pair in known.extents(bounds).items() if name in searched}
        self._initial = InitialDesigns(space, seed, warm_start)
        self._reference: Floats | None = None
        self._near: dict[D, list[D]] = {}

    def ask(self, history: History[D], count: int = 1) -> list[Suggestion[D]]:
        """Propose designs; see `Searcher.ask`. Suggestions of one call take each other for running."""
        found: list[Suggestion[D]] = []
        while len(found) < count:
            suggestion = self._suggest(history)
            if suggestion is None:
                break
            found.append(suggestion)
            history = history.with_trial(Trial(number=history.last_number + 1, design=suggestion.design))
        return found

    def statement(self) -> Mapping[str, Any]:
        """Name, settings, how candidates are found, and the reference point in measured values."""
        return {
            "searcher": "ehvi",
            "seed": self._seed,
            "num_initial": self._num_initial,
            **self._aims.statement(),
            "num_designs": len(self._space),
            "candidates": f"not enumerated: neighbours of up to {MOST_FRONT} designs of the front, {NUM_RANDOM} at "
            f"random, and a local search of up to {MOST_STEPS} steps from the best",
            "warm_start": [str(design) for design in self._warm_start],
            "reference_point": None if self._reference is None else self._aims.measured(self._reference),
        }

    def posterior(self, history: History[D], designs: Sequence[D]) -> list[dict[str, tuple[float, float]]]:
        """What the model makes of designs; see `EHVISearcher.posterior`."""
        found: list[dict[str, tuple[float, float]]] = [{} for _ in designs]
        if not designs or initial_trials(history, self._num_initial) is None:
            return found
        seen: Pool[D] = Pool(self._space, (trial.design for trial in history.observed))
        observed = observe(list(history), seen, self._aims.objectives)
        X = self.features([seen.design(int(row)) for row in observed.rows])
        whole = WholeSpace(self._kernel, self.features(designs), related=False)
        rows = np.arange(len(designs))
        for j in map(int, np.flatnonzero(self._aims.uncertain)):
            try:
                model = self._models.of(j, X, observed)
                posterior = Posterior(whole, model.found, X, model.y, model.noise, X[:0], start=model.start)
            except FitFailure:
                return [{} for _ in designs]
            believed = self._aims.believed(j, model.warp, posterior.means, posterior.deviations(rows))
            for values, pair in zip(found, believed, strict=True):
                values[self._aims.objectives[j].name] = pair
        return found

    def _suggest(self, history: History[D]) -> Suggestion[D] | None:
        taken = history.attempted()
        if len(taken) >= len(self._space):
            return None
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, 5, history.last_number + 1]))
        if initial_trials(history, self._num_initial) is None:
            return self._first(taken, rng)
        stated = reference_point(history, self._aims.objectives, self._extents, self._num_initial)
        assert stated is not None  # one of the initial trials holds values
        self._reference = self._aims.gains(stated)
        try:
            best = _Round(self, history, taken, self._reference).best(rng)
        except FitFailure as failure:
            return self._random(taken, rng, f"the surrogate failed: {failure}")
        if best is None:
            return self._random(taken, rng, "no candidate can improve the hypervolume")
        return best

    def _first(self, taken: set[D], rng: np.random.Generator) -> Suggestion[D] | None:
        """The next of the initial designs; at random where hundreds of them were tried or break a bound."""
        for _, design in zip(range(len(taken) + 512), self._initial, strict=False):
            if design not in taken and self._limits.over([design])[0] == 0.0:
                warm = {"warm_start": True} if design in self._warm_start else {}
                return Suggestion(design, {"method": "initial", **warm})
        return self._random(taken, rng, "no initial design is left that keeps the bounds")

    def _random(self, taken: set[D], rng: np.random.Generator, reason: str) -> Suggestion[D] | None:
        drawn = random_design(self._space, self._limits, taken, rng)
        if drawn is None:
            return None
        if not drawn[1]:
            return Suggestion(drawn[0], {"method": "nearest", "fallback": "no design drawn keeps the bounds"})
        return Suggestion(drawn[0], {"method": "random", "fallback": reason})

    def neighbours(self, design: D) -> list[D]:
        """Those of the space, remembered: the front changes slowly."""
        if design not in self._near:
            self._near[design] = self._space.neighbours(design)
        return self._near[design]

    def features(self, designs: Sequence[D]) -> Floats:
        """What the kernel compares, (n, D)."""
        return self._space.encode(designs).astype(np.float64)

    def known_gains(self, designs: Sequence[D]) -> Floats:
        """(n, m) gains where they are known, 0 elsewhere."""
        gains = np.zeros((len(designs), len(self._aims.objectives)))
        if not self._aims.uncertain.all() and designs:
            values = self._known.of(designs)
            for j in np.flatnonzero(~self._aims.uncertain):
                gains[:, j] = self._aims.objectives[j].gains(values[self._aims.objectives[j].name])
        return gains


class _Round(Generic[D]):
    """One suggestion: the model given a history, and the search for the best candidate."""

    def __init__(self, searcher: WideEHVISearcher[D], history: History[D], taken: set[D], reference: Floats) -> None:
        self._searcher, self._taken, self._space = searcher, taken, searcher._space
        self._aims = aims = searcher._aims
        self._seen: Pool[D] = Pool(self._space, (trial.design for trial in history.observed))
        observed = observe(list(history), self._seen, aims.objectives)
        seen = [self._seen.design(int(row)) for row in observed.rows]
        self._X = searcher.features(seen)
        running = list(dict.fromkeys(trial.design for trial in history.running))
        self._pending = searcher.features(running)
        self._fits = {int(j): searcher._models.of(int(j), self._X, observed) for j in np.flatnonzero(aims.uncertain)}
        self._at_least, self._worst = aims.at_least.copy(), reference.copy()
        self._warps = [IDENTITY] * len(aims.objectives)
        for j, model in self._fits.items():
            self._warps[j] = model.warp
            self._at_least[j], self._worst[j] = model.warp(self._at_least[j]), model.warp(self._worst[j])
        means, _, at_observed = self._predict([*seen, *running])
        designs = [*(design for design, whole in zip(seen, observed.complete, strict=True) if whole), *running]
        front = np.concatenate((at_observed[observed.complete], means[len(seen) :]))
        keeps = (front >= self._at_least).all(axis=1)
        self._front = front[keeps]
        kept = [designs[int(place)] for place in np.flatnonzero(keeps)]
        best = np.flatnonzero(non_dominated(self._front)) if kept else ()
        self._front_designs = [kept[int(place)] for place in best]

    def best(self, rng: np.random.Generator) -> Suggestion[D] | None:
        """The best candidate, after the local search."""
        searcher = self._searcher
        spread = np.linspace(0, len(self._front_designs) - 1, min(len(self._front_designs), MOST_FRONT))
        starts = [self._front_designs[int(place)] for place in spread]
        near = [other for design in starts for other in searcher.neighbours(design)]
        looked_at = dict.fromkeys(self._free([*near, *self._space.sample(NUM_RANDOM, rng)]))
        found = self._best_of(list(looked_at))
        steps = 0
        while found is not None and steps < MOST_STEPS:
            following = [one for one in self._free(searcher.neighbours(found[0])) if one not in looked_at]
            looked_at.update(dict.fromkeys(following))
            better = self._best_of(following)
            if better is None or better[1].log_value <= found[1].log_value:
                break
            found, steps = better, steps + 1
        if found is None:
            return None
        design, best = found[0], found[1].unwarped(self._warps)
        return Suggestion(
            design,
            {
                "method": "ehvi",
                "log_ehvi": best.log_value,
                "predicted": self._aims.measured(best.mean),
                "deviation": {self._aims.objectives[j].name: float(best.deviation[j]) for j in self._fits},
                "candidates": len(looked_at),
                "local_steps": steps,
            },
        )

    def _free(self, designs: Sequence[D]) -> list[D]:
        """Those that were not attempted and keep the bounds."""
        return self._searcher._limits.keeping([design for design in designs if design not in self._taken])

    def _predict(self, designs: Sequence[D]) -> tuple[Floats, list[Posterior], Floats]:
        """Means (n, m) of designs, the posteriors they come from, and the means of what was observed."""
        means = self._searcher.known_gains(designs)
        at_observed = means[: len(self._X)].copy()  # used where the designs begin with those that were observed
        whole = WholeSpace(self._searcher._kernel, self._searcher.features(designs), related=False)
        posteriors = []
        for j, one in self._fits.items():
            posterior = Posterior(whole, one.found, self._X, one.y, one.noise, self._pending, start=one.start)
            means[:, j] = posterior.means
            if len(designs) >= len(self._X):
                at_observed[:, j] = posterior.observed_means
            posteriors.append(posterior)
        return means, posteriors, at_observed

    def _best_of(self, designs: Sequence[D]) -> tuple[D, Best] | None:
        if not designs:
            return None
        means, posteriors, _ = self._predict(designs)
        largest = np.zeros_like(means)
        for j, posterior in zip(self._fits, posteriors, strict=True):
            largest[:, j] = posterior.largest_deviations
        exact = [posterior.deviations for posterior in posteriors]
        predictions = Predictions(means, self._aims.uncertain, largest, exact, self._at_least)
        best = best_design(predictions, np.arange(len(designs)), self._front, self._worst)
        return None if best is None else (designs[best.row], best)
