"""Recipes of the classics: a grid for each data set, the best by validation kept, test nodes seen once."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from engines.evaluation.recipe import Recipe
from search_space.architecture import Architecture

DESIGN = Architecture.parse("augmented^1/mean/mlp-2/-")


@pytest.fixture
def bench(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("reproduce")


def test_every_published_data_set_has_one_grid(bench: ModuleType) -> None:
    path = bench.Path(bench.__file__).with_name("recipes.toml")
    for name in bench.PUBLISHED:
        found = bench.recipes(path, name)
        assert len(set(found)) == len(found) > 10
        assert name in bench.DATA


class Fake:
    """A bench whose errors follow from the recipe and the number of the look; the first looks mislead."""

    graphs = (None,)

    def __init__(self) -> None:
        self.looks: list[tuple[float, int]] = []
        self.tested: list[float] = []

    def look(self, design: Architecture, recipe: Recipe, number: int) -> tuple[float, float]:
        self.looks.append((recipe.weight_decay, number))
        return (recipe.weight_decay if number == 0 else 1.0 - recipe.weight_decay), 1.0

    def test(self, design: Architecture, recipe: Recipe) -> tuple[list[float], list[float]]:
        self.tested.append(recipe.weight_decay)
        return [0.2] * 10, [0.7 + 0.01 * number for number in range(10)]


def test_the_best_quarter_is_looked_at_again_and_the_best_of_it_is_tested_once(bench: ModuleType) -> None:
    fake: Any = Fake()
    row = bench.reproduce(fake, DESIGN, [Recipe(weight_decay=0.1 * step) for step in range(8)])
    again = [decay for decay, number in fake.looks if number > 0]
    assert sorted(set(again)) == [0.0, pytest.approx(0.1)]
    assert fake.tested == [pytest.approx(0.1)], "0 looked better at first, and 0.1 over all three looks"
    assert row["test_accuracy"]["mean"] == pytest.approx(0.745)
    assert row["recipes_tried"] == 8


def test_a_linear_design_has_no_hidden_layer_to_drop_from(bench: ModuleType) -> None:
    fake: Any = Fake()
    recipes = [Recipe(input_dropout=0.5, dropout=0.5), Recipe(input_dropout=0.5, dropout=0.2)]
    assert bench.reproduce(fake, Architecture.parse("-/-/mlp-1/-"), recipes)["recipes_tried"] == 1
