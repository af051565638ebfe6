"""Fitting: the hyperparameters of a Gaussian process with the largest posterior density.

Written out instead of left to a library, because a search refits after almost every evaluation: with derivatives in
closed form one step costs one Cholesky factor, see docs/decisions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from engines.objectives import Floats
from engines.search.kernel import FixedDesigns, Kernel

LEAST_NOISE = 1e-6
"""Smallest noise variance in units of the targets' variance: keeps the Cholesky factor sound."""

_NUGGET_PRIOR = (math.log(0.02), 1.5)
_FARTHEST = 5.0  # prior deviations that a parameter may move from its prior mean
_MAX_STEPS = 80
_LEAST_GAIN = 1e-6  # of a step, relative to the loss: a ten-thousandth of a nat changes no prediction


class FitFailure(RuntimeError):
    """The model could not be fitted; the message says why."""


@dataclass(frozen=True)
class Hyperparameters:
    """What a fit found. Targets are standardised as (y - centre) / scale.

    Attributes:
        parameters: of the kernel.
        nugget: τ², standardised: variance of what single designs differ by from all that resemble them.
        mean: prior mean, standardised.
        centre, scale: in the unit of the targets.
        log_density: log posterior density of the parameters up to a constant, for comparing fits to the same data.
    """

    parameters: Floats
    nugget: float
    mean: float
    centre: float
    scale: float
    log_density: float


def fit(kernel: Kernel, X: Floats, y: Floats, noise: Floats) -> Hyperparameters:
    """Maximise the posterior density from the prior means, so that the result depends on the arguments alone.

    Args:
        X: (n, D) features; y: (n,) targets, finite.
        noise: (n,) variances of the targets, NaN where unknown.
    Raises:
        FitFailure: the optimiser ended at something that is not finite.
    """
    centre, scale = float(y.mean()), float(y.std())
    if not scale > 1e-12 * max(1.0, abs(centre)):
        scale = 1.0
    loss = Loss(kernel, X, (y - centre) / scale, np.where(np.isnan(noise), 0.0, noise) / scale**2 + LEAST_NOISE)
    bounds = list(
        zip(
            loss.prior_means - _FARTHEST * loss.prior_deviations,
            loss.prior_means + _FARTHEST * loss.prior_deviations,
            strict=True,
        )
    )
    found = minimize(
        loss,
        loss.prior_means,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": _MAX_STEPS, "ftol": _LEAST_GAIN},
    )
    if not (math.isfinite(found.fun) and np.isfinite(found.x).all()):
        raise FitFailure(f"the optimiser ended at a loss of {found.fun}")
    return Hyperparameters(found.x[:-2], math.exp(found.x[-2]), float(found.x[-1]), centre, scale, -float(found.fun))


class Loss:
    """Negative log posterior density of (kernel parameters, log nugget, mean), with its gradient."""

    def __init__(self, kernel: Kernel, X: Floats, y: Floats, noise: Floats) -> None:
        self._designs = FixedDesigns(kernel, X)
        self._y, self._noise = y, noise
        self.prior_means = np.append(kernel.prior_means, [_NUGGET_PRIOR[0], 0.0])
        self.prior_deviations = np.append(kernel.prior_deviations, [_NUGGET_PRIOR[1], 1.0])

    def __call__(self, parameters: Floats) -> tuple[float, Floats]:
        """The loss and its gradient, shape (p,); infinite where the matrix is not positive definite."""
        kernel_parameters, nugget, mean = parameters[:-2], math.exp(parameters[-2]), parameters[-1]
        evaluated = self._designs.evaluate(kernel_parameters)
        matrix = evaluated.matrix
        matrix[np.diag_indices_from(matrix)] += self._noise + nugget
        try:
            factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return math.inf, np.zeros_like(parameters)
        residual = self._y - mean
        weights = cho_solve((factor, True), residual, check_finite=False)
        inverse, _ = dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        slopes = 0.5 * (inverse - np.outer(weights, weights))
        away = (parameters - self.prior_means) / self.prior_deviations
        loss = 0.5 * float(residual @ weights) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(away @ away)
        gradient = np.concatenate(
            (
                self._designs.pull_back(kernel_parameters, evaluated, slopes),
                [nugget * float(np.trace(slopes)), -float(weights.sum())],
            )
        )
        return loss, gradient + away / self.prior_deviations
