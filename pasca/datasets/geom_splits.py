"""geom-gcn splits: splits/NAME_split_0.6_0.2_K.npz with train_mask, val_mask and test_mask, K from 0 to 9."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from engines.graph import Nodes
from pasca.datasets.arrays import Npz
from pasca.datasets.parts import GivenSplit
from pasca.datasets.splits import nodes_of_mask

_FILE = re.compile(r"(?P<name>.+)_split_[\d.]+_[\d.]+_(?P<number>\d+)\.npz")


def find_geom_splits(folder: Path, name: str | None, num_nodes: int) -> dict[str, GivenSplit]:
    """The split files of `folder`/splits by number, in order; read when asked for.

    Args:
        name: of the data set that the files must carry, or None for any.
        num_nodes: N, the length that every mask must have.
    """
    matches = [match for file in (folder / "splits").glob("*.npz") if (match := _FILE.fullmatch(file.name))]
    numbers = {int(match["number"]): match.string for match in matches if name in (None, match["name"])}
    return {str(number): partial(_read, folder / "splits" / numbers[number], num_nodes) for number in sorted(numbers)}


def _read(path: Path, num_nodes: int) -> tuple[Nodes, Nodes, Nodes]:
    with Npz(path) as npz:
        train, validation, test = (
            nodes_of_mask(npz.require(key), num_nodes, f"{path}: {key}")
            for key in ("train_mask", "val_mask", "test_mask")
        )
    return train, validation, test
