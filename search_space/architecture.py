"""Architecture: one decoupled design as named choices, with a text form that parses back.

A design has three stages (paper: SGAP): graph pre-processing, a dense transform, graph post-processing.

    ppr0.1^6/weighted/mlp-3/augmented^4@hidden=64,norm=layer
    └─────┘ └──────┘ └───┘ └─────────┘ └───────────────────┘
    pre_aggregator^k_pre / message / mlp-k_trans / post_aggregator^k_post @ what differs from the training recipe

A stage that is switched off is written `-`. The part from `@` on is there only where a design chooses something that
the recipe says otherwise; the paper's designs have none. This file knows the names; `assembly.py` knows what they
build.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache, total_ordering
from typing import Any

from search_space.errors import DesignError
from search_space.names import (
    LEARNING_MESSAGES,
    MESSAGES,
    NORMALISATIONS,
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


@lru_cache(maxsize=4096)
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


def _count(field: str, value: Any) -> int:
    """A whole number of at least 1, or its text."""
    try:
        number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else 0
    except ValueError:
        number = 0
    if number < 1:
        raise DesignError(f"{field} must be a whole number of at least 1, got {value!r}")
    return number


def _steps(field: str, value: Any) -> int | None:
    """A whole number, or its text; 0 is None."""
    return None if value in (0, "0") and not isinstance(value, bool) else _count(field, value)


def _fraction(field: str, value: Any) -> float:
    number = _number(field, value)
    if number >= 1.0:
        raise DesignError(f"{field} must be below 1, got {value!r}")
    return number


def _positive(field: str, value: Any) -> float:
    number = _number(field, value)
    if number == 0.0:
        raise DesignError(f"{field} must be above 0, got {value!r}")
    return number


def _weight(field: str, value: Any) -> float | None:
    """A number of at least 0, or its text; 0 is None."""
    return _number(field, value) or None


def _number(field: str, value: Any) -> float:
    """A number of at least 0, or its text, with as many digits as the text form shows."""
    try:
        number = float(format(float(value), "g"))
    except (TypeError, ValueError):
        raise DesignError(f"{field} must be a number, got {value!r}") from None
    if isinstance(value, bool) or not 0.0 <= number < math.inf:
        raise DesignError(f"{field} must be a number of at least 0, got {value!r}")
    return number


def _one_of(*values: str, usual: str | None) -> Callable[[str, Any], str | None]:
    """One of some names; the usual one, if there is one, is None."""

    def read(field: str, value: Any) -> str | None:
        if value not in values:
            raise DesignError(f"unknown {field} {value!r}; choose from: {', '.join(values)}")
        return None if value == usual else str(value)

    return read


_EXTRAS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "hidden_width": ("hidden", _count),
    "input_dropout": ("input_dropout", _fraction),
    "dropout": ("dropout", _fraction),
    "learning_rate": ("lr", _positive),
    "weight_decay": ("wd", _number),
    "normalise": ("features", _one_of(*NORMALISATIONS, usual=None)),
    "norm": ("norm", _one_of("none", "layer", "batch", usual="none")),
    "residual": ("residual", _one_of("on", "off", usual="on")),
    "label_steps": ("labels", _steps),
    "adjacency": ("adjacency", _one_of("none", "rows", usual="none")),
    "consistency": ("consistency", _weight),
    "structure": ("structure", _one_of("none", "counts", usual="none")),
}
"""Attributes that differ from the training recipe: their key in the text form, and what reads a value or its text."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Architecture:
    """One design; always canonical, so equal designs compare and hash equal.

    Choices that have no effect vanish on construction: with `k_pre` 0 there is neither an aggregator nor anything to
    join, with `k_post` 0 there is no second aggregator, and without hidden layers they have no width.

    The attributes from `hidden_width` on are None for what the training recipe says.

    Attributes:
        k_pre: propagation steps before training, 0 or more.
        pre_aggregator: graph aggregator of those steps; None when `k_pre` is 0.
        message: how hops 0..k_pre are joined; None when `k_pre` is 0.
        k_trans: linear layers of the transform, 1 or more.
        k_post: propagation steps after training, 0 or more.
        post_aggregator: graph aggregator of those steps; None when `k_post` is 0.
        hidden_width: of hidden layers.
        input_dropout, dropout: shares of the joined features and of each hidden layer zeroed while training, below 1.
        learning_rate, weight_decay: Adam's.
        normalise: how features are normalised first, one of `NORMALISATIONS`.
        norm: `layer` for a normalisation layer before each ReLU, `batch` for batch normalisation of the joined features
            and before each ReLU while it is trained; None without.
        residual: `off` where hidden layers have none; None where those of equal width have one.
        label_steps: steps that the labels of training nodes take before they become inputs, too; None without.
        adjacency: `rows` where the rows of the adjacency are inputs, too; None without.
        consistency: weight of the loss that asks for the same answer under different masks; None without.
        structure: `counts` where degrees and triangles of the node are inputs, too; None without.
    Raises:
        DesignError: a name is unknown, a number is out of range, or an active stage misses its choice.
    """

    k_pre: int
    pre_aggregator: str | None
    message: str | None
    k_trans: int
    k_post: int = 0
    post_aggregator: str | None = None
    hidden_width: int | None = None
    input_dropout: float | None = None
    dropout: float | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    normalise: str | None = None
    norm: str | None = None
    residual: str | None = None
    label_steps: int | None = None
    adjacency: str | None = None
    consistency: float | None = None
    structure: str | None = None

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
        for field, (_, read) in _EXTRAS.items():
            value = getattr(self, field)
            if value is not None:
                object.__setattr__(self, field, read(field, value))
        if self.k_trans == 1:
            for field in ("hidden_width", "dropout", "norm"):
                object.__setattr__(self, field, None)
        if self.k_trans < 3:  # no two hidden layers that a residual could join
            object.__setattr__(self, "residual", None)

    @property
    def extras(self) -> dict[str, Any]:
        """The choices that differ from the training recipe, by attribute."""
        return {field: value for field in _EXTRAS if (value := getattr(self, field)) is not None}

    @property
    def has_norm_layers(self) -> bool:
        """Whether its trained network has normalisation layers; batch normalisation is folded into the weights."""
        return self.norm == "layer"

    @property
    def corrects(self) -> bool:
        """Whether its post-processing is Correct & Smooth."""
        return self.post_aggregator is not None and AggregatorName.parse(self.post_aggregator).kind == "cs"

    @property
    def needs_labels(self) -> bool:
        """Whether it classifies with the labels of the training nodes: as inputs, or to correct and smooth with."""
        return self.corrects or self.label_steps is not None

    @property
    def needs_its_graph(self) -> bool:
        """Whether it can classify the graph that it was trained on and no other: nodes mean something to it."""
        return self.needs_labels or self.adjacency is not None

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Architecture):
            return NotImplemented
        return self._key < other._key

    @property
    def _key(self) -> tuple[tuple[bool, Any], ...]:
        values = (getattr(self, field.name) for field in fields(self))
        return tuple((value is not None, 0 if value is None else value) for value in values)

    def __str__(self) -> str:
        pre = f"{self.pre_aggregator}^{self.k_pre}/{self.message}" if self.k_pre else "-/-"
        post = f"{self.post_aggregator}^{self.k_post}" if self.k_post else "-"
        extras = ",".join(
            f"{_EXTRAS[field][0]}={format(value, 'g') if isinstance(value, float) else value}"
            for field, value in self.extras.items()
        )
        return f"{pre}/mlp-{self.k_trans}/{post}" + (f"@{extras}" if extras else "")

    @classmethod
    def parse(cls, text: str) -> Architecture:
        """Read the text form, the inverse of `str()`.

        Raises:
            DesignError: the text has another form or names something unknown.
        """
        text = text.strip()
        stages, at, extras = text.partition("@")
        parts = stages.split("/")
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
            **_parse_extras(extras, text) if at else {},
        )


def _parse_extras(extras: str, text: str) -> dict[str, Any]:
    by_key = {key: field for field, (key, _) in _EXTRAS.items()}
    found: dict[str, Any] = {}
    for part in extras.split(","):
        key, equals, value = part.partition("=")
        if not equals or key not in by_key:
            raise DesignError(
                f"behind @ a design has KEY=VALUE with commas, as in @hidden=64,dropout=0.3; got {part!r} in {text!r}; "
                f"choose from: {', '.join(by_key)}"
            )
        if by_key[key] in found:
            raise DesignError(f"{key} is given twice in {text!r}; give it once")
        found[by_key[key]] = value
    return found


@lru_cache(maxsize=4096)
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
    "NORMALISATIONS",
    "PAPER_AGGREGATORS",
    "PAPER_MESSAGES",
    "Architecture",
    "canonical_aggregator",
    "canonical_message",
    "decay_rate",
    "restart_probability",
    "stage_aggregator",
]
