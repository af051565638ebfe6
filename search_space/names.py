"""Names of operators: what a graph or message aggregator is called, and what numbers its name carries.

A graph aggregator is a kind, some with a number, and two optional numbers of its normalisation:

    ppr0.1_r0.25_loops2
    └─┘└─┘ └───┘ └────┘
    kind   exponent of the row degrees' share (1/2 if not said), weight of a self-loop (1 if not said)

`augmented`, `pprA` and `triangle` are the paper's. Every name has one spelling, which parses back.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from search_space.errors import DesignError

PAPER_AGGREGATORS = ("augmented", "ppr0.1", "ppr0.2", "ppr0.3", "triangle")
PAPER_MESSAGES = ("none", "mean", "max", "concat", "weighted", "adaptive")
MESSAGES = (*PAPER_MESSAGES, "sum", "recursive", "jk")
"""All joins without a number of their own; `decayA` is the one that has one."""
LEARNING_MESSAGES = frozenset({"weighted", "adaptive", "recursive", "jk"})
"""Joins with trainable weights."""

PRE_KINDS = ("augmented", "ppr", "triangle", "heat", "highpass", "twochannel")
"""Graph aggregators of features."""
POST_KINDS = ("augmented", "ppr", "triangle", "heat", "cs")
"""Graph aggregators of predictions; a high-pass step would make probabilities negative."""
NUMBERED_KINDS = frozenset({"ppr", "heat", "cs"})
"""Kinds that need a number between 0 and 1."""
USUAL_EXPONENT, USUAL_LOOPS = 0.5, 1.0

NORMALISATIONS = ("row", "symmetric", "l2", "standard", "none")
"""Ways of normalising features before they propagate."""

_NUMBER = r"\d*\.?\d+(?:e-?\d+)?"
_AGGREGATOR = re.compile(
    rf"(?P<kind>[a-z]+?)(?P<strength>{_NUMBER})?(?:_r(?P<exponent>{_NUMBER}))?(?:_loops(?P<loops>{_NUMBER}))?"
)
_DECAY = re.compile(rf"decay({_NUMBER})")
_MEANINGS = {
    "ppr": "personalised PageRank needs 0 < alpha < 1",
    "heat": "a heat step needs 0 < step < 1",
    "cs": "Correct & Smooth needs 0 < alpha < 1",
}


@dataclass(frozen=True, slots=True)
class AggregatorName:
    """A graph aggregator's name, taken apart.

    Attributes:
        kind: one of `PRE_KINDS` or `POST_KINDS`.
        strength: restart probability of `ppr`, step of `heat`, α of `cs`; None for the others.
        exponent: r of D̃^(r-1) Ã D̃^(-r), 0 to 1.
        loops: weight of the self-loops in Ã = A + loops·I, 0 or more.
    Raises:
        DesignError: the kind is unknown, or a number is missing, too many or out of range.
    """

    kind: str
    strength: float | None = None
    exponent: float = USUAL_EXPONENT
    loops: float = USUAL_LOOPS

    def __post_init__(self) -> None:
        if self.kind not in PRE_KINDS and self.kind not in POST_KINDS:
            raise _unknown(self.kind)
        if (self.kind in NUMBERED_KINDS) != (self.strength is not None):
            wants = "a number, as in " + self.kind + "0.1" if self.kind in NUMBERED_KINDS else "no number"
            raise DesignError(f"graph aggregator {self.kind} takes {wants}; got {self.strength}")
        if self.strength is not None and not 0.0 < self.strength < 1.0:
            raise DesignError(f"{_MEANINGS[self.kind]}, got '{self.kind}{self.strength:g}'")
        if not 0.0 <= self.exponent <= 1.0:
            raise DesignError(f"the exponent r of a graph aggregator lies from 0 to 1, got {self.exponent:g}")
        if not 0.0 <= self.loops < math.inf:
            raise DesignError(f"the weight of self-loops is a number of at least 0, got {self.loops:g}")

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, name: str) -> AggregatorName:
        """Read a name in any spelling.

        Raises:
            DesignError: as for the class.
        """
        match = _AGGREGATOR.fullmatch(name)
        if match is None or (match["kind"] not in PRE_KINDS and match["kind"] not in POST_KINDS):
            raise _unknown(name)
        if match["strength"] is not None and match["kind"] in _MEANINGS and not 0.0 < float(match["strength"]) < 1.0:
            raise DesignError(f"{_MEANINGS[match['kind']]}, got {name!r}")
        return cls(
            match["kind"],
            None if match["strength"] is None else _rounded(match["strength"]),
            USUAL_EXPONENT if match["exponent"] is None else _rounded(match["exponent"]),
            USUAL_LOOPS if match["loops"] is None else _rounded(match["loops"]),
        )

    def __str__(self) -> str:
        return (f"{self.kind}" if self.strength is None else f"{self.kind}{self.strength:g}") + self.normalisation

    @property
    def normalisation(self) -> str:
        """The part of the name that says how the matrix is normalised; empty as usual."""
        exponent = "" if self.exponent == USUAL_EXPONENT else f"_r{self.exponent:g}"
        return exponent + ("" if self.loops == USUAL_LOOPS else f"_loops{self.loops:g}")

    @property
    def cost_key(self) -> str:
        """A name whose matrix takes as long to build and to multiply by: exponents and weights do not count.

        Only whether there are self-loops does, where they are all of the diagonal.
        """
        if self.kind in ("heat", "highpass", "twochannel"):
            return str(AggregatorName(self.kind, 0.5 if self.kind == "heat" else None))
        kind = "triangle" if self.kind == "triangle" else "augmented"
        return str(AggregatorName(kind, None, USUAL_EXPONENT, USUAL_LOOPS if self.loops else 0.0))


def _rounded(text: str) -> float:
    """A number with as many digits as a name shows, so that names of equal numbers are equal."""
    return float(f"{float(text):g}")


def _unknown(name: str) -> DesignError:
    return DesignError(
        f"unknown graph aggregator {name!r}; choose from: augmented, pprA with 0 < A < 1 (as in ppr0.1), triangle, "
        "heatS with 0 < S < 1, highpass, twochannel, csA with 0 < A < 1; each also with an exponent or self-loops of "
        "its own, as in augmented_r0.25_loops2"
    )


def canonical_aggregator(name: str) -> str:
    """Return the one spelling of a graph aggregator's name (`ppr0.10` becomes `ppr0.1`).

    Raises:
        DesignError: there is no such aggregator, or a number in its name is out of range.
    """
    return str(AggregatorName.parse(name))


def restart_probability(aggregator: str) -> float | None:
    """Return α of a personalised PageRank aggregator, or None for any other name."""
    parsed = AggregatorName.parse(aggregator)
    return parsed.strength if parsed.kind == "ppr" else None


def canonical_message(name: str) -> str:
    """Return the one spelling of a message aggregator's name.

    Raises:
        DesignError: there is no such aggregator, or its decay is not in (0, 1).
    """
    if name in MESSAGES:
        return name
    match = _DECAY.fullmatch(name)
    if match is None:
        raise DesignError(
            f"unknown message aggregator {name!r}; choose from: {', '.join(MESSAGES)}, "
            "decayA with 0 < A < 1 (as in decay0.1)"
        )
    alpha = float(match[1])
    if not 0.0 < alpha < 1.0:
        raise DesignError(f"decay needs 0 < alpha < 1, got {name!r}")
    return f"decay{alpha:g}"


def decay_rate(message: str) -> float | None:
    """Return α of a fixed-decay message aggregator, or None for any other canonical name."""
    match = _DECAY.fullmatch(message)
    return None if match is None else float(match[1])
