"""Time one propagation step against scipy, torch and the speed of a plain copy, side by side.

    python benchmarks/bench_propagation.py [--graphs pubmed-sized ...] [--threads 2] [--rounds 15]

One JSON line a graph. `ours` and `baseline` are the best of all rounds, in seconds; the baseline is the faster of
scipy's CSR product and torch's sparse CSR product. `ratio` says how many times faster ours is. `copy_ratio` is our time
over the time in which a copy with the same threads moves as many bytes as the step touches when every gathered row is
counted, E (4F + 8) + 4NF; a copy of n bytes reads n and writes n. The last line has the geometric means.

Ours and torch write into an array that is there already; scipy always makes a new one, and so does `ours_new_array`. In
each round every competitor runs once, so that a disturbance of the machine meets them all alike.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from scipy import sparse

from engines.evaluation.propagation import propagate_step, propagate_step_reference
from engines.graph import undirected
from search_space.graph_operators import graph_operator

# nodes, non-zeros of the matrix (self-loops included), features
SIZES = {
    "pubmed-sized": (19_717, 88_000, 500),
    "arxiv-sized": (169_343, 2_300_000, 128),
    "million-nodes": (1_000_000, 21_000_000, 100),
}
COPIED_FLOATS = 50_000_000


def power_law_matrix(num_nodes: int, num_entries: int, seed: int = 0) -> sparse.csr_array:
    """The augmented normalised adjacency of a random graph whose degrees follow a power law with exponent 3.

    Both ends of every edge are drawn with weights proportional to rank^(-1/2), ranks spread over the nodes at random;
    so there is no locality to profit from. Edges drawn twice count once.
    """
    rng = np.random.default_rng(seed)
    shares = np.cumsum(np.arange(1, num_nodes + 1) ** -0.5)
    node_of_rank = rng.permutation(num_nodes)
    num_edges = (num_entries - num_nodes) // 2
    one, other = node_of_rank[np.searchsorted(shares, rng.random((2, num_edges)) * shares[-1])]
    adjacency, _, _ = undirected(one, other, num_nodes)
    return graph_operator("augmented").matrix(adjacency)


def measure(name: str, threads: int, rounds: int) -> dict[str, Any]:
    """The JSON line of one graph."""
    N, num_entries, F = SIZES[name]
    matrix = power_law_matrix(N, num_entries)
    x = np.random.default_rng(1).standard_normal((N, F), dtype=np.float32)
    out = np.empty_like(x)
    tensor, torch_out, torch_matrix = torch.from_numpy(x), torch.from_numpy(np.empty_like(x)), _torch_matrix(matrix)
    source, target = np.ones(COPIED_FLOATS, np.float32), np.empty(COPIED_FLOATS, np.float32)
    competitors: dict[str, Callable[[], object]] = {
        "ours": lambda: propagate_step(matrix, x, out=out, threads=threads),
        "ours_new_array": lambda: propagate_step(matrix, x, threads=threads),
        "scipy": lambda: propagate_step_reference(matrix, x),
        "torch": lambda: torch.mm(torch_matrix, tensor, out=torch_out),
        "copy": lambda: _copy(source, target, threads),
    }
    best = dict.fromkeys(competitors, math.inf)
    competitors["ours"]()  # loads the compiled code
    for _ in range(rounds):
        for competitor, run in competitors.items():
            before = time.perf_counter()
            run()
            best[competitor] = min(best[competitor], time.perf_counter() - before)
    np.testing.assert_allclose(out, propagate_step_reference(matrix, x), atol=1e-4)
    touched_bytes = matrix.nnz * (4 * F + 8) + 4 * N * F
    copied_bytes_per_second = 2 * source.nbytes / best["copy"]
    baseline = min(best["scipy"], best["torch"])
    return {
        "name": f"propagation/{name}",
        "ours": best["ours"],
        "baseline": baseline,
        "ratio": baseline / best["ours"],
        "unit": "s",
        "ours_new_array": best["ours_new_array"],
        "scipy": best["scipy"],
        "torch": best["torch"],
        "copy_ratio": best["ours"] / (touched_bytes / copied_bytes_per_second),
        "copied_bytes_per_second": copied_bytes_per_second,
        "nodes": N,
        "entries": int(matrix.nnz),
        "features": F,
        "threads": threads,
        "rounds": rounds,
    }


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Geometric means over the graphs."""
    means = {
        key: float(np.exp(np.mean([math.log(line[key]) for line in lines]))) for key in ("ours", "baseline", "ratio")
    }
    return {"name": "propagation", **means, "unit": "s", "graphs": len(lines)}


def _torch_matrix(matrix: sparse.csr_array) -> torch.Tensor:
    """On the CPU torch hands a product with 32-bit indices to MKL as it is, so it gets those."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr),
            torch.from_numpy(matrix.indices),
            torch.from_numpy(matrix.data),
            size=matrix.shape,
            check_invariants=True,
        )


def _copy(source: Any, target: Any, threads: int) -> None:
    cuts = np.linspace(0, len(source), threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        parts = [slice(first, last) for first, last in itertools.pairwise(cuts)]
        list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--graphs", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    lines = []
    for name in options.graphs:
        lines.append(measure(name, options.threads, options.rounds))
        print(json.dumps(lines[-1]), flush=True)
    print(json.dumps(summary(lines)))


if __name__ == "__main__":
    main()
