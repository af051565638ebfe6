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
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from engines.objectives import Floats
from engines.search.fitting import LEAST_NOISE, FitFailure, Hyperparameters
from engines.search.kernel import Kernel, Term
from engines.search.similarity import Near, similarities
from engines.search.whole_space import Table, WholeSpace
from search_space.space import Space


@runtime_checkable
class Described(Protocol):
    """A space that says more of its designs than its choices do, such as counts of what a design is made of."""

    def descriptors(self) -> Mapping[str, Floats]:
        """Groups of numbers, each (number of designs, columns); distance within a group means difference."""
        ...


def prepare(space: Space[Any]) -> WholeSpace:
    """All designs of a space, with the kernel that suits its choices and, where it is `Described`, its descriptors.

    Each group of descriptors adds a term; its columns share one length scale where there are many.
    """
    features = [space.codes().astype(np.float64)]
    groups = list(space.descriptors().values()) if isinstance(space, Described) else []
    terms = [Term(tuple(similarities(space.choices)), variance=_CHOICES_BESIDE_GROUPS if groups else 1.0)]
    first = features[0].shape[1]
    for group in groups:
        columns = tuple(range(first, first + group.shape[1]))
        shared = len(columns) > _MOST_LENGTH_SCALES
        terms.append(Term((Near(columns, shared=shared),), variance=_CHOICES_BESIDE_GROUPS if shared else 1.0))
        features.append(np.asarray(group, dtype=np.float64))
        first += group.shape[1]
    return WholeSpace(Kernel(tuple(terms)), np.column_stack(features))


_MOST_LENGTH_SCALES = 16
_CHOICES_BESIDE_GROUPS = 0.3  # prior variance of what a few descriptors leave, in units of what they explain
_FEW = 96  # observations that the first upper bounds on variances are given
_CHUNK = 16384  # designs at once: 16,384 · 96 float64 are 12 MB
_LEAST_VARIANCE = 1e-10  # of the smooth part, in units of the targets' variance: rounding can leave less than 0


class Posterior:
    """Predictions for every design of the space, given observations and designs that are still running.

    Running designs count as observed at their posterior mean, which leaves the means as they are and shrinks the
    variances around them.

    The factor is made of the first `start` observations at once, and of each later one by a row appended to it. An
    `earlier` posterior saves that work and hands on what it learnt about variances, and changes no number: the same
    rows are appended in the same order either way.

    Args:
        space: all designs, prepared for the kernel.
        found: hyperparameters, possibly fitted to fewer observations.
        X, y, noise: (n, D) features, (n,) targets, (n,) variances or all NaN.
        pending: (p, D) features of designs that are running.
        start: observations that are factored together; all of them by default.
        earlier: a posterior with the same hyperparameters and `start`; used if its observations begin this one's.
    Raises:
        FitFailure: the kernel matrix is not positive definite.
    """

    _factor: Floats
    _tables: list[Table]
    _largest: Floats | None

    def __init__(
        self,
        space: WholeSpace,
        found: Hyperparameters,
        X: Floats,
        y: Floats,
        noise: Floats,
        pending: Floats,
        start: int | None = None,
        earlier: Posterior | None = None,
    ) -> None:
        self._space, self._found, self._X, self._targets = space, found, X, y
        self._signal = space.kernel.variance(found.parameters)
        unknown = bool(np.isnan(noise).any())
        fixed = np.where(np.isnan(noise), 0.0, noise) / found.scale**2 + LEAST_NOISE
        self._own = 0.0 if unknown else found.nugget
        self._diagonal = fixed + found.nugget
        self._start = len(X) if start is None else start
        factor: Floats
        if earlier is not None and self._continues(earlier):
            factor, done = earlier._factor, len(earlier._X)
            self._tables = _wider(earlier._tables, space.tables(found.parameters, X[done:]))
            self._largest = earlier._largest
        else:
            factor, done = self._cholesky(X[: self._start], self._diagonal[: self._start]), self._start
            self._tables = space.tables(found.parameters, X)
            self._largest = None
        for i in range(done, len(X)):
            factor = self._appended(factor, X[:i], X[i], self._diagonal[i])
        self._factor = factor
        residual = (y - found.centre) / found.scale - found.mean
        self._weights = solve_triangular(factor, solve_triangular(factor, residual, lower=True), lower=True, trans=1)
        as_noise = fixed + (found.nugget if unknown else 0.0)
        self.observed_means = found.centre + found.scale * (residual + found.mean - as_noise * self._weights)
        self.means: Floats = found.centre + found.scale * (found.mean + space.weighted_sum(self._tables, self._weights))
        # Rows of running designs come last, so that variances with and without them share one triangular solve.
        self._full_factor, self._full_tables = factor, self._tables
        if len(pending):
            usual = float(fixed.mean()) + found.nugget
            seen = np.concatenate((X, pending))
            for i in range(len(X), len(seen)):
                self._full_factor = self._appended(self._full_factor, seen[:i], seen[i], usual)
            self._full_tables = _wider(self._tables, space.tables(found.parameters, pending))

    def _continues(self, earlier: Posterior) -> bool:
        n = len(earlier._X)
        return (
            earlier._found is self._found
            and earlier._space is self._space
            and earlier._start == self._start
            and self._start <= n <= len(self._X)
            and np.array_equal(earlier._X, self._X[:n])
            and np.array_equal(earlier._diagonal, self._diagonal[:n])
        )

    def _cholesky(self, X: Floats, noise: Floats) -> Floats:
        matrix = self._space.kernel.matrix(self._found.parameters, X, X)
        matrix[np.diag_indices_from(matrix)] += noise
        try:
            factor: Floats = cholesky(matrix, lower=True)
        except LinAlgError as error:
            raise FitFailure(f"the kernel matrix of {len(X)} designs is not positive definite") from error
        return factor

    def _appended(self, factor: Floats, X: Floats, x: Floats, noise: float) -> Floats:
        """The factor with one more row: design x, whose covariances with X (n, D) are known."""
        n = len(X)
        column = self._space.kernel.matrix(self._found.parameters, X, x[None])[:, 0]
        row = solve_triangular(factor, column, lower=True, check_finite=False)
        rest = self._signal + noise - float(row @ row)
        if not rest > 0.0:
            raise FitFailure(f"the kernel matrix of {n + 1} designs is not positive definite")
        larger = np.zeros((n + 1, n + 1), order="F")
        larger[:n, :n] = factor
        larger[n, :n] = row
        larger[n, n] = math.sqrt(rest)
        return larger

    def _variances_given_few(self, X: Floats, noise: Floats) -> Floats:
        """Upper bounds on the smooth variances (N',): what a few well-spread observations leave.

        Fewer observations never make a design surer, and each of the few is the one that those before say least about.
        """
        left = np.full(len(X), self._signal)
        chosen: list[int] = []
        rows = np.empty((0, len(X)))
        matrix = self._space.kernel.matrix(self._found.parameters, X, X)
        for _ in range(min(_FEW, len(X))):
            pivot = int(np.argmax(left))
            row = (matrix[pivot] - rows[:, pivot] @ rows) / math.sqrt(left[pivot] + noise[pivot])
            rows = np.vstack((rows, row))
            left = np.maximum(left - row * row, 0.0)
            chosen.append(pivot)
        few = np.array(chosen, dtype=np.int64)
        factor = self._cholesky(X[few], noise[few])
        tables = [(left_part[:, few], right_part[:, few]) for left_part, right_part in self._tables]
        bounds = np.empty(len(self._space))
        for begin in range(0, len(bounds), _CHUNK):
            some = np.arange(begin, min(begin + _CHUNK, len(bounds)))
            half = self._half(factor, tables, some)
            bounds[some] = _not_below(self._signal - np.einsum("ij,ij->j", half, half))
        return bounds

    def _half(self, factor: Floats, tables: list[Table], rows: NDArray[np.int64]) -> Floats:
        """L⁻¹ k(X, rows), whose columns' squares sum to the variance that the observations take away."""
        covariances = self._space.covariances(tables, rows)
        half: Floats = solve_triangular(factor, covariances.T, lower=True, overwrite_b=True, check_finite=False)
        return half

    def deviations(self, rows: NDArray[np.int64]) -> Floats:
        """Posterior standard deviations of the true values of single designs, shape (len(rows),)."""
        half = self._half(self._full_factor, self._full_tables, rows)
        squares = half * half
        observed = self._signal - squares[: len(self._X)].sum(axis=0)
        self._smooth_bounds[rows] = _not_below(observed)
        return self._deviation(observed - squares[len(self._X) :].sum(axis=0))

    @property
    def largest_deviations(self) -> Floats:
        """Upper bounds on `deviations` of every design, (N',): tight where an exact value was asked for before."""
        return self._deviation(self._smooth_bounds)

    @property
    def _smooth_bounds(self) -> Floats:
        """Upper bounds on the smooth variances (N',), made when they are first asked for; `deviations` lowers them."""
        if self._largest is None:
            self._largest = self._variances_given_few(self._X[: self._start], self._diagonal[: self._start])
        return self._largest

    def _deviation(self, smooth: Floats) -> Floats:
        deviation: Floats = self._found.scale * np.sqrt(np.maximum(smooth, _LEAST_VARIANCE) + self._own)
        return deviation

    def left_out_means(self) -> Floats:
        """What would be predicted for each observation without it, shape (n,), hyperparameters unchanged.

        Source: Rasmussen and Williams 2006, equation (5.12).
        """
        inverse = solve_triangular(self._factor, np.eye(len(self._targets)), lower=True)
        precisions = np.einsum("ij,ij->j", inverse, inverse)
        means: Floats = self._targets - self._found.scale * self._weights / precisions
        return means

    @cached_property
    def _between_parts(self) -> list[Table]:
        return self._space.between_parts(self._found.parameters)

    def contrast(self, weights: Floats) -> tuple[float, float]:
        """Posterior mean and standard deviation of a weighted sum of the true values of all designs.

        Args:
            weights: (N',), one a design, in the order of the space.
        """
        prior = self._space.quadratic(self._between_parts, weights)
        half = solve_triangular(self._full_factor, self._space.toward(self._full_tables, weights), lower=True)
        variance = prior - float(half @ half) + self._own * float(weights @ weights)
        return float(weights @ self.means), self._found.scale * math.sqrt(max(variance, 0.0))


def _wider(tables: list[Table], more: list[Table]) -> list[Table]:
    """Tables against the designs of both, side by side."""
    return [
        (np.hstack((left, right_part[0])), np.hstack((right, right_part[1])))
        for (left, right), right_part in zip(tables, more, strict=True)
    ]


def _not_below(variances: Floats) -> Floats:
    """The same, raised by more than rounding can have cost, so that a bound stays a bound."""
    raised: Floats = variances * (1.0 + 1e-9) + 1e-12
    return raised
