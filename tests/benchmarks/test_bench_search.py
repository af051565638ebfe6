import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nas_bench_graph", reason="needs the tables of nas-bench-graph")

ROOT = Path(__file__).resolve().parents[2]


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, str(ROOT / "benchmarks" / "bench_search.py"), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(script, capture_output=True, text=True, check=True, env=environment, timeout=120)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    bench("run", path, "--data", "cora", "--searchers", "random", "--seeds", 2)
    return path


def test_runs_are_recorded_once_and_resumed(rows: Path) -> None:
    before = rows.read_text()
    assert [json.loads(line)["seed"] for line in before.splitlines()] == [0, 1]
    bench("run", rows, "--data", "cora", "--searchers", "random", "--seeds", 3)
    after = rows.read_text()
    assert after.startswith(before)
    assert len(after.splitlines()) == 3


def test_the_share_grows_with_the_evaluations(rows: Path) -> None:
    for line in rows.read_text().splitlines():
        shares = list(json.loads(line)["shares"].values())
        assert len(shares) == 6
        assert shares == sorted(shares)
        assert 0.0 < shares[0] < shares[-1] < 1.0


def test_the_table_gives_means_and_paired_differences(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    made = [
        {"data": "cora", "searcher": name, "seed": seed, "shares": dict.fromkeys(marks, level + 0.1 * seed)}
        for name, level, marks in (("ehvi", 0.6, ("50", "100", "150")), ("gp", 0.5, ("50", "100", "150")))
        for seed in (0, 1)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    lines = bench("table", path).stdout.splitlines()
    assert "| cora | ehvi | 2 |  | 0.650 ± 0.071 | 0.650 ± 0.071 | 0.650 ± 0.071 |  |  |" in lines
    assert "cora: ehvi - gp: +0.100 ± 0.000 at 50, +0.100 ± 0.000 at 100, +0.100 ± 0.000 at 150" in lines
