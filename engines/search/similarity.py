"""Similarities: how alike two designs are in one respect, from 0 to 1, as functions of a few parameters.

Each one looks at some columns of a design's features (its codes, then its descriptors) and compares distinct rows of
them. Parameters are unconstrained numbers with normal priors; a positive quantity is kept as its logarithm, a fraction
as its logit. `pull_back` turns the derivative of a loss by the similarities into one by the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engines.objectives import Floats
from search_space.space import Choice

_ROOT_5 = math.sqrt(5.0)


class Similarity(Protocol):
    """One factor of a kernel.

    Attributes:
        columns: the feature columns it looks at.
        prior_means, prior_deviations: (p,) normal prior of its parameters; fits start at the means.
    """

    @property
    def columns(self) -> tuple[int, ...]: ...

    @property
    def prior_means(self) -> Floats: ...

    @property
    def prior_deviations(self) -> Floats: ...

    def between(self, parameters: Floats, one: Floats, other: Floats) -> Floats:
        """Similarities of rows (a, len(columns)) and (b, len(columns)), shape (a, b); 1 between equal rows."""
        ...

    def pull_back(self, parameters: Floats, rows: Floats, slopes: Floats) -> Floats:
        """Derivative of a loss by the parameters, shape (p,).

        Args:
            rows: (a, len(columns)) distinct rows; slopes: (a, a) derivative of the loss by `between(rows, rows)`.
        """
        ...


@dataclass(frozen=True)
class Categorical:
    """exp(-(θ_a + θ_b)) for a ≠ b: one odd value (triangle) need not make the others strangers to one another.

    Code -1 (inactive) is a value like any other. `share` is how much of the usual difference is expected beforehand.
    """

    column: int
    num_values: int
    share: float = 1.0

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.column,)

    @property
    def prior_means(self) -> Floats:
        return np.full(self.num_values + 1, math.log(0.15 * self.share))

    @property
    def prior_deviations(self) -> Floats:
        return np.ones(self.num_values + 1)

    def between(self, parameters: Floats, one: Floats, other: Floats) -> Floats:
        a, b = one[:, 0].astype(np.int64), other[:, 0].astype(np.int64)
        theta = np.exp(parameters)
        similar: Floats = np.exp(-(theta[a + 1][:, None] + theta[b + 1][None, :]))
        similar[a[:, None] == b[None, :]] = 1.0
        return similar

    def pull_back(self, parameters: Floats, rows: Floats, slopes: Floats) -> Floats:
        places = rows[:, 0].astype(np.int64) + 1
        weighted = slopes * self.between(parameters, rows, rows)
        np.fill_diagonal(weighted, 0.0)
        by_theta = np.zeros(self.num_values + 1)
        by_theta[places] = -(weighted.sum(axis=0) + weighted.sum(axis=1))
        return by_theta * np.exp(parameters)


@dataclass(frozen=True)
class Ordered:
    """1 - ρ + ρ·Matérn-5/2(|u_a - u_b| / ℓ) with u the place of a value on a scale from 0 to 1.

    With relevance ρ below 1 designs far apart stay correlated; expanded over a product, this is an additive model with
    interactions of every order. Code -1 (inactive) is as far from every active value as exp(-θ).
    Parameters: log ℓ, logit ρ, log θ. `share` is how much of the usual difference is expected beforehand.
    """

    column: int
    places: tuple[float, ...]
    share: float = 1.0

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.column,)

    @property
    def prior_means(self) -> Floats:
        relevance = 0.5 * self.share
        return np.array([math.log(0.5), math.log(relevance / (1.0 - relevance)), math.log(0.3 * self.share)])

    @property
    def prior_deviations(self) -> Floats:
        return np.array([0.8, 1.5, 1.0])

    def between(self, parameters: Floats, one: Floats, other: Floats) -> Floats:
        return self._parts(parameters, one, other)[0]

    def _parts(self, parameters: Floats, one: Floats, other: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Similarities; Matérn part and its scaled distance; 1 where exactly one value is inactive."""
        a, b = one[:, 0].astype(np.int64), other[:, 0].astype(np.int64)
        places = np.asarray(self.places)
        relevance = 1.0 / (1.0 + math.exp(-parameters[1]))
        distance = np.abs(places[a][:, None] - places[b][None, :]) * math.exp(-parameters[0])
        smooth = matern(distance)
        mixed = ((a < 0)[:, None] != (b < 0)[None, :]).astype(np.float64)
        both = ((a < 0)[:, None] & (b < 0)[None, :]).astype(bool)
        similar = 1.0 - relevance + relevance * smooth
        similar = np.where(mixed > 0, math.exp(-math.exp(parameters[2])), similar)
        similar[both] = 1.0
        return similar, smooth, distance, mixed

    def pull_back(self, parameters: Floats, rows: Floats, slopes: Floats) -> Floats:
        _, smooth, distance, mixed = self._parts(parameters, rows, rows)
        relevance = 1.0 / (1.0 + math.exp(-parameters[1]))
        off = rows[:, 0] < 0
        active = slopes * ~(off[:, None] | off[None, :])
        theta = math.exp(parameters[2])
        return np.array(
            [
                relevance * float((active * matern_slope(distance)).sum()),
                relevance * (1.0 - relevance) * float((active * (smooth - 1.0)).sum()),
                -theta * math.exp(-theta) * float((slopes * mixed).sum()),
            ]
        )


@dataclass(frozen=True)
class Near:
    """Matérn-5/2 of the distance between descriptor vectors.

    Parameters: log ℓ_j, a length scale a column, or log ℓ, one for all of them where it is `shared`.
    """

    columns: tuple[int, ...]
    shared: bool = False
    median: float = 1.0

    @property
    def prior_means(self) -> Floats:
        # The typical distance grows with the root of the dimension; the scale that suits it does too. Columns that
        # share a scale are mostly alike, so that distances are those of a few dimensions.
        if self.shared:
            return np.array([math.log(2.0 * self.median)])
        return np.full(len(self.columns), math.log(self.median * math.sqrt(len(self.columns))))

    @property
    def prior_deviations(self) -> Floats:
        return np.ones(1 if self.shared else len(self.columns))

    def between(self, parameters: Floats, one: Floats, other: Floats) -> Floats:
        return matern(np.sqrt(_squares(one * np.exp(-parameters), other * np.exp(-parameters))))

    def pull_back(self, parameters: Floats, rows: Floats, slopes: Floats) -> Floats:
        scaled = rows * np.exp(-parameters)
        root = np.sqrt(_squares(scaled, scaled))
        if self.shared:
            return np.array([float((slopes * matern_slope(root)).sum())])
        # d matern / d log ℓ_j = (5/3)(1 + √5 r) exp(-√5 r) · (u_j - v_j)² / ℓ_j²
        weight = slopes * (5.0 / 3.0) * (1.0 + _ROOT_5 * root) * np.exp(-_ROOT_5 * root)
        total = weight.sum(axis=0) + weight.sum(axis=1)
        result: Floats = total @ scaled**2 - 2.0 * np.einsum("aj,ab,bj->j", scaled, weight, scaled, optimize=True)
        return result


def _squares(one: Floats, other: Floats) -> Floats:
    squares = (one * one).sum(1)[:, None] + (other * other).sum(1)[None, :] - 2.0 * one @ other.T
    result: Floats = np.maximum(squares, 0.0)
    return result


def matern(distance: Floats) -> Floats:
    """Matérn-5/2 correlation at a scaled distance."""
    root = _ROOT_5 * distance
    result: Floats = (1.0 + root + root * root / 3.0) * np.exp(-root)
    return result


def matern_slope(distance: Floats) -> Floats:
    """Derivative of `matern(distance / ℓ)` by log ℓ, at the scaled distance."""
    root = _ROOT_5 * distance
    result: Floats = root * root * (1.0 + root) * np.exp(-root) / 3.0
    return result


def places(choice: Choice) -> tuple[float, ...]:
    """Places of an ordered choice's values on a scale from 0 to 1; a position counts logarithmically.

    The first steps of propagation, or the first layers, change a design more than the tenth.
    """
    if len(choice.values) < 2:
        return (0.0,) * len(choice.values)
    if choice.kind == "number":
        scale = np.asarray(choice.values, dtype=np.float64)
        scale = (scale - scale[0]) / (scale[-1] - scale[0])
    else:
        scale = np.log1p(np.arange(len(choice.values), dtype=np.float64))
        scale /= scale[-1]
    return tuple(scale.tolist())


def similarities(choices: Sequence[Choice], share: float = 1.0) -> list[Similarity]:
    """One similarity a choice, by its kind.

    Args:
        share: of the usual difference that a choice is expected to make; below 1 where many choices each make little,
            as a product of many usual similarities would make all designs strangers.
    """
    return [
        Categorical(j, len(choice.values), share) if choice.kind == "categorical" else Ordered(j, places(choice), share)
        for j, choice in enumerate(choices)
    ]
