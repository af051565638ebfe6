"""Ten million nodes and a hundred million edges, three hops of 32 features: time per edge and peak memory.

    python benchmarks/bench_large.py [--nodes 10000000] [--threads 2] [--folder DIR]

Four graphs, each twice the one before, the last with --nodes. Every node has ten random neighbours by ten random
permutations and is a random neighbour of ten others, so there is no locality to profit from. A graph is written as a
memory-mapped folder by one process and read, normalised and propagated by another, whose peak memory is the figure.
Prints one JSON line a graph and a last one: `ours` is the time per arc and hop of the largest graph, `baseline` that of
the one half its size.
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
from scipy import sparse

from engines.graph import Graph, Split
from pasca.datasets.native import write_folder

NUM_PERMUTATIONS, NUM_FEATURES, NUM_HOPS = 10, 32, 3
_STEP = """
import json, resource, sys, time
import pasca
from engines.evaluation.hop_cache import HopCache
from engines.evaluation.threads import set_threads
from search_space.graph_operators import graph_operator
set_threads(int(sys.argv[2]))
warm = pasca.load("digits")
hops = HopCache(lambda key: graph_operator(key).matrix(warm.adjacency), warm.features.astype("float32"), 10**9)
hops.hop("augmented", 0.0, 1)
began = time.perf_counter()
graph = pasca.load(sys.argv[1])
opened = time.perf_counter()
hops = HopCache(lambda key: graph_operator(key).matrix(graph.adjacency), graph.features, int(sys.argv[3]))
hops.matrix("augmented")
built = time.perf_counter()
hops.hop("augmented", 0.0, int(sys.argv[4]))
done = time.perf_counter()
print(json.dumps({"arcs": int(graph.adjacency.nnz), "open_seconds": opened - began, "build_seconds": built - opened,
    "hops_seconds": done - built, "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def random_graph(num_nodes: int) -> Graph:
    """A graph in which every node has about 2 * NUM_PERMUTATIONS random neighbours."""
    generator = np.random.default_rng(0)
    arcs = np.empty((num_nodes, 2 * NUM_PERMUTATIONS), np.int32)
    rows = np.arange(num_nodes, dtype=np.int32)
    for i in range(NUM_PERMUTATIONS):
        arcs[:, 2 * i] = generator.permutation(num_nodes)
        arcs[arcs[:, 2 * i], 2 * i + 1] = rows
    arcs.sort(axis=1)
    kept = arcs != rows[:, None]
    kept[:, 1:] &= arcs[:, 1:] != arcs[:, :-1]
    ends = np.zeros(num_nodes + 1, np.int64)
    np.cumsum(kept.sum(axis=1), out=ends[1:])
    indices = arcs[kept]
    del arcs, kept
    pointers = ends.astype(np.int32) if ends[-1] < 2**31 else ends
    adjacency = sparse.csr_array((np.ones(indices.size, np.float32), indices, pointers), (num_nodes, num_nodes))
    labels = (np.arange(num_nodes) % 2).astype(np.int64)
    split = Split(np.arange(0, 20), np.arange(20, 40), np.arange(40, 60))
    features = generator.random((num_nodes, NUM_FEATURES), dtype=np.float32)
    return Graph(f"random-{num_nodes}", adjacency, features, labels, ("a", "b"), split)


def main() -> None:
    """Write, propagate, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", type=int, default=6_000_000_000, help="bytes for hops in memory")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; a temporary folder without it")
    parser.add_argument("--write", type=Path, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write is not None:
        write_folder(random_graph(arguments.nodes), arguments.write)
        return
    per_arc = []
    for share in (8, 4, 2, 1):
        num_nodes = arguments.nodes // share
        with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
            folder = Path(name, "graph")
            write = [sys.executable, __file__, "--nodes", str(num_nodes), "--write", str(folder)]
            subprocess.run(write, check=True)
            command = [sys.executable, "-c", _STEP, str(folder)]
            command += [str(value) for value in (arguments.threads, arguments.memory, NUM_HOPS)]
            environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        found = json.loads(done.stdout)
        per_arc.append(found["hops_seconds"] / (NUM_HOPS * (found["arcs"] + num_nodes)))
        print(json.dumps({"nodes": num_nodes, "nanoseconds_per_arc_and_hop": per_arc[-1] * 1e9, **found}), flush=True)
    print(
        json.dumps(
            {
                "name": f"time per arc and hop at {arguments.nodes} nodes against half as many",
                "ours": per_arc[-1] * 1e9,
                "baseline": per_arc[-2] * 1e9,
                "ratio": per_arc[-1] / per_arc[-2],
                "unit": "ns",
                "peak_bytes": found["peak_bytes"],
            }
        )
    )


if __name__ == "__main__":
    main()
