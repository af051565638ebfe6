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
from search_space.names import (
    LEARNING_MESSAGES,
    MESSAGES,
    PAPER_AGGREGATORS,
    PAPER_MESSAGES,
    POST_KINDS,
    PRE_KINDS,
    AggregatorName,
    canonical_aggregator,
    canonical_message,
    decay_rate,
    restart_probability,
)

_STEPS = re.compile(r"(?P<name>.+)\^(?P<count>\d{1,4})")
_MLP = re.compile(r"mlp-(\d{1,4})")


def stage_aggregator(name: str, kinds: tuple[str, ...], stage: str) -> str:
    """Return the one spelling of a graph aggregator's name, for a stage that has some kinds of them.

    Args:
        stage: what the stage works on, for messages.
    Raises:
        DesignError: there is no such aggregator, or not in that stage.
    """
    parsed = AggregatorName.parse(name)
    if parsed.kind not in kinds:
        raise DesignError(f"{parsed} is no graph aggregator of {stage}; choose from: {', '.join(kinds)}")
    return str(parsed)


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
            object.__setattr__(self, "pre_aggregator", stage_aggregator(self.pre_aggregator, PRE_KINDS, "features"))
            object.__setattr__(self, "message", canonical_message(self.message))
        if self.k_post == 0:
            object.__setattr__(self, "post_aggregator", None)
        else:
            if self.post_aggregator is None:
                raise DesignError(f"k_post={self.k_post} needs a graph aggregator, got None")
            aggregator = stage_aggregator(self.post_aggregator, POST_KINDS, "predictions")
            object.__setattr__(self, "post_aggregator", aggregator)

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


__all__ = [
    "LEARNING_MESSAGES",
    "MESSAGES",
    "PAPER_AGGREGATORS",
    "PAPER_MESSAGES",
    "Architecture",
    "canonical_aggregator",
    "canonical_message",
    "decay_rate",
    "restart_probability",
    "stage_aggregator",
]
