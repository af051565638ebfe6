"""Reading graphs: `load` takes what users have and returns a checked Graph, or says clearly what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engines.graph import Graph
from pasca.datasets.assemble import assemble
from pasca.datasets.choose_split import given_split
from pasca.datasets.describe import summary, summary_lines
from pasca.datasets.detect import read
from pasca.datasets.native import is_native, open_folder, write_folder
from pasca.datasets.options import LoadOptions
from search_space.errors import DataError

__all__ = [
    "LoadOptions",
    "convert",
    "load",
    "summary",
    "summary_lines",
    "write_folder",
]


def load(data: str | Path | Any, **options: Any) -> Graph:
    """Read a graph.

    Args:
        data: `digits`, a folder or file, PATH:NAME for one data set of several in a folder, `pyg:Class/Name` or
            `ogb:name` where those libraries are installed, a NetworkX graph, or a `Data` of PyTorch Geometric.
        options: fields of LoadOptions.
    Raises:
        DataError: nothing there, or not what it claims to be.
        ConfigError: an option without a legal value.
    """
    chosen = LoadOptions(**options)
    if isinstance(data, (str, Path)) and is_native(Path(data)):
        return open_folder(Path(data), chosen)
    if chosen.verify:
        raise DataError(f"{data}: only folders that pasca wrote have checksums to verify; convert it first")
    return assemble(read(data, chosen), chosen)


def convert(data: str | Path | Any, out: str | Path, **options: Any) -> Graph:
    """Read a graph and write it, with every split of its source, as a folder that opens in milliseconds.

    Args:
        data, options: as for `load`; labels that nothing could be learned from are no obstacle.
        out: the new folder.
    Returns:
        The graph as read.
    Raises:
        RunError: `out` exists already.
        StorageError: it could not be written.
        DataError, ConfigError: as for `load`.
    """
    chosen = LoadOptions(**{"for_training": False, **options})
    if isinstance(data, (str, Path)) and is_native(Path(data)):
        raise DataError(f"{data}: is converted already")
    parts = read(data, chosen)
    graph = assemble(parts, chosen)
    splits = {
        name: given_split(given, name, graph.labels, parts.source, parts.node_ids)[0]
        for name, given in parts.splits.items()
    }
    write_folder(graph, Path(out), splits)
    return graph
