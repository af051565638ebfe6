"""How uncertain each observed mean is, where only a few seeds say so."""

from __future__ import annotations

import numpy as np

from engines.objectives import Floats

_PRIOR_DEGREES = 8.0
"""Weight of the pooled estimate against a design's own, in degrees of freedom; three seeds have two."""


def pooled_variances(variances: Floats, num_seeds: Floats, pool: int | None = None) -> Floats:
    """Variance of each reported mean, drawn towards what all designs share.

    Validation errors are counts over few nodes, and three seeds often agree to the last node: their raw variance is
    then exactly 0, which would force a Gaussian process through that value; a variance from two degrees of freedom is
    off by a factor of ten easily. The per-seed variances are therefore pooled, and each design's own counts with its
    degrees of freedom against a fixed prior weight (the posterior mean under a scaled inverse chi-square prior).

    Args:
        variances: (n,) variance of each reported mean, NaN where unknown.
        num_seeds: (n,) seeds behind each mean, at least 1.
        pool: how many observations, from the first, are pooled; all by default. With a fixed number the variances of
            old observations do not change when new ones come.
    Returns:
        (n,); NaN everywhere when none of the pooled variances is known, so that the caller has to learn the noise.
    Source: Smyth 2004 (moderated variances).
    """
    stated = np.isfinite(variances)
    pooled_ones = stated & (np.arange(len(stated)) < (len(stated) if pool is None else pool))
    if not pooled_ones.any():
        return np.full_like(variances, np.nan)
    degrees = np.maximum(num_seeds - 1.0, 1.0)
    per_seed = np.where(stated, variances, 0.0) * num_seeds
    pooled = float((degrees * per_seed)[pooled_ones].sum() / degrees[pooled_ones].sum())
    own = np.where(stated, degrees, 0.0)
    result: Floats = (_PRIOR_DEGREES * pooled + own * per_seed) / (_PRIOR_DEGREES + own) / num_seeds
    return result
