"""What each choice of the search space did to each objective, as far as a run can tell.

Costs that were known beforehand are known for every design, so their effects are exact. What training measures is
predicted for every design by the surrogate of the search, given all trials; each average then has an uncertainty, and
`explained` says how well the surrogate predicts trials it was not shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engines.history import History
from engines.objectives import Objective
from engines.search.sensitivity import Dimension, decompose
from engines.trial import Trial
from search_space.errors import RunError
from search_space.extended import BASE as EXTENDED
from search_space.product import ProductSpace
from search_space.space import SearchSpace, Space

if TYPE_CHECKING:
    from engines.search.whole_space import WholeSpace
    from pasca.results import Study

LEAST_TRIALS = 8
"""Trials with values below which a surrogate says nothing about six choices."""

_MOST_FITTED, _MOST_OBSERVED = 200, 400
"""Trials, spread evenly over the run, that hyperparameters are fitted to, and that predictions are made from.

The work grows with the cube of either; effects are averages over the whole space, and more trials hardly move them.
"""

_LABELS = {
    "k_pre": "steps before training",
    "pre_aggregator": "graph operator before training",
    "message": "joining of hops",
    "k_trans": "layers",
    "k_post": "steps after training",
    "post_aggregator": "graph operator after training",
}


@dataclass(frozen=True)
class Effects:
    """What each choice does to one objective, in measured units.

    Attributes:
        objective: smaller is better.
        exact: whether the values of all designs are known; otherwise they are predicted.
        num_trials: trials behind the prediction; of a long run 400 designs that are spread evenly over it.
        explained: 1 - squared error / variance of predicting each trial from the others; None where exact. At 0 or
            below the surrogate predicts no better than the mean does.
        overall: average over all designs.
        dimensions: one for each choice of the space.
    """

    objective: Objective
    exact: bool
    num_trials: int
    explained: float | None
    overall: float
    dimensions: tuple[Dimension, ...]

    def as_mapping(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "objective": self.objective.name,
            "exact": self.exact,
            "trials": self.num_trials,
            "explained": self.explained,
            "overall": self.overall,
            "dimensions": [
                {
                    "name": dimension.name,
                    "alone": dimension.alone,
                    "with_others": dimension.with_others,
                    "effects": [
                        {
                            "value": effect.value,
                            "designs": effect.num_designs,
                            "mean": effect.mean,
                            "deviation": effect.deviation,
                            "best": effect.best,
                        }
                        for effect in dimension.effects
                    ],
                }
                for dimension in self.dimensions
            ],
        }


def dimension_label(name: str) -> str:
    """A choice of the paper's space in words; another name as it is."""
    return _LABELS.get(name, name)


def run_effects(study: Study) -> tuple[Effects, ...]:
    """Effects on every objective of a run, in their order.

    Raises:
        RunError, SpaceError: the run searched a space that cannot be rebuilt from its choices, or has too few trials.
    """
    from engines.search.surrogate import prepare
    from pasca.run_costs import RunCosts

    space = recorded_space(study.manifest)
    history = _in_space(study.history, space, study.name)
    costs = RunCosts.of(study.manifest)
    known = costs.of_space(space) if costs is not None and isinstance(space, SearchSpace) else {}
    exact = [objective.kind == "known" and objective.name in known for objective in study.objectives]
    whole = None if all(exact) else prepare(space)
    return tuple(
        _predicted(objective, space, whole, history, study.name)
        if whole is not None and not is_exact
        else _exact(objective, space, known[objective.name], len(history.observed))
        for objective, is_exact in zip(study.objectives, exact, strict=True)
    )


def recorded_space(manifest: Mapping[str, Any]) -> SearchSpace | ProductSpace:
    """The space that a run searched, from its choices: a part of the paper's, or every combination of others.

    Raises:
        RunError: it was the extended space.
        SpaceError: they are no such space.
    """
    stated = manifest["identity"].get("space") or {}
    if stated.get("base") == EXTENDED:
        raise RunError("what each choice did is averaged over all designs, and the extended space has too many to list")
    return SearchSpace.from_mapping(stated) if set(stated) == set(_LABELS) else ProductSpace(stated)


def _in_space(history: History[Any], space: Space[Any], run: str) -> History[Any]:
    """The history with designs of the space in place of their texts, which is all that a record keeps of some."""
    if isinstance(space, SearchSpace):
        return history
    by_text = {str(space.design(row)): space.design(row) for row in range(len(space))}
    for trial in history:
        if str(trial.design) not in by_text:
            raise RunError(f"run {run} searched a space whose choices do not combine to {trial.design}")
    return History(replace(trial, design=by_text[str(trial.design)]) for trial in history)


def _exact(objective: Objective, space: Space[Any], values: Any, num_trials: int) -> Effects:
    return Effects(objective, True, num_trials, None, float(values.mean()), decompose(space, values))


def _predicted(objective: Objective, space: Space[Any], whole: WholeSpace, history: History[Any], run: str) -> Effects:
    from engines.search.fitting import FitFailure, fit
    from engines.search.noise import pooled_variances
    from engines.search.observations import observe
    from engines.search.surrogate import Posterior

    observed = observe(_some(history), space, (objective,))
    if len(observed) < LEAST_TRIALS:
        raise RunError(
            f"effects need at least {LEAST_TRIALS} evaluated designs, run {run} has {len(observed)}; "
            "continue it with --resume"
        )
    noise = pooled_variances(observed.variances[:, 0], observed.num_seeds)
    X, y = whole.features[observed.rows], observed.Y[:, 0]
    chosen = _spread(len(y), _MOST_FITTED)
    try:
        found = fit(whole.kernel, X[chosen], y[chosen], noise[chosen])
        posterior = Posterior(whole, found, X, y, noise, X[:0])
    except FitFailure as failure:
        raise RunError(f"effects of run {run} could not be estimated: {failure}") from None
    losses = -posterior.means  # gains turned round, so that smaller is better
    residuals = y - posterior.left_out_means()
    variance = float(((y - y.mean()) ** 2).sum())
    return Effects(
        objective=objective,
        exact=False,
        num_trials=len(y),
        explained=1.0 - float(residuals @ residuals) / variance if variance > 0 else 0.0,
        overall=float(losses.mean()),
        dimensions=decompose(space, losses, posterior.contrast),
    )


def _some(history: History[Any]) -> list[Trial[Any]]:
    """Trials with values of at most `_MOST_OBSERVED` designs, spread over the run, with all further seeds of each."""
    valued = history.observed
    firsts = [trial.number for trial in valued if trial.repeats_of is None]
    kept = {firsts[place] for place in _spread(len(firsts), _MOST_OBSERVED)}
    return [t for t in valued if (t.number if t.repeats_of is None else t.repeats_of) in kept]


def _spread(count: int, most: int) -> NDArray[np.int64]:
    """At most so many places out of `count`, spread evenly, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
