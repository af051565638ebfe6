"""Spaces of designs: what the search engine needs of one (`Space`), and PaSca's (`SearchSpace`).

A space lists its designs in one fixed order. The search engine works with row numbers of that list and with `codes`, a
small integer matrix: column j holds the position of the design's value in `choices[j].values`, or -1 where the choice
is inactive because the stage it belongs to is switched off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from search_space.architecture import (
    PAPER_AGGREGATORS,
    PAPER_MESSAGES,
    Architecture,
    canonical_message,
    stage_aggregator,
)
from search_space.errors import DesignError, SpaceError
from search_space.names import POST_KINDS, PRE_KINDS

Codes = NDArray[np.int16]
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Choice:
    """One dimension of a space.

    Attributes:
        name: what is chosen.
        kind: `ordinal` (order and distance in position count), `number` (a real number on a grid; distance in value
            counts) or `categorical` (only equality counts).
        values: the legal values, in order for ordinal and number.
        parent: name of the ordinal choice that switches this one off at value 0, or None when it is always active.
    """

    name: str
    kind: Literal["ordinal", "number", "categorical"]
    values: tuple[Any, ...]
    parent: str | None = None


class Space(Protocol[D]):
    """A finite space of designs, as the search engine sees it. Designs are hashable and have a distinct `str()`."""

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The d dimensions."""
        ...

    def __len__(self) -> int:
        """Number of distinct designs."""
        ...

    def __contains__(self, design: object) -> bool: ...

    def codes(self) -> Codes:
        """All designs as an array of shape (len(self), d), row i being `design(i)`."""
        ...

    def design(self, index: int) -> D:
        """The design in row `index`."""
        ...

    def index(self, design: D) -> int:
        """Row of a design. Raises SpaceError when the space does not hold it."""
        ...

    def encode(self, designs: Sequence[D]) -> Codes:
        """Codes of the designs, shape (n, d). Raises SpaceError when one is not in the space."""
        ...

    def sample(self, count: int, rng: np.random.Generator) -> list[D]:
        """`count` distinct designs, uniformly without replacement (all of them when there are fewer)."""
        ...

    def neighbours(self, design: D) -> list[D]:
        """Distinct designs one step away: one choice changed, to an adjacent value where order counts."""
        ...

    def starting_designs(self) -> list[D]:
        """Designs known to be good elsewhere that lie in this space, tried first."""
        ...


@runtime_checkable
class Unlisted(Space[D], Protocol[D]):
    """A space with too many designs to list: `codes()` is refused, and codes of its choices are made into designs."""

    def settle(self, codes: Codes) -> Codes:
        """Codes (n, d) in which what has no effect is -1, and what has one and is -1 takes its usual value."""
        ...

    def decode(self, codes: Codes) -> list[D]:
        """The designs that settled codes (n, d) mean."""
        ...


@dataclass(frozen=True)
class SearchSpace:
    """PaSca's space of architectures, or a restriction of it.

    Attributes:
        k_pre, k_trans, k_post: legal step and layer counts, ascending. 0 switches a graph stage off.
        pre_aggregator, post_aggregator: legal graph aggregators.
        message: legal message aggregators.
    Raises:
        SpaceError: a dimension is empty or holds an illegal or repeated value.
    """

    k_pre: tuple[int, ...]
    pre_aggregator: tuple[str, ...]
    message: tuple[str, ...]
    k_trans: tuple[int, ...]
    k_post: tuple[int, ...]
    post_aggregator: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, least in (("k_pre", 0), ("k_trans", 1), ("k_post", 0)):
            object.__setattr__(self, name, _counts(name, getattr(self, name), least))
        for name, canonical in (
            ("pre_aggregator", lambda given: stage_aggregator(given, PRE_KINDS, "features")),
            ("message", canonical_message),
            ("post_aggregator", lambda given: stage_aggregator(given, POST_KINDS, "predictions")),
        ):
            needed_by = {"post_aggregator": self.k_post}.get(name, self.k_pre)
            object.__setattr__(self, name, _names(name, getattr(self, name), canonical, any(needed_by)))

    @classmethod
    def paper(cls, **restrictions: Iterable[Any]) -> SearchSpace:
        """The space of the paper, 153,510 distinct designs, or a part of it: `paper(k_pre=range(0, 4))`.

        Keywords are the attributes of this class; what is not given keeps the paper's choices. Fixed-decay joins and
        other restart probabilities may be given too, although the paper's space has none.

        Raises:
            SpaceError: a keyword is unknown, or its values are empty, repeated or illegal.
        """
        return cls.from_mapping(restrictions)

    @classmethod
    def from_mapping(cls, restrictions: Mapping[str, Any]) -> SearchSpace:
        """The same from a mapping, as read from a file.

        Raises:
            SpaceError: as for `paper`.
        """
        full: dict[str, tuple[Any, ...]] = {
            "k_pre": tuple(range(11)),
            "pre_aggregator": PAPER_AGGREGATORS,
            "message": PAPER_MESSAGES,
            "k_trans": tuple(range(1, 11)),
            "k_post": tuple(range(11)),
            "post_aggregator": PAPER_AGGREGATORS,
        }
        for name, values in restrictions.items():
            if name not in full:
                raise SpaceError(f"unknown dimension {name!r} of the search space; choose from: {', '.join(full)}")
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                values = (values,)
            full[name] = tuple(values)
        return cls(**full)

    def as_mapping(self) -> dict[str, list[Any]]:
        """The choices as plain lists; `from_mapping` reads it back."""
        return {field.name: list(getattr(self, field.name)) for field in fields(self)}

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """The six dimensions, in the order of the columns of `codes`."""
        return (
            Choice("k_pre", "ordinal", self.k_pre),
            Choice("pre_aggregator", "categorical", self.pre_aggregator, parent="k_pre"),
            Choice("message", "categorical", self.message, parent="k_pre"),
            Choice("k_trans", "ordinal", self.k_trans),
            Choice("k_post", "ordinal", self.k_post),
            Choice("post_aggregator", "categorical", self.post_aggregator, parent="k_post"),
        )

    @cached_property
    def _pre_parts(self) -> list[tuple[int, int, int]]:
        """Codes of (k_pre, pre_aggregator, message), every distinct pre-processing stage."""
        parts: list[tuple[int, int, int]] = []
        for i, steps in enumerate(self.k_pre):
            if steps == 0:
                parts.append((i, -1, -1))
            else:
                parts += [(i, a, m) for a in range(len(self.pre_aggregator)) for m in range(len(self.message))]
        return parts

    @cached_property
    def _post_parts(self) -> list[tuple[int, int]]:
        """Codes of (k_post, post_aggregator), every distinct post-processing stage."""
        parts: list[tuple[int, int]] = []
        for i, steps in enumerate(self.k_post):
            parts += [(i, -1)] if steps == 0 else [(i, a) for a in range(len(self.post_aggregator))]
        return parts

    @cached_property
    def _pre_rows(self) -> dict[tuple[int, int, int], int]:
        return {part: row for row, part in enumerate(self._pre_parts)}

    @cached_property
    def _post_rows(self) -> dict[tuple[int, int], int]:
        return {part: row for row, part in enumerate(self._post_parts)}

    def __len__(self) -> int:
        return len(self._pre_parts) * len(self.k_trans) * len(self._post_parts)

    def __contains__(self, design: object) -> bool:
        if not isinstance(design, Architecture):
            return False
        try:
            self.index(design)
        except SpaceError:
            return False
        return True

    def codes(self) -> Codes:
        """All designs, shape (len(self), 6): pre-processing varies slowest, post-processing fastest."""
        pre = np.asarray(self._pre_parts, dtype=np.int16)
        post = np.asarray(self._post_parts, dtype=np.int16)
        depth = np.arange(len(self.k_trans), dtype=np.int16)
        rows = np.arange(len(self))
        return np.column_stack(
            (
                pre[rows // (len(depth) * len(post))],
                depth[rows // len(post) % len(depth)],
                post[rows % len(post)],
            )
        )

    def design(self, index: int) -> Architecture:
        """The design in row `index` of `codes()`.

        Raises:
            SpaceError: there is no such row.
        """
        if not 0 <= index < len(self):
            raise SpaceError(f"the space has designs 0 to {len(self) - 1}, got index {index}")
        rest, post_row = divmod(int(index), len(self._post_parts))
        pre_row, depth_row = divmod(rest, len(self.k_trans))
        steps, aggregator, message = self._pre_parts[pre_row]
        post_steps, post_aggregator = self._post_parts[post_row]
        return Architecture(
            k_pre=self.k_pre[steps],
            pre_aggregator=None if aggregator < 0 else self.pre_aggregator[aggregator],
            message=None if message < 0 else self.message[message],
            k_trans=self.k_trans[depth_row],
            k_post=self.k_post[post_steps],
            post_aggregator=None if post_aggregator < 0 else self.post_aggregator[post_aggregator],
        )

    def index(self, design: Architecture) -> int:
        """Row of a design in `codes()`.

        Raises:
            SpaceError: the space does not hold it; the message names the choice that is missing.
        """
        if design.extras:
            raise SpaceError(f"{design} is not in the search space: {', '.join(design.extras)} is no choice of it")
        pre = (
            self._position("k_pre", design.k_pre, design),
            self._position("pre_aggregator", design.pre_aggregator, design) if design.k_pre else -1,
            self._position("message", design.message, design) if design.k_pre else -1,
        )
        depth = self._position("k_trans", design.k_trans, design)
        post = (
            self._position("k_post", design.k_post, design),
            self._position("post_aggregator", design.post_aggregator, design) if design.k_post else -1,
        )
        pre_row, post_row = self._pre_rows[pre], self._post_rows[post]
        return (pre_row * len(self.k_trans) + depth) * len(self._post_parts) + post_row

    def _position(self, dimension: str, value: Any, design: Architecture) -> int:
        values: tuple[Any, ...] = getattr(self, dimension)
        try:
            return values.index(value)
        except ValueError:
            listed = ", ".join(map(str, values))
            raise SpaceError(
                f"{design} is not in the search space: {dimension} {value!r} is not one of {listed}"
            ) from None

    def encode(self, designs: Sequence[Architecture]) -> Codes:
        """Codes of the designs, shape (n, 6).

        Raises:
            SpaceError: one of them is not in the space.
        """
        rows = np.asarray([self.index(design) for design in designs], dtype=np.int64)
        pre = np.asarray(self._pre_parts, dtype=np.int16)
        post = np.asarray(self._post_parts, dtype=np.int16)
        num_post, num_depth = len(post), len(self.k_trans)
        depth = (rows // num_post % num_depth).astype(np.int16)
        return np.column_stack((pre[rows // (num_depth * num_post)], depth, post[rows % num_post]))

    def sample(self, count: int, rng: np.random.Generator) -> list[Architecture]:
        """Distinct designs drawn uniformly without replacement; all of them when the space has fewer."""
        rows = rng.choice(len(self), size=min(count, len(self)), replace=False)
        return [self.design(int(row)) for row in rows]

    def neighbours(self, design: Architecture) -> list[Architecture]:
        """Designs that differ in one choice, step and layer counts by one position.

        Switching a graph stage on (from 0 steps) needs an aggregator, so every way of doing so is a neighbour.

        Raises:
            SpaceError: the design is not in the space.
        """
        self.index(design)
        pre: set[tuple[int, str | None, str | None]] = set()
        for steps in _adjacent(self.k_pre, design.k_pre):
            if steps and not design.k_pre:
                pre |= {(steps, a, m) for a in self.pre_aggregator for m in self.message}
            else:
                pre.add((steps, design.pre_aggregator, design.message))
        if design.k_pre:
            pre |= {(design.k_pre, a, design.message) for a in self.pre_aggregator}
            pre |= {(design.k_pre, design.pre_aggregator, m) for m in self.message}
        post: set[tuple[int, str | None]] = set()
        for steps in _adjacent(self.k_post, design.k_post):
            if steps and not design.k_post:
                post |= {(steps, a) for a in self.post_aggregator}
            else:
                post.add((steps, design.post_aggregator))
        if design.k_post:
            post |= {(design.k_post, a) for a in self.post_aggregator}
        own_pre = (design.k_pre, design.pre_aggregator, design.message)
        own_post = (design.k_post, design.post_aggregator)
        found = {Architecture(*part, design.k_trans, *own_post) for part in pre}
        found |= {Architecture(*own_pre, depth, *own_post) for depth in _adjacent(self.k_trans, design.k_trans)}
        found |= {Architecture(*own_pre, design.k_trans, *part) for part in post}
        found.discard(design)
        return sorted(found, key=self.index)

    def starting_designs(self) -> list[Architecture]:
        """The classics that lie in this space."""
        from search_space.classics import CLASSICS

        return [design for design in dict.fromkeys(CLASSICS.values()) if design in self]


def _counts(name: str, values: Iterable[Any], least: int) -> tuple[int, ...]:
    found: list[int] = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise SpaceError(f"{name} of a search space lists whole numbers of at least {least}, got {value!r}")
        found.append(int(value))
    return tuple(sorted(_distinct(name, found)))


def _names(name: str, values: Iterable[Any], canonical: Any, needed: bool) -> tuple[str, ...]:
    found: list[str] = []
    for value in values:
        if not isinstance(value, str):
            raise SpaceError(f"{name} of a search space lists names, got {value!r}")
        try:
            found.append(canonical(value))
        except DesignError as error:
            raise SpaceError(f"{name} of the search space: {error}") from None
    return tuple(_distinct(name, found) if found or needed else ())


def _distinct(name: str, values: list[Any]) -> list[Any]:
    if not values:
        raise SpaceError(f"{name} of a search space is empty; give at least one value")
    if len(set(values)) < len(values):
        raise SpaceError(f"{name} of a search space repeats a value: {', '.join(map(str, values))}")
    return values


def _adjacent(values: tuple[int, ...], value: int) -> tuple[int, ...]:
    place = values.index(value)
    return values[max(place - 1, 0) : place + 2]
