"""ProductSpace: every combination of some named choices, for searches with an evaluator of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from search_space.errors import SpaceError
from search_space.space import Choice, Codes

_MOST_DESIGNS = 1_000_000


@dataclass(frozen=True, slots=True)
class Design:
    """One combination; the choices are attributes: `design.layers`.

    Attributes:
        items: pairs of name and value, in the order of the space.
    """

    items: tuple[tuple[str, Any], ...]

    def __getattr__(self, name: str) -> Any:
        for key, value in object.__getattribute__(self, "items"):
            if key == name:
                return value
        raise AttributeError(f"this design has no choice {name!r}")

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.items)


class ProductSpace:
    """Every combination of named choices.

    Args:
        choices: values by name. Whole numbers in ascending order are `ordinal`, real numbers in ascending order
            `number`, everything else is `categorical`.
    Raises:
        SpaceError: there is no choice, one has no values or repeats one, or there are over a million designs.
    """

    def __init__(self, choices: Mapping[str, Iterable[Any]]) -> None:
        self.choices = tuple(_choice(name, tuple(values)) for name, values in choices.items())
        if not self.choices:
            raise SpaceError("a space needs at least one choice, got none")
        self._sizes = tuple(len(choice.values) for choice in self.choices)
        if len(self) > _MOST_DESIGNS:
            raise SpaceError(
                f"a space is searched as a whole and has at most {_MOST_DESIGNS:,} designs, got {len(self):,}"
            )

    def __len__(self) -> int:
        size = 1
        for count in self._sizes:
            size *= count
        return size

    def __contains__(self, design: object) -> bool:
        return isinstance(design, Design) and design in self._rows

    @cached_property
    def _rows(self) -> dict[Design, int]:
        return {self.design(row): row for row in range(len(self))}

    def codes(self) -> Codes:
        """All designs, shape (len(self), d); the last choice varies fastest."""
        grid = np.indices(self._sizes, dtype=np.int16)  # (d, size of choice 0, size of choice 1, ...)
        return grid.reshape(len(self._sizes), -1).T.copy()

    def design(self, index: int) -> Design:
        """The design in row `index` of `codes()`.

        Raises:
            SpaceError: there is no such row.
        """
        if not 0 <= index < len(self):
            raise SpaceError(f"the space has designs 0 to {len(self) - 1}, got index {index}")
        places = np.unravel_index(int(index), self._sizes)
        return Design(
            tuple((choice.name, choice.values[int(at)]) for choice, at in zip(self.choices, places, strict=True))
        )

    def index(self, design: Design) -> int:
        """Row of a design.

        Raises:
            SpaceError: the space does not hold it.
        """
        if design not in self:
            raise SpaceError(f"the space has no design {design}")
        return self._rows[design]

    def encode(self, designs: Sequence[Design]) -> Codes:
        """Codes of the designs, shape (n, d).

        Raises:
            SpaceError: one of them is not in the space.
        """
        rows = np.array([self.index(design) for design in designs], dtype=np.int64)
        return np.stack(np.unravel_index(rows, self._sizes), axis=1).astype(np.int16)

    def sample(self, count: int, rng: np.random.Generator) -> list[Design]:
        """Distinct designs drawn uniformly without replacement; all of them when the space has fewer."""
        rows = rng.choice(len(self), size=min(count, len(self)), replace=False)
        return [self.design(int(row)) for row in rows]

    def neighbours(self, design: Design) -> list[Design]:
        """Designs that differ in one choice, where order counts by one position.

        Raises:
            SpaceError: the design is not in the space.
        """
        code = self.encode([design])[0]
        found = []
        for j, choice in enumerate(self.choices):
            near = range(len(choice.values)) if choice.kind == "categorical" else (code[j] - 1, code[j] + 1)
            for at in near:
                if at != code[j] and 0 <= at < len(choice.values):
                    other = code.copy()
                    other[j] = at
                    found.append(self.design(int(np.ravel_multi_index(tuple(other), self._sizes))))
        return sorted(found, key=self.index)

    def starting_designs(self) -> list[Design]:
        """None: nothing is known beforehand."""
        return []


def _choice(name: str, values: tuple[Any, ...]) -> Choice:
    if not name.isidentifier():
        raise SpaceError(f"a choice has a name that Python takes for one, got {name!r}")
    if not values:
        raise SpaceError(f"the choice {name} has no values; give at least one")
    if len({str(value) for value in values}) < len(values):
        raise SpaceError(f"the choice {name} repeats a value: {', '.join(map(str, values))}")
    numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    if numeric and list(values) == sorted(values):
        return Choice(name, "ordinal" if all(isinstance(value, int) for value in values) else "number", values)
    return Choice(name, "categorical", values)
