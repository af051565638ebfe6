"""Models: how each uncertain objective is warped and with which hyperparameters, found on a schedule and remembered.

Everything is decided by the first so many observations, and how many is a function of their count alone: a resumed
search refits where the uninterrupted one did. Results are remembered by the content of what they were found from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.objectives import Floats
from engines.search.fitting import Hyperparameters, fit
from engines.search.kernel import Kernel
from engines.search.noise import pooled_variances
from engines.search.observations import Observations
from engines.search.warping import Warp, choose_warp


@dataclass(frozen=True)
class Model:
    """What an objective is modelled with.

    Attributes:
        warp: from gains to the scale of the model.
        found: hyperparameters on that scale.
        y, noise: (n,) observations and their variances on that scale; variances are NaN where unknown.
        start: how many of the observations the hyperparameters were fitted to.
    """

    warp: Warp
    found: Hyperparameters
    y: Floats
    noise: Floats
    start: int


class Models:
    """Finds and remembers models.

    Args:
        kernel: of the space.
        most_fitted: observations used to fit hyperparameters at most, spread evenly over those that are there.
    """

    def __init__(self, kernel: Kernel, most_fitted: int) -> None:
        self._kernel, self._most_fitted = kernel, most_fitted
        self._warps: dict[bytes, Warp] = {}
        self._fits: dict[bytes, Hyperparameters] = {}

    def of(self, j: int, X: Floats, observed: Observations) -> Model:
        """The model of objective j, given the features (n, D) of what was observed.

        Raises:
            FitFailure: no hyperparameters explain the observations.
        """
        y, size = observed.Y[:, j], fit_size(len(observed))
        few = min(warp_size(len(observed)), size)
        noise = pooled_variances(observed.variances[:, j], observed.num_seeds, few)
        warp = self._warp(X[:few], y[:few], noise[:few])
        noise = pooled_variances(observed.variances[:, j], observed.num_seeds, size) * warp.slope(y) ** 2
        return Model(warp, self._fitted(X[:size], warp(y[:size]), noise[:size]), warp(y), noise, size)

    def _warp(self, *content: Floats) -> Warp:
        """The warp that explains the observations best."""
        key = _key(content)
        if key not in self._warps:
            self._warps[key] = choose_warp(self._kernel, *self._thinned(content))
        return self._warps[key]

    def _fitted(self, *content: Floats) -> Hyperparameters:
        key = _key(content)
        if key not in self._fits:
            self._fits[key] = fit(self._kernel, *self._thinned(content))
        return self._fits[key]

    def _thinned(self, arrays: tuple[Floats, ...]) -> list[Floats]:
        """The same rows of each array, spread evenly where there are more than are fitted."""
        count = len(arrays[0])
        chosen = np.unique(np.linspace(0, count - 1, min(count, self._most_fitted)).astype(np.int64))
        return [array[chosen] for array in arrays]


def _key(arrays: tuple[Floats, ...]) -> bytes:
    return b"".join(array.tobytes() for array in arrays)


def fit_size(num_observations: int) -> int:
    """How many observations the hyperparameters are fitted to: the schedule grows by one, or by 10 % from 20 on."""
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
