"""Evaluations an hour at each system's default settings, pasca and SGL (sgl-dair 0.1.5) side by side.

    python benchmarks/bench_throughput.py DATA --sgl FOLDER [--evaluations 60] [--designs 12] [--threads 2]

Ours is a whole `pasca.search` without retraining: reading aside, everything from measuring the stage times to the last
record, suggestions included. SGL's evaluation (ten runs of 200 epochs) is timed for designs drawn uniformly from its
own space, without its suggestions; its epochs are all alike, so each design is run for 5 and for 20 epochs a run, and
the 200 follow from the difference. How SGL is made to run: `sgl_peer.py`. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from sgl_peer import NUM_EPOCHS, SGL

import pasca

# Lowest and highest of SGL's seven numbers: steps, graph operator, message operator, layers, and the same after it.
SGL_SPACE = ((1, 10), (1, 4), (0, 8), (1, 10), (1, 10), (1, 4), (0, 5))
SHORT, LONG = 5, 20


def main() -> None:
    """Time both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--sgl", type=Path, required=True)
    parser.add_argument("--evaluations", type=int, default=60)
    parser.add_argument("--designs", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    graph, sgl = pasca.load(arguments.data), SGL(arguments.sgl)
    generator = np.random.default_rng(0)
    torch.set_num_threads(arguments.threads)
    sgl.seconds(graph, [low for low, _ in SGL_SPACE], 1)  # the first call loads and prepares
    theirs = []
    for _ in range(arguments.designs):
        design = [int(generator.integers(low, high + 1)) for low, high in SGL_SPACE]
        short, long = (sgl.seconds(graph, design, epochs) for epochs in (SHORT, LONG))
        theirs.append(short + (long - short) * (NUM_EPOCHS - SHORT) / (LONG - SHORT))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        pasca.search(
            graph, evaluations=arguments.evaluations, retrain=0, threads=arguments.threads, out=Path(folder, "run")
        )
        ours = (time.perf_counter() - began) / arguments.evaluations
    print(
        json.dumps(
            {
                "name": f"evaluations an hour at default settings on {graph.name}, {arguments.threads} threads",
                "ours": 3600 / ours,
                "baseline": 3600 / float(np.mean(theirs)),
                "ratio": float(np.mean(theirs)) / ours,
                "unit": "evaluations/h",
                "sgl_seconds": theirs,
            }
        )
    )


if __name__ == "__main__":
    main()
