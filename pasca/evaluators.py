"""Lets anything that can score a design be an evaluator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from engines.objectives import Objective
from engines.trial import Outcome
from search_space.errors import ConfigError, TrialFailure

D = TypeVar("D")


class CustomEvaluator(Generic[D]):
    """An evaluator made of a user's object or function.

    Args:
        inner: an object with `evaluate(design, seeds)`, or a function of a design or of a design and its seeds. It
            returns an Outcome, a mapping from objective names to values, or values in the order of the objectives.
        objectives: the run's.
    Raises:
        ConfigError: it is neither.
    """

    def __init__(self, inner: Any, objectives: Sequence[Objective]) -> None:
        self._call: Callable[..., Any] = inner.evaluate if hasattr(inner, "evaluate") else inner
        if not callable(self._call):
            raise ConfigError(f"an evaluator has a method evaluate(design, seeds) or is a function, got {inner!r}")
        self._takes_seeds = _takes_two(self._call)
        self._names = [objective.name for objective in objectives]

    def evaluate(self, design: D, seeds: Sequence[int]) -> Outcome:
        """Call what was given.

        Raises:
            TrialFailure: it returned something that is no outcome.
        """
        found = self._call(design, seeds) if self._takes_seeds else self._call(design)
        if isinstance(found, Outcome):
            return found
        if isinstance(found, Mapping):
            return Outcome(values=found)
        try:
            values = list(found)
        except TypeError:
            raise TrialFailure(
                f"the evaluator returned {found!r} instead of values of {', '.join(self._names)}"
            ) from None
        if len(values) != len(self._names):
            names = ", ".join(self._names)
            raise TrialFailure(
                f"the evaluator returned {len(values)} values for {len(self._names)} objectives: {names}"
            )
        return Outcome(values=dict(zip(self._names, values, strict=True)))


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with a design and its seeds."""
    try:
        inspect.signature(function).bind(object(), ())
    except TypeError:
        return False
    except ValueError:
        return True  # no signature to read, as for some built-in functions: call it as the protocol says
    return True
