"""The table of PaSca's own space: drawn with a seed, read back, searched by look-up."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from search_space.classics import CLASSICS
from search_space.space import SearchSpace

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_space.py"


@pytest.fixture(scope="module")
def bench(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("bench_space")


def test_a_seed_fixes_the_designs_and_the_classics_of_the_space_are_among_them(bench: ModuleType) -> None:
    designs = bench.drawn(200, 0)
    assert designs == bench.drawn(200, 0) != bench.drawn(200, 1)
    assert len(set(designs)) == len(designs) >= 200
    assert {design for design in CLASSICS.values() if design in SearchSpace.paper()} <= set(designs)


def test_a_listed_space_is_a_part_of_the_whole(bench: ModuleType) -> None:
    whole, designs = SearchSpace.paper(), bench.drawn(50, 0)
    space = bench.Listed(whole, designs)
    assert {space.design(row) for row in range(len(space))} == set(designs)
    assert [space.index(space.design(row)) for row in range(len(space))] == list(range(len(space)))
    assert (space.codes() == whole.encode([space.design(row) for row in range(len(space))])).all()


def test_a_search_that_sees_everything_reaches_the_whole_hypervolume(bench: ModuleType, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    lines = [
        f"{design},{0.1 + 0.3 / (1 + number % 7)},0.0001,{0.001 * math.exp(number % 11)}"
        for number, design in enumerate(bench.drawn(40, 0))
    ]
    table.write_text("\n".join((",".join(bench.TITLES), *lines)) + "\n", encoding="utf-8")
    asked = ["search", str(table), "--evaluations", str(len(lines)), "--seeds", "2", "--searchers", "random"]
    found = subprocess.run(
        [sys.executable, str(SCRIPT), *asked], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.splitlines()[-1].endswith("| 1.000 ± 0.000 |")
