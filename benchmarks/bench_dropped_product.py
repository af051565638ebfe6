"""The first layer of a training step: leaving out what is dropped, against dropping and multiplying.

    python benchmarks/bench_dropped_product.py DATA [--rounds 9]

The rows are the training nodes of DATA after 0, 1, 2, 4 and 8 steps, three repeats, width 128, dropout of one half, one
thread. Timed are the product and the gradient of the weights, random bytes drawn before; the baseline writes dropped
rows (a byte and an element compared and multiplied in torch) and calls torch's matrix product once a repeat, as the
hidden layers do. Both alternate within a round. Prints one JSON line a hop, with the share of elements that are not 0.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch

import pasca
from engines.evaluation.dropped_product import drop_times
from engines.evaluation.normalise import Normaliser
from engines.evaluation.propagation import propagate
from search_space.graph_operators import graph_operator
from search_space.transform import repeat_product

HOPS = (0, 1, 2, 4, 8)
NUM_REPEATS, WIDTH, THRESHOLD = 3, 128, 128


def seconds(product: Callable[[], torch.Tensor], weight: torch.Tensor) -> float:
    """Of the product and the gradient."""
    began = time.perf_counter()
    torch.autograd.grad(product().sum(), weight)
    return time.perf_counter() - began


def main() -> None:
    """Time both for each hop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    graph = pasca.load(arguments.data)
    features = Normaliser.fit("row", graph.features).apply(graph.features)
    hops = propagate(graph_operator("augmented").matrix(graph.adjacency), features, max(HOPS))
    generator = torch.Generator().manual_seed(0)
    for hop in HOPS:
        x = torch.from_numpy(hops[hop][graph.split.train]).contiguous()
        n, F = x.shape
        weight = torch.randn(NUM_REPEATS, F, WIDTH, generator=generator).requires_grad_()
        masks = [torch.randint(0, 256, (n * F,), generator=generator, dtype=torch.uint8) for _ in range(NUM_REPEATS)]

        def ours(x: torch.Tensor = x, weight: torch.Tensor = weight, masks: list[torch.Tensor] = masks) -> torch.Tensor:
            return drop_times(x, weight, masks, THRESHOLD, 2.0)

        def theirs(
            x: torch.Tensor = x, weight: torch.Tensor = weight, masks: list[torch.Tensor] = masks
        ) -> torch.Tensor:
            kept = (torch.stack(masks) >= THRESHOLD).reshape(NUM_REPEATS, *x.shape).to(torch.float32).mul_(2.0)
            return repeat_product(x * kept, weight)

        torch.testing.assert_close(ours(), theirs(), rtol=1e-4, atol=1e-4)
        rounds = [(seconds(ours, weight), seconds(theirs, weight)) for _ in range(arguments.rounds)]
        mine, baseline = (statistics.median(side) for side in zip(*rounds, strict=True))
        row = {
            "name": f"first layer of a step on {graph.name}, hop {hop}: {n} rows, {F} features, {NUM_REPEATS} repeats",
            "ours": mine,
            "baseline": baseline,
            "ratio": baseline / mine,
            "unit": "s",
            "share_not_zero": float((x != 0).double().mean()),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
