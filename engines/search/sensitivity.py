"""What each choice of a space does to a quantity that has a value for every design.

All averages run over the whole space, every distinct design counting once. Shares are those of Sobol's decomposition:
`alone` is the share of the variance that knowing this choice removes (first-order index), `with_others` the share that
remains when everything but this choice is known (total index). A choice that is switched off has the value None. The
choices of a space with stages that can be switched off are not independent, so the shares need not add up to one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.objectives import Floats
from search_space.errors import ShapeError
from search_space.space import Choice, Codes, Space

Contrast = Callable[[Floats], tuple[float, float]]
"""Mean and standard deviation of a weighted sum over all designs, from their weights; see `Posterior.contrast`."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one value of a choice does.

    Attributes:
        value: of the choice; None where it is switched off.
        num_designs: designs with that value.
        mean: average over them.
        deviation: standard deviation of that average's difference from the average of all designs; 0 where the
            quantity is known exactly.
        best: smallest value among them.
    """

    value: Any
    num_designs: int
    mean: float
    deviation: float
    best: float


@dataclass(frozen=True, slots=True)
class Dimension:
    """What one choice does.

    Attributes:
        name: of the choice.
        alone, with_others: shares of the variance, 0 to 1; 0 for a quantity that does not vary.
        effects: one for each value that some design has, in the order of the choice, switched off first.
    """

    name: str
    alone: float
    with_others: float
    effects: tuple[Effect, ...]


def decompose(space: Space[Any], values: Floats, contrast: Contrast | None = None) -> tuple[Dimension, ...]:
    """Split up what varies over a space by choice.

    Args:
        values: (len(space),) of which smaller is better.
        contrast: gives the uncertainty of averages; None where the values are exact.
    Raises:
        ShapeError: there is not one value for each design.
    """
    if values.shape != (len(space),):
        raise ShapeError(f"a space of {len(space)} designs needs as many values, got shape {values.shape}")
    codes = space.codes()
    return tuple(_dimension(j, choice, codes, values, contrast) for j, choice in enumerate(space.choices))


def _dimension(j: int, choice: Choice, codes: Codes, values: Floats, contrast: Contrast | None) -> Dimension:
    column = codes[:, j]
    effects = []
    for code in np.unique(column).tolist():
        members = column == code
        count = int(members.sum())
        spread = 0.0
        if contrast is not None and count < len(values):
            spread = contrast(members / count - 1.0 / len(values))[1]
        value = None if code < 0 else choice.values[code]
        effects.append(Effect(value, count, float(values[members].mean()), spread, float(values[members].min())))
    total = float(values.var())
    if not total > 1e-24 * max(1.0, float(np.abs(values).max()) ** 2):
        return Dimension(choice.name, 0.0, 0.0, tuple(effects))
    between = sum(effect.num_designs * (effect.mean - float(values.mean())) ** 2 for effect in effects) / len(values)
    return Dimension(choice.name, between / total, _within(_others(codes, j), values) / total, tuple(effects))


def _others(codes: Codes, j: int) -> NDArray[np.int64]:
    """One number for each design, (N',): equal where all choices but j are."""
    numbers = np.zeros(len(codes), dtype=np.int64)
    for k in range(codes.shape[1]):
        if k != j:
            column = codes[:, k].astype(np.int64) + 1
            numbers = numbers * (int(column.max()) + 1) + column
    return numbers


def _within(groups: NDArray[np.int64], values: Floats) -> float:
    """Mean squared distance of the values from the means of their groups."""
    _, group_of = np.unique(groups, return_inverse=True)
    means = np.bincount(group_of, weights=values) / np.bincount(group_of)
    return float(np.mean((values - means[group_of]) ** 2))
