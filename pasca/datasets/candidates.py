"""Candidate: one data set that could be read from a folder, before anything of it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pasca.datasets.options import LoadOptions
from pasca.datasets.parts import Parts


@dataclass(frozen=True)
class Candidate:
    """One data set of a folder.

    Attributes:
        name: what DATA:NAME calls it.
        files: the files it consists of; the path of any of them stands for the data set.
        read: reads it.
        aliases: other names, used where no data set has that name and only one that alias.
        preferred: taken before all others when a folder holds several.
    """

    name: str
    files: tuple[Path, ...]
    read: Callable[[LoadOptions], Parts]
    aliases: tuple[str, ...] = ()
    preferred: bool = False
