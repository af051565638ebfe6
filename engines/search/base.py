"""Searcher: what proposes the next designs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from engines.history import History

D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Suggestion(Generic[D]):
    """A design to evaluate next, and what the searcher says of its choice.

    Attributes:
        design: never evaluated before and not running.
        details: JSON types, recorded with the trial: `method` (`initial`, `ehvi`, `random`, ...), predicted mean and
            deviation, the acquisition's value, `fallback` with its reason where the intended method could not be used.
    """

    design: D
    details: Mapping[str, Any] = field(default_factory=dict)


class Searcher(Protocol[D]):
    """Proposes designs. A pure function of its settings and the history: asking twice gives the same answer.

    That is what makes resuming exact: a resumed search suggests what the uninterrupted one would have. Interrupted
    trials may stand in the history and are to change nothing: what it says of designs and values leaves them out.
    """

    def ask(self, history: History[D], count: int = 1) -> list[Suggestion[D]]:
        """Propose up to `count` distinct designs that the history has neither evaluated nor running.

        Fewer than `count` come back only when the space has no more; an empty list means it is exhausted.
        """
        ...

    def statement(self) -> Mapping[str, Any]:
        """What the run's record says of this searcher (JSON types): name, settings, reference point once fixed."""
        ...
