"""Kernel: a sum of products of similarities, with the derivatives that a fit needs.

    k(x, x') = Σ_t s_t Π_f similarity_f(x, x')

Parameters are one flat vector: for each term log s_t, then those of its similarities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engines.objectives import Floats
from engines.search.similarity import Similarity


@dataclass(frozen=True)
class Term:
    """One product of similarities, and the prior of its variance s: log s ~ N(log variance, spread²)."""

    factors: tuple[Similarity, ...]
    variance: float = 1.0
    spread: float = 1.0


@dataclass(frozen=True)
class Kernel:
    """A sum of terms.

    Attributes:
        terms: at least one.
        prior_means, prior_deviations: (p,) normal prior of all parameters.
    """

    terms: tuple[Term, ...]
    prior_means: Floats = field(init=False)
    prior_deviations: Floats = field(init=False)

    def __post_init__(self) -> None:
        means: list[Floats] = []
        deviations: list[Floats] = []
        for term in self.terms:
            means += [np.array([math.log(term.variance)]), *(factor.prior_means for factor in term.factors)]
            deviations += [np.array([term.spread]), *(factor.prior_deviations for factor in term.factors)]
        object.__setattr__(self, "prior_means", np.concatenate(means))
        object.__setattr__(self, "prior_deviations", np.concatenate(deviations))

    def split(self, parameters: Floats) -> list[tuple[float, list[Floats]]]:
        """For each term its variance s_t and the parameters of its similarities."""
        parts: list[tuple[float, list[Floats]]] = []
        start = 0
        for term in self.terms:
            variance = math.exp(parameters[start])
            start += 1
            of_factors: list[Floats] = []
            for factor in term.factors:
                size = len(factor.prior_means)
                of_factors.append(parameters[start : start + size])
                start += size
            parts.append((variance, of_factors))
        return parts

    def variance(self, parameters: Floats) -> float:
        """k(x, x), the same for every design."""
        return sum(variance for variance, _ in self.split(parameters))

    def matrix(self, parameters: Floats, one: Floats, other: Floats) -> Floats:
        """k of every pair of rows of features, (a, D) and (b, D) -> (a, b)."""
        total = np.zeros((len(one), len(other)))
        for term, (variance, of_factors) in zip(self.terms, self.split(parameters), strict=True):
            product = np.full((len(one), len(other)), variance)
            for factor, own in zip(term.factors, of_factors, strict=True):
                product *= factor.between(own, one[:, factor.columns], other[:, factor.columns])
            total += product
        return total


@dataclass(frozen=True)
class _Part:
    """What n designs have in one similarity's columns: distinct rows, which one each has, and that as 0/1 (n, rows)."""

    rows: Floats
    pairs: tuple[NDArray[np.int64], ...]
    member: Floats


@dataclass(frozen=True)
class Evaluated:
    """A kernel matrix (n, n), its terms, and the similarities of distinct rows in each term."""

    matrix: Floats
    products: Sequence[Floats]
    similar: Sequence[Sequence[Floats]]


class FixedDesigns:
    """The kernel matrix of n fixed designs for many values of the parameters, and its derivatives.

    Args:
        X: (n, D) features.
    """

    def __init__(self, kernel: Kernel, X: Floats) -> None:
        self._kernel = kernel
        self._parts = [[_part(X[:, factor.columns]) for factor in term.factors] for term in kernel.terms]
        self._n = len(X)

    def evaluate(self, parameters: Floats) -> Evaluated:
        """The matrix at the parameters."""
        products, similar = [], []
        for term, parts, (variance, of_factors) in zip(
            self._kernel.terms, self._parts, self._kernel.split(parameters), strict=True
        ):
            product = np.full((self._n, self._n), variance)
            of_term = []
            for factor, part, own in zip(term.factors, parts, of_factors, strict=True):
                small = factor.between(own, part.rows, part.rows)
                product *= small[part.pairs]
                of_term.append(small)
            products.append(product)
            similar.append(of_term)
        return Evaluated(np.sum(products, axis=0), products, similar)

    def pull_back(self, parameters: Floats, evaluated: Evaluated, slopes: Floats) -> Floats:
        """Derivative of a loss by the parameters, given its derivative by the matrix (n, n), shape (p,)."""
        gradient: list[Floats] = []
        for t, (term, (_, of_factors)) in enumerate(
            zip(self._kernel.terms, self._kernel.split(parameters), strict=True)
        ):
            weighted = slopes * evaluated.products[t]
            gradient.append(np.array([weighted.sum()]))
            for factor, part, small, own in zip(
                term.factors, self._parts[t], evaluated.similar[t], of_factors, strict=True
            ):
                # By the similarity of two distinct rows: the sum over pairs that have them, divided by the similarity.
                pooled = part.member.T @ weighted @ part.member
                # A similarity that underflows to 0 takes its pairs out of the sum: nothing is left to pull back.
                slopes_of_similar = np.divide(pooled, small, out=np.zeros_like(pooled), where=small > 0.0)
                gradient.append(factor.pull_back(own, part.rows, slopes_of_similar))
        return np.concatenate(gradient)


def _part(columns: Floats) -> _Part:
    rows, place = np.unique(columns, axis=0, return_inverse=True)
    place = place.reshape(-1).astype(np.int64)
    member = np.zeros((len(columns), len(rows)))
    member[np.arange(len(columns)), place] = 1.0
    return _Part(rows, np.ix_(place, place), member)
