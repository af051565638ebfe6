"""The training recipe refuses what it cannot mean."""

from __future__ import annotations

import pytest

from engines.evaluation.recipe import Recipe
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
