"""Every seed of a run, derived from the run's one seed."""

from __future__ import annotations

import numpy as np

from engines.search.replication import Replication

_TRIALS, _RETRAINING = 0, 1


def trial_seeds(seed: int, repeats: int) -> tuple[int, ...]:
    """The seeds that every trial of a run trains with, so that designs are compared on equal terms.

    Returns:
        `repeats` distinct numbers in 0..2^32-1; fewer repeats give the first of the same numbers.
    """
    return _distinct(seed, _TRIALS, repeats, frozenset())


def retraining_seeds(seed: int, count: int, repeats: int) -> tuple[int, ...]:
    """Fresh seeds for the designs on the final front, none of which any record of a design has used."""
    return _distinct(seed, _RETRAINING, count, frozenset(trial_seeds(seed, repeats * Replication().most)))


def _distinct(seed: int, purpose: int, count: int, used: frozenset[int]) -> tuple[int, ...]:
    """`count` numbers that differ from one another and from those used."""
    found: dict[int, None] = {}
    # A longer state begins with the shorter one, so the first numbers do not depend on how many are drawn.
    drawn = count + len(used)
    while len(found) < count:
        state = np.random.SeedSequence([seed, purpose]).generate_state(max(drawn, 1))
        found = dict.fromkeys(int(number) for number in state if int(number) not in used)
        drawn *= 2
    return tuple(found)[:count]
