"""The graphs of the accuracy benchmarks, their splits and the scores to be reached on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Data:
    """A graph of the benchmark.

    Attributes:
        path: below the folder with the graphs.
        splits: how each split is asked for.
        metric: score on validation and test nodes.
        bar: mean test score in percent that is to be reached.
    """

    path: str
    splits: tuple[Mapping[str, Any], ...]
    metric: str = "accuracy"
    bar: float | None = None


PUBLIC = ({"split": "public"},)
TEN_RANDOM = tuple({"split_seed": seed} for seed in range(10))  # 20 training and 30 validation nodes a class
TEN_GIVEN = tuple({"split": str(number)} for number in range(10))
DATA = {
    "cora": Data("cora", PUBLIC, bar=85.2),
    "citeseer": Data("citeseer", PUBLIC, bar=74.1),
    "pubmed": Data("pubmed", PUBLIC, bar=81.1),
    "computers": Data("amazon_computers", TEN_RANDOM, bar=84.8),
    "photo": Data("amazon_photo", TEN_RANDOM, bar=92.7),
    "cs": Data("coauthor_cs", TEN_RANDOM, bar=92.8),
    "physics": Data("coauthor_physics", TEN_RANDOM, bar=93.8),
    "chameleon": Data("chameleon/chameleon_filtered.npz", TEN_GIVEN, bar=45.0),
    "squirrel": Data("squirrel/squirrel_filtered.npz", TEN_GIVEN, bar=43.0),
    "actor": Data("actor/actor.npz", TEN_GIVEN),
    "minesweeper": Data("minesweeper", TEN_GIVEN, metric="roc-auc", bar=90.0),
    "tolokers": Data("tolokers", TEN_GIVEN, metric="roc-auc", bar=83.8),
    "cornell": Data("cornell/cornell.npz", TEN_GIVEN),
    "texas": Data("texas/texas.npz", TEN_GIVEN),
}
