"""The surrogate: a Gaussian process for one uncertain objective over the whole space of designs.

Predictions are wanted for every design at once: means come from small tables (`whole_space.py`), variances of single
designs from one Cholesky factor.

Symbols: n observations, K their kernel matrix, V their noise variances, τ² the nugget, L L' = K + V + τ² I.
A nugget is what single designs differ by from all that resemble them. Where the variances of the observations are
known, the nugget is part of the truth and adds to predictions; where they are unknown it cannot be told from noise
and counts as noise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from engines.objectives import Floats
from engines.search.fitting import LEAST_NOISE, FitFailure, Hyperparameters
from engines.search.kernel import Kernel, Term
from engines.search.similarity import similarities
from engines.search.whole_space import WholeSpace
from search_space.space import Space


def prepare(space: Space[Any]) -> WholeSpace:
    """All designs of a space, with the kernel that suits its choices."""
    return WholeSpace(Kernel((Term(tuple(similarities(space.choices))),)), space.codes().astype(np.float64))


class Posterior:
    """Predictions for every design of the space, given observations and designs that are still running.

    Running designs count as observed at their posterior mean, which leaves the means as they are and shrinks the
    variances around them.

    Args:
        space: all designs, prepared for the kernel.
        found: hyperparameters, possibly fitted to fewer observations.
        X, y, noise: (n, D) features, (n,) targets, (n,) variances or all NaN.
        pending: (p, D) features of designs that are running.
    Raises:
        FitFailure: the kernel matrix is not positive definite.
    """

    def __init__(
        self, space: WholeSpace, found: Hyperparameters, X: Floats, y: Floats, noise: Floats, pending: Floats
    ) -> None:
        self._space = space
        self._found = found
        self._signal = space.kernel.variance(found.parameters)
        unknown = bool(np.isnan(noise).any())
        fixed = np.where(np.isnan(noise), 0.0, noise) / found.scale**2 + LEAST_NOISE
        self._own = 0.0 if unknown else found.nugget
        as_noise = fixed + (found.nugget if unknown else 0.0)
        factor = self._cholesky(X, fixed + found.nugget)
        self._observed_factor, self._targets = factor, y
        residual = (y - found.centre) / found.scale - found.mean
        self._weights = solve_triangular(factor, solve_triangular(factor, residual, lower=True), lower=True, trans=1)
        self.observed_means = found.centre + found.scale * (residual + found.mean - as_noise * self._weights)
        self._tables = space.tables(found.parameters, X)
        self.means: Floats = found.centre + found.scale * (found.mean + space.weighted_sum(self._tables, self._weights))
        if len(pending):
            usual = np.full(len(pending), float(fixed.mean()) + found.nugget)
            X = np.concatenate((X, pending))
            factor = self._cholesky(X, np.concatenate((fixed + found.nugget, usual)))
            self._tables = space.tables(found.parameters, X)
        self._factor = factor

    def _cholesky(self, X: Floats, noise: Floats) -> Floats:
        matrix = self._space.kernel.matrix(self._found.parameters, X, X)
        matrix[np.diag_indices_from(matrix)] += noise
        try:
            factor: Floats = cholesky(matrix, lower=True)
        except LinAlgError as error:
            raise FitFailure(f"the kernel matrix of {len(X)} designs is not positive definite") from error
        return factor

    def left_out_means(self) -> Floats:
        """What would be predicted for each observation without it, shape (n,), hyperparameters unchanged.

        Source: Rasmussen and Williams 2006, equation (5.12).
        """
        inverse = solve_triangular(self._observed_factor, np.eye(len(self._targets)), lower=True)
        precisions = np.einsum("ij,ij->j", inverse, inverse)
        means: Floats = self._targets - self._found.scale * self._weights / precisions
        return means

    def contrast(self, weights: Floats) -> tuple[float, float]:
        """Posterior mean and standard deviation of a weighted sum of the true values of all designs.

        Args:
            weights: (N',), one a design, in the order of the space.
        """
        prior = self._space.quadratic(self._found.parameters, weights)
        half = solve_triangular(self._factor, self._space.toward(self._tables, weights), lower=True)
        variance = prior - float(half @ half) + self._own * float(weights @ weights)
        return float(weights @ self.means), self._found.scale * math.sqrt(max(variance, 0.0))

    @property
    def prior_deviation(self) -> float:
        """Standard deviation of a design about which nothing is known: an upper bound on every other."""
        return self._found.scale * math.sqrt(self._signal + self._own)

    def deviations(self, rows: NDArray[np.int64]) -> Floats:
        """Posterior standard deviations of the true values of single designs, shape (len(rows),)."""
        covariances = self._space.covariances(self._tables, rows)
        half = solve_triangular(self._factor, covariances.T, lower=True, overwrite_b=True, check_finite=False)
        smooth = self._signal - np.einsum("ij,ij->j", half, half)
        deviation: Floats = self._found.scale * np.sqrt(np.maximum(smooth, 1e-10) + self._own)
        return deviation
