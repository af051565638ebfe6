"""What a search's row says: the ways of choosing, and the quick design beside the choice."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def one(design: str, val_error: float, test: float, seconds: float) -> dict[str, Any]:
    return {
        "design": design,
        "val_error": val_error,
        "test": test,
        "test_std": 0.01,
        "inference_seconds": seconds,
    }


FRONT = [one("a", 0.4, 0.60, 0.1), one("b", 0.3, 0.68, 0.2), one("c", 0.28, 0.71, 0.21), one("d", 0.2, 0.79, 1.0)]


def row(split: int) -> dict[str, Any]:
    chosen = dict.fromkeys(("observed", "posterior", "fresh", "loss"), FRONT[3])
    return {
        "data": "texas",
        "split": split,
        "space": "paper",
        "evaluations": 9,
        "chosen": chosen,
        "front": FRONT,
        "classics": {"MLP": one("e", 0.25, 0.7 + 0.1 * split, 0.3)},
    }


def test_the_quick_one_is_the_best_with_a_fifth_of_the_time(script: Callable[[str], ModuleType]) -> None:
    bench = script("bench_accuracy")
    assert bench.quick_one(row(0)) == FRONT[1], "c takes more than a fifth"
    assert bench.quick_one({**row(0), "front": FRONT[3:]}) is None


def test_the_table_averages_over_splits(
    script: Callable[[str], ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row(split)) + "\n" for split in (0, 1)))
    script("bench_accuracy").table(Namespace(rows=rows))
    out = capsys.readouterr().out
    assert "| texas | paper | 2 | 9 | 79.0 ± 0.0 |  | 79.0 | 79.0 | 79.0 | 75.0 |" in out
    assert "| texas | paper | 79.0 | 68.0 | 0.20 (2 searches) |" in out


def test_searches_go_split_by_split(script: Callable[[str], ModuleType]) -> None:
    arguments = Namespace(data=["cora", "texas"], splits=2, spaces=["paper", "extended"])
    assert list(script("bench_accuracy")._searches(arguments)) == [
        *(("cora", 0, space) for space in ("paper", "extended")),
        *(("texas", 0, space) for space in ("paper", "extended")),
        *(("texas", 1, space) for space in ("paper", "extended")),
    ]
