"""Evaluator: what finds out how good a design is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from engines.trial import Outcome

D_contra = TypeVar("D_contra", contravariant=True)


class Evaluator(Protocol[D_contra]):
    """Scores designs by validation; test labels are out of its sight."""

    def evaluate(self, design: D_contra, seeds: Sequence[int]) -> Outcome:
        """Train the design once per seed and return its objectives.

        Raises:
            TrialFailure: the design cannot be evaluated; the message becomes the trial's reason.
        """
        ...
