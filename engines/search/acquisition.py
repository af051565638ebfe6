"""Expected hypervolume improvement (EHVI), exact for any number of objectives that are independent or known.

Values are gains: larger is better. The region that no front point dominates, above the reference point, is cut into
boxes [l, u). A design with values y improves the hypervolume by the sum over boxes of Π_j (min(u_j, y_j) - l_j)+, and
for independent Gaussian y_j ~ N(μ_j, σ_j²) the expectation of each factor is ψ(l_j) - ψ(u_j) with

    ψ(a) = E(y_j - a)+ = σ_j·h((μ_j - a)/σ_j),    h(z) = φ(z) + z·Φ(z).

A known objective has σ = 0 and keeps its plain factor. With one known cost and one uncertain objective the boxes are
the cost strips between neighbouring front points, and the sum is the piecewise one of the design notes. All of it is
done in logarithms, so that improvements far too small for a float64 still rank.

Sources: Emmerich, Deutz & Klinkenberg 2011 (EHVI); Yang et al. 2019 (box form); Ament et al. 2023 (logarithms).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from engines.objectives import Floats
from engines.search.pareto import non_dominated

_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_FAR = -1.0e3  # below it, h(z) is given by its asymptotic series to float64 accuracy


def log_h(z: Floats) -> Floats:
    """Logarithm of h(z) = φ(z) + z·Φ(z), accurate for every z; any shape."""
    z = np.asarray(z, dtype=np.float64)
    result = np.asarray(-0.5 * z * z - _LOG_ROOT_2PI)
    upper = z >= -1.0
    near = z[upper]
    result[upper] = np.log(np.exp(result[upper]) + near * ndtr(near))
    lower = ~upper & (z > _FAR)
    t = -z[lower]
    result[lower] += np.log1p(-t * np.sqrt(np.pi / 2.0) * erfcx(t / np.sqrt(2.0)))
    far = z <= _FAR
    t = z[far]
    result[far] += np.log1p(-3.0 / (t * t)) - 2.0 * np.log(-t)
    return result


def open_boxes(Y: Floats, reference: Floats) -> tuple[Floats, Floats]:
    """Cut what the rows do not dominate, above the reference point, into disjoint boxes.

    Args:
        Y: (n, m) gains; rows that are not above the reference point in every column are left out; n may be 0.
        reference: (m,).
    Returns:
        Lower and upper corners, each of shape (boxes, m); upper corners may be infinite.
    """
    m = len(reference)
    above = Y[(reference < Y).all(axis=1)]
    if not len(above):
        return reference[None, :].copy(), np.full((1, m), np.inf)
    front = np.unique(above[non_dominated(above)], axis=0)
    if m == 1:
        return front[-1:].copy(), np.full((1, 1), np.inf)
    if m == 2:
        # Ascending in column 0, so descending in column 1: strip i lies between points i-1 and i in column 0, above
        # point i in column 1; the last strip, right of all points, starts from the reference point.
        edges = np.concatenate((reference[:1], front[:, 0], [np.inf]))
        floors = np.concatenate((front[:, 1], reference[1:]))
        lower = np.column_stack((edges[:-1], floors))
        return lower, np.column_stack((edges[1:], np.full(len(floors), np.inf)))
    import torch
    from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning

    boxes = FastNondominatedPartitioning(torch.from_numpy(reference), torch.from_numpy(front)).hypercell_bounds
    return boxes[0].numpy(), boxes[1].numpy()


def log_ehvi(means: Floats, deviations: Floats, lower: Floats, upper: Floats) -> Floats:
    """Logarithm of the expected hypervolume improvement of each design.

    Args:
        means: (n, m) gains; exact values where the objective is known.
        deviations: (n, m) standard deviations of independent Gaussians; 0 where the value is known.
        lower, upper: boxes as from `open_boxes`, each (boxes, m).
    Returns:
        (n,), -inf where nothing can be gained.
    """
    n, m = means.shape
    total = np.zeros((n, len(lower)))
    for j in range(m):
        known = deviations[:, j] == 0.0
        factor = np.empty((n, len(lower)))
        if known.any():
            gain = np.minimum(upper[:, j], means[known, j, None]) - lower[:, j]
            factor[known] = _log(np.maximum(gain, 0.0))
        if not known.all():
            factor[~known] = _log_expected_part(means[~known, j], deviations[~known, j], lower[:, j], upper[:, j])
        total += factor
    return _log_sum(total)


def log_ehvi_bound(
    means: Floats, deviations: Floats, uncertain: NDArray[np.bool_], front: Floats, reference: Floats
) -> Floats:
    """A cheap upper bound on `log_ehvi`, for deviations that may themselves be upper bounds.

    EHVI grows with every deviation, since the improvement is convex in each value. The improvement is at most the
    product over objectives of what lies above a floor; the floor is the reference point or, for the only uncertain
    objective, the best front value among points that are at least as good in all known ones.

    Args:
        means, deviations: (n, m) as in `log_ehvi`.
        uncertain: (m,) which objectives are not known.
        front: (k, m) points whose boxes are used; k may be 0.
        reference: (m,).
    Returns:
        (n,).
    """
    n, m = means.shape
    bound = np.zeros(n)
    for j in range(m):
        if not uncertain[j]:
            bound += _log(np.maximum(means[:, j] - reference[j], 0.0))
            continue
        floor = np.full(n, reference[j])
        if uncertain.sum() == 1:
            floor = np.maximum(floor, _best_of_covering(front, means[:, ~uncertain], uncertain))
        bound += np.log(deviations[:, j]) + log_h((means[:, j] - floor) / deviations[:, j])
    return bound


def _best_of_covering(front: Floats, known: Floats, uncertain: NDArray[np.bool_]) -> Floats:
    """Best uncertain value among front points at least as good in all known objectives (n, m - 1); -inf without one."""
    best = np.full(len(known), -np.inf)
    if known.shape[1] == 1 and len(front):
        at_known, at_uncertain = front[:, ~uncertain][:, 0], front[:, uncertain][:, 0]
        order = np.argsort(-at_known)
        running_best = np.maximum.accumulate(at_uncertain[order])
        covering = np.searchsorted(-at_known[order], -known[:, 0], side="right")
        best[covering > 0] = running_best[covering[covering > 0] - 1]
        return best
    for point in front:
        covers = (point[~uncertain] >= known).all(axis=1)
        best[covers] = np.maximum(best[covers], point[uncertain][0])
    return best


def log_feasible(means: Floats, deviations: Floats, at_least: float) -> Floats:
    """Logarithm of the probability that a Gaussian gain reaches a bound, for means and deviations of shape (n,)."""
    return np.asarray(log_ndtr((means - at_least) / deviations), dtype=np.float64)


def _log_expected_part(mean: Floats, deviation: Floats, lower: Floats, upper: Floats) -> Floats:
    """log(ψ(l) - ψ(u)) for every design and box, shape (n, boxes); each distinct corner is evaluated once."""
    corners, place = np.unique(np.concatenate((lower, upper[np.isfinite(upper)])), return_inverse=True)
    log_psi = np.log(deviation)[:, None] + log_h((mean[:, None] - corners) / deviation[:, None])
    result = log_psi[:, place[: len(lower)]]
    finite = np.isfinite(upper)
    if finite.any():
        gap = log_psi[:, place[len(lower) :]] - result[:, finite]
        result[:, finite] += _log(-np.expm1(np.minimum(gap, 0.0)))
    return result


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _log_sum(logs: Floats) -> Floats:
    """log Σ exp over the last axis; -inf where every term is."""
    top = logs.max(axis=-1)
    base = np.where(np.isfinite(top), top, 0.0)
    return base + _log(np.exp(logs - base[..., None]).sum(axis=-1))
