"""ExtendedSpace: the paper's space widened by training, graph, message and post-processing choices.

With some 10^15 designs it can be sampled, indexed and walked from neighbour to neighbour, but not listed. Its choices
fall into groups that do not depend on one another; the designs are all combinations of one member of each group, so
the number of a design has a digit for each group.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from search_space.architecture import Architecture
from search_space.errors import DesignError, SpaceError
from search_space.names import MESSAGES, NORMALISATIONS, POST_KINDS, PRE_KINDS, AggregatorName, decay_rate
from search_space.space import Choice, Codes

BASE = "extended"
"""What a space's settings say in `base` to mean this one."""

RECIPE_CHOICES = ("hidden_width", "input_dropout", "dropout", "learning_rate", "weight_decay", "normalise")
"""Choices of which a design names a value only where the training recipe has another."""

Kind = Literal["ordinal", "number", "categorical"]


@dataclass(frozen=True, slots=True)
class _Dimension:
    """A choice before it is restricted.

    Attributes:
        kind, values: as for `Choice`.
        usual: what a stage has that was just switched on, where the space holds it.
        needs: the choice it depends on, and its values with which this one is active; None for an independent one.
    """

    kind: Kind
    values: tuple[Any, ...]
    usual: Any
    needs: tuple[str, tuple[Any, ...]] | None = None


_STEPS = tuple(range(1, 11))
_EXPONENTS, _LOOPS, _ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0), (0.0, 0.5, 1.0, 2.0, 4.0), (0.05, 0.1, 0.2, 0.3, 0.5)
_HEAT_STEPS = (0.25, 0.5, 0.75)

_DIMENSIONS: dict[str, _Dimension] = {
    "k_pre": _Dimension("ordinal", (0, *_STEPS), 2),
    "pre_kind": _Dimension("categorical", PRE_KINDS, "augmented", ("k_pre", _STEPS)),
    "pre_alpha": _Dimension("number", _ALPHAS, 0.1, ("pre_kind", ("ppr",))),
    "pre_step": _Dimension("number", _HEAT_STEPS, 0.5, ("pre_kind", ("heat",))),
    "pre_exponent": _Dimension("number", _EXPONENTS, 0.5, ("pre_kind", PRE_KINDS)),
    "pre_loops": _Dimension("ordinal", _LOOPS, 1.0, ("pre_kind", PRE_KINDS)),
    "message": _Dimension("categorical", (*MESSAGES, "decay"), "mean", ("k_pre", _STEPS)),
    "message_decay": _Dimension("number", (0.05, 0.1, 0.2, 0.4), 0.1, ("message", ("decay",))),
    "k_trans": _Dimension("ordinal", _STEPS, 2),
    "hidden_width": _Dimension("ordinal", (32, 64, 128, 256), 128, ("k_trans", _STEPS[1:])),
    "dropout": _Dimension("number", (0.0, 0.2, 0.5, 0.8), 0.5, ("k_trans", _STEPS[1:])),
    "norm": _Dimension("categorical", ("none", "layer", "batch"), "none", ("k_trans", _STEPS[1:])),
    "residual": _Dimension("categorical", ("on", "off"), "on", ("k_trans", _STEPS[2:])),
    "input_dropout": _Dimension("number", (0.0, 0.2, 0.5, 0.8), 0.5),
    "learning_rate": _Dimension("ordinal", (0.003, 0.01, 0.03, 0.1), 0.03),
    "weight_decay": _Dimension("ordinal", (0.0, 5e-5, 5e-4, 5e-3), 5e-4),
    "label_steps": _Dimension("ordinal", (0, 1, 2, 3), 0),
    "adjacency": _Dimension("categorical", ("none", "rows"), "none"),
    "consistency": _Dimension("ordinal", (0.0, 0.3, 1.0, 3.0), 0.0),
    "structure": _Dimension("categorical", ("none", "counts"), "none"),
    "normalise": _Dimension("categorical", NORMALISATIONS, "l2"),
    "k_post": _Dimension("ordinal", (0, *_STEPS), 2),
    "post_kind": _Dimension("categorical", POST_KINDS, "augmented", ("k_post", _STEPS)),
    "post_alpha": _Dimension("number", _ALPHAS, 0.1, ("post_kind", ("ppr",))),
    "post_step": _Dimension("number", _HEAT_STEPS, 0.5, ("post_kind", ("heat",))),
    "post_share": _Dimension("number", (0.5, 0.8, 0.95), 0.8, ("post_kind", ("cs",))),
    "post_exponent": _Dimension("number", _EXPONENTS, 0.5, ("post_kind", POST_KINDS)),
    "post_loops": _Dimension("ordinal", _LOOPS, 1.0, ("post_kind", POST_KINDS)),
}

_GROUPS = (
    ("k_pre", "pre_kind", "pre_alpha", "pre_step", "pre_exponent", "pre_loops", "message", "message_decay"),
    ("k_trans", "hidden_width", "dropout", "norm", "residual"),
    ("input_dropout",),
    ("learning_rate",),
    ("weight_decay",),
    ("label_steps",),
    ("adjacency",),
    ("consistency",),
    ("structure",),
    ("normalise",),
    ("k_post", "post_kind", "post_alpha", "post_step", "post_share", "post_exponent", "post_loops"),
)
"""Choices that depend on one another, together and in an order in which none comes before what it needs."""

NAMES = tuple(_DIMENSIONS)


class ExtendedSpace:
    """All designs that pasca can build, or a part of them.

    It keeps to the `Space` protocol but for `codes()`, since no list of its designs fits into memory.

    Args:
        recipe: values of the run's training recipe by name. A design that chooses one of them says nothing of it, so
            that the paper's designs and the classics are points of this space as they are.
        restrictions: legal values by choice; what is not given keeps its usual ones, and the recipe's value.
    Raises:
        SpaceError: a choice is unknown, or its values are empty, repeated or illegal.
    """

    def __init__(self, recipe: Mapping[str, Any], restrictions: Mapping[str, Any] | None = None) -> None:
        self._recipe = {name: recipe[name] for name in RECIPE_CHOICES}
        found = {name: _with_recipe(name, one, self._recipe) for name, one in _DIMENSIONS.items()}
        for name, values in (restrictions or {}).items():
            if name not in found:
                raise SpaceError(f"unknown choice {name!r} of the extended space; choose from: {', '.join(NAMES)}")
            found[name] = _checked(name, values)
        self.choices = tuple(Choice(name, one.kind, found[name], _parent(one)) for name, one in _DIMENSIONS.items())
        self._values = {choice.name: choice.values for choice in self.choices}
        self._columns = {choice.name: j for j, choice in enumerate(self.choices)}

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any], recipe: Mapping[str, Any]) -> ExtendedSpace:
        """The space that settings such as `{"base": "extended", "k_pre": [0, 1, 2]}` mean.

        Raises:
            SpaceError: as for the class.
        """
        return cls(recipe, {name: values for name, values in settings.items() if name != "base"})

    def as_mapping(self) -> dict[str, Any]:
        """The choices as plain lists; `from_mapping` reads it back."""
        return {"base": BASE, **{choice.name: list(choice.values) for choice in self.choices}}

    @cached_property
    def _groups(self) -> list[list[tuple[int, ...]]]:
        """For each group the codes of its members."""
        return [self._members(names) for names in _GROUPS]

    @cached_property
    def _places(self) -> list[dict[tuple[int, ...], int]]:
        return [{codes: place for place, codes in enumerate(group)} for group in self._groups]

    def _members(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        members: list[dict[str, int]] = [{}]
        for name in names:
            every = range(len(self._values[name]))
            members = [{**one, name: at} for one in members for at in (every if self._active(name, one) else (-1,))]
        return [tuple(one[name] for name in names) for one in members]

    def _active(self, name: str, codes: Mapping[str, int]) -> bool:
        """Whether a choice has an effect, given the codes of those that it needs."""
        needs = _DIMENSIONS[name].needs
        if needs is None:
            return True
        parent, values = needs
        return codes[parent] >= 0 and self._values[parent][codes[parent]] in values

    def __len__(self) -> int:
        size = 1
        for group in self._groups:
            size *= len(group)
        return size

    def __contains__(self, design: object) -> bool:
        if not isinstance(design, Architecture):
            return False
        try:
            self.index(design)
        except SpaceError:
            return False
        return True

    def codes(self) -> Codes:
        """Not for this space.

        Raises:
            SpaceError: always; use `encode` on the designs at hand.
        """
        raise SpaceError(f"the extended space has {len(self):,} designs, too many to list; sample it")

    def design(self, index: int) -> Architecture:
        """The design of that number.

        Raises:
            SpaceError: there is none.
        """
        if not 0 <= index < len(self):
            raise SpaceError(f"the space has designs 0 to {len(self) - 1}, got index {index}")
        rest, row = int(index), np.empty(len(self.choices), np.int16)
        for names, group in zip(reversed(_GROUPS), reversed(self._groups), strict=True):
            rest, place = divmod(rest, len(group))
            for name, code in zip(names, group[place], strict=True):
                row[self._columns[name]] = code
        return self.decode(row[None])[0]

    def index(self, design: Architecture) -> int:
        """Number of a design.

        Raises:
            SpaceError: the space does not hold it; the message names the choice that is missing.
        """
        row = self.encode([design])[0]
        found = 0
        for names, places in zip(_GROUPS, self._places, strict=True):
            found = found * len(places) + places[tuple(int(row[self._columns[name]]) for name in names)]
        return found

    def encode(self, designs: Sequence[Architecture]) -> Codes:
        """Codes of the designs, shape (n, d).

        Raises:
            SpaceError: one of them is not in the space.
        """
        rows = np.full((len(designs), len(self.choices)), -1, np.int16)
        for i, design in enumerate(designs):
            for name, value in self._chosen(design).items():
                try:
                    rows[i, self._columns[name]] = self._values[name].index(value)
                except ValueError:
                    listed = ", ".join(map(str, self._values[name]))
                    raise SpaceError(
                        f"{design} is not in the search space: {name} {value!r} is not one of {listed}"
                    ) from None
        return rows

    def _chosen(self, design: Architecture) -> dict[str, Any]:
        """Value of every active choice.

        Raises:
            SpaceError: the design spells out what the recipe says anyway, so that it is a point of the space twice.
        """
        found: dict[str, Any] = {"k_pre": design.k_pre, "k_trans": design.k_trans, "k_post": design.k_post}
        for stage, aggregator in (("pre", design.pre_aggregator), ("post", design.post_aggregator)):
            if aggregator is not None:
                one = AggregatorName.parse(aggregator)
                found |= {f"{stage}_kind": one.kind, f"{stage}_exponent": one.exponent, f"{stage}_loops": one.loops}
                if one.strength is not None:
                    found[f"{stage}_{_STRENGTHS[one.kind]}"] = one.strength
        if design.message is not None:
            decay = decay_rate(design.message)
            found |= {"message": design.message} if decay is None else {"message": "decay", "message_decay": decay}
        for name in RECIPE_CHOICES:
            value = getattr(design, name)
            if value == self._recipe[name]:
                raise SpaceError(f"{design} spells out {name}={value}, which the recipe says anyway; leave it out")
            if name not in ("hidden_width", "dropout") or design.k_trans > 1:
                found[name] = self._recipe[name] if value is None else value
        found |= {"label_steps": design.label_steps or 0, "adjacency": design.adjacency or "none"}
        found |= {"consistency": design.consistency or 0.0, "structure": design.structure or "none"}
        if design.k_trans > 1:
            found["norm"] = design.norm or "none"
        if design.k_trans > 2:
            found["residual"] = design.residual or "on"
        return found

    def decode(self, codes: Codes) -> list[Architecture]:
        """The designs that codes (n, d) mean; what is not active is -1."""
        return [self._decoded(row) for row in codes.tolist()]

    def _decoded(self, row: Sequence[int]) -> Architecture:
        chosen: dict[str, Any]
        chosen = {name: None if code < 0 else self._values[name][code] for name, code in zip(NAMES, row, strict=True)}
        unsaid = {name for name in RECIPE_CHOICES if chosen[name] == self._recipe[name]}
        message = chosen["message"]
        return Architecture(
            k_pre=chosen["k_pre"],
            pre_aggregator=_aggregator("pre", chosen),
            message=f"decay{chosen['message_decay']:g}" if message == "decay" else message,
            k_trans=chosen["k_trans"],
            k_post=chosen["k_post"],
            post_aggregator=_aggregator("post", chosen),
            **{name: None if name in unsaid else chosen[name] for name in RECIPE_CHOICES},
            norm=chosen["norm"],
            residual=chosen["residual"],
            label_steps=chosen["label_steps"],
            adjacency=chosen["adjacency"],
            consistency=chosen["consistency"],
            structure=chosen["structure"],
        )

    def settle(self, codes: Codes) -> Codes:
        """Codes (n, d) in which what has no effect is -1, and what has one and is -1 takes its usual value."""
        settled = codes.copy()
        for j, name in enumerate(NAMES):
            column = settled[:, j]
            column[column < 0] = self._usual(name)
            if (needs := _DIMENSIONS[name].needs) is not None:
                parent = settled[:, self._columns[needs[0]]]
                column[(parent < 0) | ~self._allowed[name][parent]] = -1
        return settled

    @cached_property
    def _allowed(self) -> dict[str, NDArray[np.bool_]]:
        """For each choice that needs another: with which of the other's values it is active."""
        return {
            name: np.array([value in one.needs[1] for value in self._values[one.needs[0]]])
            for name, one in _DIMENSIONS.items()
            if one.needs is not None
        }

    def _usual(self, name: str) -> int:
        values = self._values[name]
        usual = self._recipe.get(name, _DIMENSIONS[name].usual)
        return values.index(usual) if usual in values else len(values) // 2

    def sample(self, count: int, rng: np.random.Generator) -> list[Architecture]:
        """Distinct designs, each drawn choice by choice and then rid of what has no effect.

        Not uniform over designs: those with a stage left out would hardly ever come, since few others share it.
        """
        wanted = min(count, len(self))
        found: dict[Architecture, None] = {}
        sizes = np.array([len(choice.values) for choice in self.choices])
        while len(found) < wanted:
            drawn = (rng.random((max(wanted - len(found), 16), sizes.size)) * sizes).astype(np.int16)
            for design in self.decode(self.settle(drawn)):
                if len(found) < wanted:
                    found.setdefault(design)
        return list(found)

    def neighbours(self, design: Architecture) -> list[Architecture]:
        """Designs that differ in one choice, where order counts by one position.

        What another choice switches on takes its usual values, but for the kind of a graph operator and the join of
        hops, of which there is a neighbour each.

        Raises:
            SpaceError: the design is not in the space.
        """
        row = self.encode([design])[0]
        changed = []
        for j, choice in enumerate(self.choices):
            near = range(len(choice.values)) if choice.kind == "categorical" else (int(row[j]) - 1, int(row[j]) + 1)
            for at in near if row[j] >= 0 else ():
                if at != row[j] and 0 <= at < len(choice.values):
                    changed.append(row.copy())
                    changed[-1][j] = at
        if not changed:
            return []
        settled = self.settle(np.stack(changed))
        rows = np.concatenate([self._switched_on(row, one) for one in settled])
        found = dict.fromkeys(self.decode(self.settle(rows)))
        found.pop(design, None)
        return list(found)

    def _switched_on(self, row: Codes, changed: Codes) -> Codes:
        """A changed row, or one for each operator and join where the change has switched these on; (n, d)."""
        columns = [self._columns[name] for name in ("pre_kind", "message", "post_kind")]
        switched = [column for column in columns if row[column] < 0 <= changed[column]]
        if not switched:
            return changed[None]
        every = list(itertools.product(*(range(len(self.choices[column].values)) for column in switched)))
        rows = np.repeat(changed[None], len(every), axis=0)
        rows[:, switched] = every
        return rows

    def starting_designs(self) -> list[Architecture]:
        """The classics and the later models that lie in this space."""
        from search_space.classics import CLASSICS, LATER

        named = [self._beside_the_recipe(design) for design in (*CLASSICS.values(), *LATER.values())]
        return [design for design in dict.fromkeys(named) if design in self]

    def _beside_the_recipe(self, design: Architecture) -> Architecture:
        """The design without what it says and the recipe says anyway."""
        unsaid: dict[str, Any] = {n: None for n in RECIPE_CHOICES if getattr(design, n) == self._recipe[n]}
        return replace(design, **unsaid)


_STRENGTHS = {"ppr": "alpha", "heat": "step", "cs": "share"}


def _aggregator(stage: str, chosen: Mapping[str, Any]) -> str | None:
    kind = chosen[f"{stage}_kind"]
    if kind is None:
        return None
    strength = chosen[f"{stage}_{_STRENGTHS[kind]}"] if kind in _STRENGTHS else None
    return str(AggregatorName(kind, strength, chosen[f"{stage}_exponent"], chosen[f"{stage}_loops"]))


def _with_recipe(name: str, dimension: _Dimension, recipe: Mapping[str, Any]) -> tuple[Any, ...]:
    """The usual values, and the recipe's among them."""
    if name not in recipe or recipe[name] in dimension.values:
        return dimension.values
    return tuple(sorted((*dimension.values, recipe[name])))


def _parent(dimension: _Dimension) -> str | None:
    """The step count that switches a choice off at 0, if that is what it needs."""
    return dimension.needs[0] if dimension.needs is not None and dimension.needs[1] == _STEPS else None


def _checked(name: str, values: Any) -> tuple[Any, ...]:
    """Values that a restriction gives, in order and each once.

    Raises:
        SpaceError: there are none, one comes twice or is not legal.
    """
    dimension = _DIMENSIONS[name]
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        values = (values,)
    found = tuple(values)
    if not found:
        raise SpaceError(f"{name} of the extended space is empty; give at least one value")
    if len(set(found)) < len(found):
        raise SpaceError(f"{name} of the extended space repeats a value: {', '.join(map(str, found))}")
    for value in found:
        try:
            _try(name, value)
        except (DesignError, TypeError):
            legal = ", ".join(map(str, dimension.values))
            raise SpaceError(f"{name} of the extended space holds values such as {legal}; got {value!r}") from None
    return found if dimension.kind == "categorical" else tuple(sorted(found))


def _try(name: str, value: Any) -> None:
    """Build something with a value; raises what is wrong with it."""
    if isinstance(value, bool):
        raise DesignError(f"{name} is not true or false")
    dimension = _DIMENSIONS[name]
    if name in ("k_pre", "k_post", "k_trans"):
        given: dict[str, Any] = {"k_pre": 0, "k_trans": 1, "k_post": 0, name: value}
        Architecture(**given, pre_aggregator="augmented", message="mean", post_aggregator="augmented")
    elif name in RECIPE_CHOICES:
        Architecture(0, None, None, 3, **{name: value})
    elif name == "label_steps":
        Architecture(0, None, None, 1, label_steps=value)
    elif name == "consistency":
        Architecture(0, None, None, 1, consistency=value)
    elif name.endswith("alpha") or name == "message_decay":
        AggregatorName("ppr", value)
    elif name.endswith(("step", "share")):
        AggregatorName("heat", value)
    elif name.endswith("exponent"):
        AggregatorName("augmented", None, value)
    elif name.endswith("loops"):
        AggregatorName("augmented", None, 0.5, value)
    elif value not in dimension.values:
        raise DesignError(f"{value!r} is no {name}")
