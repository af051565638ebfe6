"""Warping: gains on a scale on which a Gaussian process describes them better.

Errors of bad designs have a long tail: a few are so far off that a Gaussian process bends everything else to reach
them. The tail is drawn in, while the better half of the observations keeps its scale, so that an improvement counts
as before:

    w(g) = g for g >= knee,    knee - s·log(1 + (knee - g)/s) below.

Whether that pays is decided by the evidence: a warp's density of the observations is that of the warped ones times the
derivative of w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engines.objectives import Floats
from engines.search.fitting import fit
from engines.search.kernel import Kernel


@dataclass(frozen=True)
class Warp:
    """A monotone scale for gains; the identity where `scale` is infinite.

    Attributes:
        knee: the gain below which values are drawn in.
        scale: s, how far below the knee the drawing in is felt.
    """

    knee: float = 0.0
    scale: float = np.inf

    def __call__(self, gains: Floats) -> Floats:
        """w of gains of any shape."""
        if np.isinf(self.scale):
            return gains
        below = np.maximum(self.knee - gains, 0.0)
        warped: Floats = np.where(below > 0.0, self.knee - self.scale * np.log1p(below / self.scale), gains)
        return warped

    def inverse(self, warped: Floats) -> Floats:
        """The gains that `w` takes to these values."""
        if np.isinf(self.scale):
            return warped
        below = np.maximum(self.knee - warped, 0.0)
        gains: Floats = np.where(below > 0.0, self.knee - self.scale * np.expm1(below / self.scale), warped)
        return gains

    def slope(self, gains: Floats) -> Floats:
        """Derivative of w, from 0 to 1."""
        slope: Floats = 1.0 / (1.0 + np.maximum(self.knee - gains, 0.0) / self.scale)
        return slope


IDENTITY = Warp()


def tail_warp(gains: Floats) -> Warp | None:
    """The warp that keeps the better half: the knee at the median, the scale from there to the upper quartile.

    None where the upper quartile is the median, so that no scale is given.
    """
    median, quartile = np.quantile(gains, [0.5, 0.75])
    if not quartile - median > 1e-12 * max(1.0, abs(float(median))):
        return None
    return Warp(float(median), float(quartile - median))


def choose_warp(kernel: Kernel, X: Floats, y: Floats, noise: Floats) -> Warp:
    """Fit with and without drawing in the tail, and return the warp that explains the observations better.

    Args:
        X, y, noise: as for `fit`; the variances are those of y as measured.
    Raises:
        FitFailure: as for `fit`.
    """
    tail = tail_warp(y)
    if tail is None:
        return IDENTITY
    plain, warped = (fit(kernel, X, warp(y), noise * warp.slope(y) ** 2) for warp in (IDENTITY, tail))
    # From the densities of standardised values to those of the values themselves.
    gain = warped.log_density - plain.log_density - len(y) * math.log(warped.scale / plain.scale)
    return tail if gain + float(np.log(tail.slope(y)).sum()) > 0.0 else IDENTITY
