"""Turns what evaluators, searchers and users give into JSON types, and into text that is safe to show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any


def visible(text: str) -> str:
    """The text with control characters spelled out: names come from users and must not steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def plain(value: Any) -> Any:
    """The same value in JSON types: numpy scalars and arrays unwrapped, tuples as lists, keys as text.

    JSON knows no NaN and no infinity, so those become the texts `nan`, `inf` and `-inf`; anything else that JSON does
    not know becomes its `str()`.
    """
    if type(value) is float and math.isfinite(value):  # most of what there is
        return value
    if hasattr(value, "tolist"):  # numpy arrays and scalars, without importing numpy for those who have none
        return plain(value.tolist())
    if value is None or (isinstance(value, (bool, int, str)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, PurePath):
        return str(value)
    return str(value)
