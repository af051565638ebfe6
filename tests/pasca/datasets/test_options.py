"""LoadOptions: settings without a legal value are refused before anything is read."""

from __future__ import annotations

from typing import Any

import pytest

from pasca.datasets import LoadOptions
from search_space.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unknown_nodes": "keep"}, "one of error, drop, got 'keep'"),
        ({"encoding": "utf-42"}, "unknown encoding 'utf-42'"),
        ({"train_per_class": 0}, "train_per_class is at least 1, got 0"),
        ({"split_seed": -1}, "split_seed is not negative"),
        ({"train_fraction": 0.5}, "go together"),
        ({"train_fraction": 0.7, "val_fraction": 0.4}, "add up to 1 at most"),
        ({"train_fraction": 0.0, "val_fraction": 0.4}, "are positive"),
        ({"train_fraction": 0.5, "val_fraction": 0.2, "train_per_class": 3}, "got both"),
        ({"split": "3", "split_seed": 1}, "split '3' is a given one"),
    ],
)
def test_settings_without_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LoadOptions(**settings)


@pytest.mark.parametrize(
    "settings", [{"split": "random"}, {"split_seed": 0}, {"train_per_class": 5}, {"val_per_class": 2}]
)
def test_any_setting_of_a_random_split_asks_for_one(settings: dict[str, Any]) -> None:
    assert LoadOptions(**settings).wants_random_split


def test_nothing_said_asks_for_the_split_of_the_source() -> None:
    assert not LoadOptions().wants_random_split
    assert not LoadOptions(split="public").wants_random_split


def test_features_are_a_kind_or_a_file() -> None:
    assert (LoadOptions(features="svd").made_features, LoadOptions(features="svd").features_file) == ("svd", None)
    assert (LoadOptions(features="f.npy").made_features, LoadOptions(features="f.npy").features_file) == (None, "f.npy")
