"""The surrogate: a Gaussian process for one uncertain objective over the whole space of designs.

Hyperparameters are fitted by GPyTorch and BoTorch. Prediction is done here, because it is wanted for every design at
once: means come from factor tables (`factors.py`), variances of single designs from one Cholesky factor.

Symbols: n observations, K their kernel matrix, V their noise variances, τ² the nugget, L L' = K + V + τ² I.
A nugget is what single designs differ by from all that resemble them. Where the variances of the observations are
known, the nugget is part of the truth and adds to predictions; where they are unknown it cannot be told from noise
and counts as noise.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import gpytorch
import numpy as np
import torch
from botorch.exceptions.errors import BotorchError
from botorch.exceptions.warnings import BotorchWarning
from botorch.models.gpytorch import GPyTorchModel
from botorch.optim.fit import fit_gpytorch_mll_scipy
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from gpytorch.priors import NormalPrior
from linear_operator.utils.errors import NanError, NotPSDError
from linear_operator.utils.warnings import NumericalWarning
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from engines.objectives import Floats
from engines.search.factors import Factors, Tables, cross
from engines.search.kernel import DesignKernel
from search_space.space import Choice, Codes

_LEAST_NOISE = 1e-6  # in units of the targets' variance: keeps the Cholesky factor sound
_MAX_STEPS = 60


class FitFailure(RuntimeError):
    """The hyperparameters could not be fitted; the message says why."""


@dataclass(frozen=True)
class Hyperparameters:
    """What a fit found. Targets are standardised as (y - centre) / scale.

    Attributes:
        tables: one similarity table a choice.
        signal: prior variance of the smooth part, standardised.
        nugget: τ², standardised.
        mean: prior mean, standardised.
        centre, scale: in the unit of the targets.
    """

    tables: Tables
    signal: float
    nugget: float
    mean: float
    centre: float
    scale: float


class _ExactModel(gpytorch.models.ExactGP, GPyTorchModel):  # type: ignore[misc]
    num_outputs = 1
    correlation: DesignKernel
    mean_module: gpytorch.means.ConstantMean
    log_signal: torch.nn.Parameter

    def __init__(
        self, X: torch.Tensor, y: torch.Tensor, likelihood: FixedNoiseGaussianLikelihood, kernel: DesignKernel
    ) -> None:
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean(NormalPrior(0.0, 1.0))
        self.correlation = kernel
        self.log_signal = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))
        gpytorch.Module.register_prior(self, "signal_prior", NormalPrior(0.0, 1.0), "log_signal")

    @property
    def signal(self) -> torch.Tensor:
        """Prior variance of the smooth part."""
        return self.log_signal.exp()

    def forward(self, X: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        covariance = self.correlation(X).to_dense() * self.signal
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), covariance)


def fit(choices: Sequence[Choice], X: Codes, y: Floats, noise: Floats) -> Hyperparameters:
    """Fit by maximum a posteriori from fixed starting values, so that the result depends on the arguments alone.

    Args:
        X: (n, d) codes.
        y: (n,) targets, finite.
        noise: (n,) variances of the targets, or NaN everywhere where they are unknown.
    Raises:
        FitFailure: the optimiser or the linear algebra broke down.
    """
    centre, scale = float(y.mean()), float(y.std())
    if not scale > 1e-12 * max(1.0, abs(centre)):
        scale = 1.0
    standard = torch.from_numpy((y - centre) / scale)
    fixed = np.where(np.isnan(noise), 0.0, noise) / scale**2 + _LEAST_NOISE
    likelihood = FixedNoiseGaussianLikelihood(torch.from_numpy(fixed), learn_additional_noise=True).double()
    _prepare_nugget(likelihood)
    model = _ExactModel(torch.from_numpy(X.astype(np.float64)), standard, likelihood, DesignKernel(choices)).double()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    mll.train()
    try:
        with warnings.catch_warnings(), gpytorch.settings.max_cholesky_size(10**6):
            # A stop at the step limit and jitter added on the way are ordinary here; a broken fit shows below.
            warnings.simplefilter("ignore", BotorchWarning)
            warnings.simplefilter("ignore", NumericalWarning)
            fit_gpytorch_mll_scipy(mll, options={"maxiter": _MAX_STEPS})
    except (BotorchError, NotPSDError, NanError, ValueError) as error:
        raise FitFailure(f"{type(error).__name__}: {error}") from error
    found = Hyperparameters(
        tables=model.correlation.tables(),
        signal=model.signal.item(),
        nugget=likelihood.second_noise.item(),
        mean=model.mean_module.constant.item(),
        centre=centre,
        scale=scale,
    )
    numbers = (found.signal, found.nugget, found.mean, *(float(table.sum()) for table in found.tables))
    if not all(map(math.isfinite, numbers)):
        raise FitFailure("the fitted hyperparameters are not finite")
    return found


def _prepare_nugget(likelihood: FixedNoiseGaussianLikelihood) -> None:
    extra = likelihood.second_noise_covar
    extra.register_prior("nugget_prior", gpytorch.priors.LogNormalPrior(math.log(0.02), 1.0), "noise")
    extra.register_constraint("raw_noise", gpytorch.constraints.GreaterThan(1e-6, initial_value=0.02))


class Posterior:
    """Predictions for every design of the space, given observations and designs that are still running.

    Running designs count as observed at their posterior mean, which leaves the means as they are and shrinks the
    variances around them.

    Args:
        factors: the space.
        found: hyperparameters, possibly fitted to fewer observations.
        X, y, noise: (n, d) codes, (n,) targets, (n,) variances or all NaN.
        pending: (p, d) codes of designs that are running.
    Raises:
        FitFailure: the kernel matrix is not positive definite.
    """

    def __init__(
        self, factors: Factors, found: Hyperparameters, X: Codes, y: Floats, noise: Floats, pending: Codes
    ) -> None:
        self._factors = factors
        self._found = found
        unknown = bool(np.isnan(noise).any())
        fixed = np.where(np.isnan(noise), 0.0, noise) / found.scale**2 + _LEAST_NOISE
        self._own = 0.0 if unknown else found.nugget
        as_noise = fixed + (found.nugget if unknown else 0.0)
        factor = self._cholesky(X, fixed + found.nugget)
        self._observed_factor, self._targets = factor, y
        residual = (y - found.centre) / found.scale - found.mean
        self._weights = solve_triangular(factor, solve_triangular(factor, residual, lower=True), lower=True, trans=1)
        self.observed_means = found.centre + found.scale * (residual + found.mean - as_noise * self._weights)
        self._sides = factors.sides(found.tables, X)
        self.means: Floats = found.centre + found.scale * (
            found.mean + found.signal * factors.weighted_sum(self._sides, self._weights)
        )
        if len(pending):
            usual = np.full(len(pending), float(fixed.mean()) + found.nugget)
            X = np.concatenate((X, pending))
            factor = self._cholesky(X, np.concatenate((fixed + found.nugget, usual)))
            self._sides = factors.sides(found.tables, X)
        self._factor = factor

    def _cholesky(self, X: Codes, noise: Floats) -> Floats:
        matrix = self._found.signal * cross(self._found.tables, X, X)
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
        grid = self._factors.grid(weights)
        left, right = self._factors.part_similarities(self._found.tables)
        signal = self._found.signal
        prior = signal * float((grid * (left @ grid @ right)).sum())
        toward = signal * np.einsum("qi,qi->i", grid.T @ self._sides[0], self._sides[1])
        half = solve_triangular(self._factor, toward, lower=True)
        variance = prior - float(half @ half) + self._own * float(weights @ weights)
        return float(weights @ self.means), self._found.scale * math.sqrt(max(variance, 0.0))

    @property
    def prior_deviation(self) -> float:
        """Standard deviation of a design about which nothing is known: an upper bound on every other."""
        return self._found.scale * math.sqrt(self._found.signal + self._own)

    def deviations(self, rows: NDArray[np.int64]) -> Floats:
        """Posterior standard deviations of the true values of single designs, shape (len(rows),)."""
        cross_covariance = self._found.signal * self._factors.similarities(self._sides, rows)
        half = solve_triangular(self._factor, cross_covariance.T, lower=True, overwrite_b=True, check_finite=False)
        smooth = self._found.signal - np.einsum("ij,ij->j", half, half)
        deviation: Floats = self._found.scale * np.sqrt(np.maximum(smooth, 1e-10) + self._own)
        return deviation
