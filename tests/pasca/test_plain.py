"""JSON types out of whatever is reported."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

import numpy as np

from engines.trial import Status
from pasca.plain import plain, visible


def test_numpy_tuples_and_mappings_become_json_types() -> None:
    value = MappingProxyType({"a": np.float32(0.5), 1: (np.int64(2), np.arange(2)), "b": {"c": np.bool_(True)}})
    assert plain(value) == {"a": 0.5, "1": [2, [0, 1]], "b": {"c": True}}
    assert json.loads(json.dumps(plain(value))) == plain(value)


def test_what_json_does_not_know_becomes_text() -> None:
    assert plain([float("nan"), float("inf"), -np.inf]) == ["nan", "inf", "-inf"]
    assert plain((Path("a/b"), Status.FAILED, None, "x")) == ["a/b", "failed", None, "x"]


def test_control_characters_are_spelled_out_and_letters_are_not() -> None:
    assert visible("Żółw ± \x1b[31mred\x07") == "Żółw ± \\x1b[31mred\\x07"
