"""Architecture: one decoupled design as named choices, with a text form that parses back.

A design has three stages (paper: SGAP): graph pre-processing, a dense transform, graph post-processing.

    ppr0.1^6/weighted/mlp-3/augmented^4
    └─────┘ └──────┘ └───┘ └─────────┘
    pre_aggregator^k_pre / message / mlp-k_trans / post_aggregator^k_post

A stage that is switched off is written `-`. This file knows the names; `assembly.py` knows what they build.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from search_space.errors import DesignError

PAPER_AGGREGATORS = ("augmented", "ppr0.1", "ppr0.2", "ppr0.3", "triangle")
PAPER_MESSAGES = ("none", "mean", "max", "concat", "weighted", "adaptive")

_PPR = re.compile(r"ppr(\d*\.?\d+(?:e-?\d+)?)")
_DECAY = re.compile(r"decay(\d*\.?\d+(?:e-?\d+)?)")
_STEPS = re.compile(r"(?P<name>.+)\^(?P<count>\d{1,4})")
_MLP = re.compile(r"mlp-(\d{1,4})")


def canonical_aggregator(name: str) -> str:
    """Return the one spelling of a graph aggregator's name (`ppr0.10` becomes `ppr0.1`).

    Raises:
        DesignError: there is no such aggregator, or its restart probability is not in (0, 1).
    """
    if name in ("augmented", "triangle"):
        return name
    match = _PPR.fullmatch(name)
    if match is None:
        raise DesignError(
            f"unknown graph aggregator {name!r}; choose from: augmented, pprA with 0 < A < 1 (as in ppr0.1), triangle"
        )
    alpha = float(match[1])
    if not 0.0 < alpha < 1.0:
        raise DesignError(f"personalised PageRank needs 0 < alpha < 1, got {name!r}")
    return f"ppr{alpha:g}"


def restart_probability(aggregator: str) -> float | None:
    """Return α of a personalised PageRank aggregator, or None for any other canonical name."""
    match = _PPR.fullmatch(aggregator)
    return None if match is None else float(match[1])


def canonical_message(name: str) -> str:
    """Return the one spelling of a message aggregator's name.

    Raises:
        DesignError: there is no such aggregator, or its decay is not in (0, 1).
    """
    if name in PAPER_MESSAGES:
        return name
    match = _DECAY.fullmatch(name)
    if match is None:
        raise DesignError(
            f"unknown message aggregator {name!r}; choose from: {', '.join(PAPER_MESSAGES)}, "
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


@dataclass(frozen=True, slots=True, order=True)
class Architecture:
    """One design; always canonical, so equal designs compare and hash equal.

    The choices of a stage that is switched off vanish on construction: with `k_pre` 0 there is neither an aggregator
    nor anything to join, with `k_post` 0 there is no second aggregator.

    Attributes:
        k_pre: propagation steps before training, 0 or more.
        pre_aggregator: graph aggregator of those steps; None when `k_pre` is 0.
        message: how hops 0..k_pre are joined; None when `k_pre` is 0.
        k_trans: linear layers of the transform, 1 or more.
        k_post: propagation steps after training, 0 or more.
        post_aggregator: graph aggregator of those steps; None when `k_post` is 0.
    Raises:
        DesignError: a name is unknown, a count is out of range, or an active stage misses its choice.
    """

    k_pre: int
    pre_aggregator: str | None
    message: str | None
    k_trans: int
    k_post: int = 0
    post_aggregator: str | None = None

    def __post_init__(self) -> None:
        for field, least in (("k_pre", 0), ("k_trans", 1), ("k_post", 0)):
            count = getattr(self, field)
            if isinstance(count, bool) or not isinstance(count, int) or count < least:
                raise DesignError(f"{field} must be a whole number of at least {least}, got {count!r}")
        if self.k_pre == 0:
            object.__setattr__(self, "pre_aggregator", None)
            object.__setattr__(self, "message", None)
        else:
            if self.pre_aggregator is None or self.message is None:
                raise DesignError(
                    f"k_pre={self.k_pre} needs a graph aggregator and a message aggregator, "
                    f"got {self.pre_aggregator!r} and {self.message!r}"
                )
            object.__setattr__(self, "pre_aggregator", canonical_aggregator(self.pre_aggregator))
            object.__setattr__(self, "message", canonical_message(self.message))
        if self.k_post == 0:
            object.__setattr__(self, "post_aggregator", None)
        else:
            if self.post_aggregator is None:
                raise DesignError(f"k_post={self.k_post} needs a graph aggregator, got None")
            object.__setattr__(self, "post_aggregator", canonical_aggregator(self.post_aggregator))

    def __str__(self) -> str:
        pre = f"{self.pre_aggregator}^{self.k_pre}/{self.message}" if self.k_pre else "-/-"
        post = f"{self.post_aggregator}^{self.k_post}" if self.k_post else "-"
        return f"{pre}/mlp-{self.k_trans}/{post}"

    @classmethod
    def parse(cls, text: str) -> Architecture:
        """Read the text form, the inverse of `str()`.

        Raises:
            DesignError: the text has another form or names something unknown.
        """
        parts = text.strip().split("/")
        if len(parts) != 4:
            raise DesignError(
                f"a design has four parts, pre/message/transform/post, as in augmented^2/none/mlp-1/-; got {text!r}"
            )
        pre_text, message, transform, post_text = parts
        k_pre, pre_aggregator = _parse_steps(pre_text, text)
        k_post, post_aggregator = _parse_steps(post_text, text)
        if (k_pre == 0) != (message == "-"):
            raise DesignError(f"the first two parts of a design are both '-' or both given, got {text!r}")
        mlp = _MLP.fullmatch(transform)
        if mlp is None:
            raise DesignError(
                f"the third part of a design is mlp-K with K linear layers, got {transform!r} in {text!r}"
            )
        return cls(
            k_pre=k_pre,
            pre_aggregator=pre_aggregator,
            message=None if message == "-" else message,
            k_trans=int(mlp[1]),
            k_post=k_post,
            post_aggregator=post_aggregator,
        )


def _parse_steps(part: str, text: str) -> tuple[int, str | None]:
    if part == "-":
        return 0, None
    match = _STEPS.fullmatch(part)
    if match is None or int(match["count"]) == 0:
        raise DesignError(f"a graph stage is '-' or NAME^STEPS, as in ppr0.1^6; got {part!r} in {text!r}")
    return int(match["count"]), match["name"]
