"""A search of many trials that cost nothing: what loop, searcher and record take, and whether that grows.

    python benchmarks/bench_load.py --trials 20000

The evaluator is a formula, the searcher draws at random, and the record is the SQLite file that every run has. CPU
seconds and resident memory are noted every hundred trials; a straight line through the medians of a thousand trials
each gives what the last trial costs beside the first. Afterwards `pasca front` and `pasca report` are timed, each in a
process of its own, with the wall clock. Prints one JSON line; ends with 1 where a limit is passed.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import pasca
from search_space.architecture import Architecture

BLOCK, COARSE = 100, 1000
MOST_GROWTH, MOST_KIB_A_TRIAL, MOST_SECONDS = 1.25, 4.0, 5.0
"""What the last trial may cost beside the first, memory that a trial may leave, and seconds of front and report."""


class Formula:
    """An error and a cost for every design, and a note of time and memory every hundred trials."""

    def __init__(self) -> None:
        self.count = 0
        self.noted: list[tuple[int, float, int]] = []

    def __call__(self, design: Architecture) -> dict[str, float]:
        """Look up nothing, train nothing."""
        if self.count % BLOCK == 0:
            self.note()
        self.count += 1
        luck = int.from_bytes(hashlib.sha256(str(design).encode()).digest()[:4]) / 2**32
        seconds = 1e-3 * (1 + design.k_pre + 0.5 * design.k_trans + 0.7 * design.k_post)
        return {"val_error": 0.15 + 0.3 * luck + 1e-3 / (1 + 1e3 * seconds), "inference_seconds": seconds}

    def note(self) -> None:
        """Where the process stands; garbage is collected first, so that what is left is kept."""
        gc.collect()
        self.noted.append((self.count, time.process_time(), _resident_bytes()))


def _resident_bytes() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def _fit(noted: list[tuple[int, float, int]]) -> dict[str, Any]:
    """Straight lines through seconds a trial and memory, the first thousand trials left out: they warm up."""
    count, cpu, memory = (np.array(column, dtype=np.float64) for column in zip(*noted, strict=True))
    each = np.diff(cpu) / np.diff(count)
    per = COARSE // BLOCK
    medians = np.array([np.median(each[i : i + per]) for i in range(0, len(each) - per + 1, per)])[1:]
    middles = COARSE * (1.5 + np.arange(len(medians)))
    slope, start = np.polyfit(middles, medians, 1)
    growth = (start + slope * count[-1]) / start
    later = count >= COARSE
    return {
        "milliseconds_a_trial": round(1e3 * float(medians.mean()), 3),
        "milliseconds_at_the_start": round(1e3 * float(start), 3),
        "microseconds_more_a_thousand_trials": round(1e9 * float(slope), 2),
        "last_beside_first": round(float(growth), 3),
        "by_thousands": [round(1e3 * float(m), 3) for m in medians],
        "memory_mib_after_a_thousand": round(float(memory[later][0]) / 2**20, 1),
        "memory_mib_at_the_end": round(float(memory[-1]) / 2**20, 1),
        "kib_a_trial": round(float(np.polyfit(count[later], memory[later], 1)[0]) / 2**10, 3),
    }


def _seconds(*arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "pasca", *arguments], check=True, stdout=subprocess.DEVNULL)
    return round(time.perf_counter() - began, 2)


def main() -> int:
    """Run, print and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--searcher", default="random")
    parser.add_argument("--out", help="a new folder for the run, which is kept; else it is thrown away")
    given = parser.parse_args()
    formula = Formula()
    with tempfile.TemporaryDirectory(prefix="pasca-load-") as folder:
        out = given.out or str(Path(folder, "run"))
        began = time.perf_counter()
        study = pasca.search(
            evaluator=formula, searcher=given.searcher, evaluations=given.trials, repeats=1, retrain=0, out=out
        )
        formula.note()
        wall = time.perf_counter() - began
        assert len(study.history.complete) == given.trials
        assert len({trial.design for trial in study.history}) == given.trials
        found = {
            "trials": given.trials,
            "searcher": given.searcher,
            "wall_seconds": round(wall, 1),
            **_fit(formula.noted),
            "database_mib": round(Path(out, "study.db").stat().st_size / 2**20, 1),
            "front_seconds": _seconds("front", out),
            "report_seconds": _seconds("report", out),
        }
    print(json.dumps(found))
    passed = [
        name
        for name, limit in (
            ("last_beside_first", MOST_GROWTH),
            ("kib_a_trial", MOST_KIB_A_TRIAL),
            ("front_seconds", MOST_SECONDS),
            ("report_seconds", MOST_SECONDS),
        )
        if found[name] > limit
    ]
    if passed:
        print(f"over the limit: {', '.join(passed)}", file=sys.stderr)
    return 1 if passed else 0


if __name__ == "__main__":
    raise SystemExit(main())
