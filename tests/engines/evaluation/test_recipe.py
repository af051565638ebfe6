"""The training recipe refuses what it cannot mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engines.evaluation.recipe import Recipe, recipe_of
from search_space.architecture import Architecture
from search_space.errors import ConfigError


def test_reads_back_what_it_wrote() -> None:
    recipe = Recipe(hidden_width=64, dropout=0.8, normalise="l2")
    assert Recipe.from_mapping(recipe.as_mapping()) == recipe


def test_missing_fields_keep_their_defaults() -> None:
    assert Recipe.from_mapping({"learning_rate": 0.1}) == Recipe(learning_rate=0.1)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hidden_width", 0, "hidden_width must be a whole number of at least 1, got 0"),
        ("max_epochs", 2.5, "max_epochs must be a whole number of at least 1, got 2.5"),
        ("patience", True, "patience must be a whole number"),
        ("learning_rate", 0, "learning_rate must be above 0"),
        ("learning_rate", float("nan"), "learning_rate must be a number of at least 0, got nan"),
        ("weight_decay", -1.0, "weight_decay must be a number of at least 0, got -1.0"),
        ("dropout", 1.0, "dropout must be below 1.0, got 1.0"),
        ("normalise", "max", "unknown normalise 'max'; choose from: row, symmetric, l2, standard, none"),
        ("metric", "auc", "unknown metric 'auc'; choose from: accuracy, macro-f1, roc-auc"),
    ],
)
def test_an_illegal_value_is_named(field: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Recipe.from_mapping({field: value})


def test_an_unknown_field_lists_the_legal_ones() -> None:
    with pytest.raises(ConfigError, match="unknown field 'lr' of a recipe; choose from: hidden_width, learning_rate"):
        Recipe.from_mapping({"lr": 0.1})


def test_a_design_goes_by_the_runs_recipe_but_for_what_it_says() -> None:
    recipe = Recipe()
    assert recipe_of(Architecture.parse("-/-/mlp-2/-"), recipe) is recipe
    narrow = recipe_of(Architecture.parse("-/-/mlp-2/-@hidden=32,labels=2"), recipe)
    assert narrow == replace(recipe, hidden_width=32)


@pytest.mark.parametrize(
    ("rate", "max_epochs", "patience"), [(0.1, 200, 30), (0.015, 400, 60), (0.01, 600, 90), (0.001, 800, 120)]
)
def test_a_design_with_a_slower_rate_is_waited_for(rate: float, max_epochs: int, patience: int) -> None:
    found = recipe_of(Architecture.parse(f"-/-/mlp-2/-@lr={rate}"), Recipe(learning_rate=0.03))
    assert (found.learning_rate, found.max_epochs, found.patience) == (rate, max_epochs, patience)
