"""Reading graphs: `load` takes what users have and returns a checked Graph, or says clearly what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engines.graph import Graph
from pasca.datasets.assemble import assemble, require_trainable
from pasca.datasets.detect import read
from pasca.datasets.options import LoadOptions

__all__ = ["LoadOptions", "load", "require_trainable"]


def load(data: str | Path, **options: Any) -> Graph:
    """Read a graph.

    Args:
        data: `digits`, a folder or file, or PATH:NAME for one data set of several in a folder.
        options: fields of LoadOptions.
    Raises:
        DataError: nothing there, or not what it claims to be.
        ConfigError: an option without a legal value.
    """
    chosen = LoadOptions(**options)
    return assemble(read(data, chosen), chosen)
