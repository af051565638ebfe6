"""An edge list of many rows becomes a folder that opens at once: time and memory of both.

    python benchmarks/bench_ingest.py [--rows 20000000] [--nodes 2000000] [--folder DIR]

Each step runs in a process of its own with two threads, so that peak memory is its own. The baseline does the same with
NumPy's own text reader and SciPy, on a twentieth of the rows, and is scaled to all of them. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

BASELINE_SHARE = 20
_MEASURED = """
import resource, sys, time
{setup}
begun = time.perf_counter()
{step}
seconds = time.perf_counter() - begun
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
_BASELINE = """
ends = np.loadtxt(sys.argv[1], dtype=np.int64, delimiter=",", skiprows=1)
ids, numbers = np.unique(ends, return_inverse=True)
numbers = numbers.reshape(-1, 2)
arcs = sparse.coo_array((np.ones(len(numbers), np.float32), tuple(numbers.T)), (ids.size, ids.size)).tocsr()
both = ((arcs + arcs.T) > 0).astype(np.float32).tocsr()
sparse.save_npz(sys.argv[2], both, compressed=False)
"""


def write_edges(path: Path, num_rows: int, num_nodes: int) -> None:
    """Write random arcs as text, a million rows at a time."""
    generator = np.random.default_rng(0)
    with path.open("w") as file:
        file.write("source,target\n")
        for begin in range(0, num_rows, 1_000_000):
            ends = generator.integers(0, num_nodes, (min(1_000_000, num_rows - begin), 2))
            file.writelines(f"{source},{target}\n" for source, target in ends.tolist())


def measure(setup: str, step: str, *arguments: Path) -> tuple[float, float]:
    """Seconds of a step and peak memory of its process in MiB."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "ARROW_NUM_THREADS": "2"}
    program = _MEASURED.format(setup=setup, step=step)
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    seconds, mebibytes = done.stdout.split()
    return float(seconds), float(mebibytes)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, default=None, help="where to write; a temporary folder without it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        write_edges(folder / "edges.csv", chosen.rows, chosen.nodes)
        write_edges(folder / "few.csv", max(chosen.rows // BASELINE_SHARE, 1), chosen.nodes)
        datasets = "from pasca.datasets import convert, load"
        convert_seconds, convert_mebibytes = measure(
            datasets, "convert(sys.argv[1], sys.argv[2])", folder / "edges.csv", folder / "out"
        )
        open_seconds, open_mebibytes = measure(datasets, "load(sys.argv[1])", folder / "out")
        few_seconds, _ = measure(
            "import numpy as np; from scipy import sparse", _BASELINE, folder / "few.csv", folder / "few.npz"
        )
    baseline_seconds = few_seconds * BASELINE_SHARE
    print(
        json.dumps(
            {
                "name": "ingest",
                "ours": convert_seconds,
                "baseline": baseline_seconds,
                "ratio": baseline_seconds / convert_seconds,
                "unit": "seconds",
                "rows": chosen.rows,
                "convert_peak_mebibytes": convert_mebibytes,
                "open_seconds": open_seconds,
                "open_peak_mebibytes": open_mebibytes,
            }
        )
    )


if __name__ == "__main__":
    main()
