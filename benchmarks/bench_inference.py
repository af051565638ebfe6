"""Predicted against measured inference time and peak memory of the classics, on any graph.

    python benchmarks/bench_inference.py DATA [--threads 2]

Prints one JSON line a design: `ours` is the time the stage table predicts, `baseline` the median of five whole
inferences from the raw graph, both in the same process.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch

import pasca
from engines.evaluation.inference import classify
from engines.evaluation.local import LocalEvaluator
from search_space.assembly import Network
from search_space.classics import CLASSICS


def main() -> None:
    """Time every classic."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--threads", type=int, default=None)
    arguments = parser.parse_args()
    graph = pasca.load(arguments.data)
    evaluator = LocalEvaluator(graph, threads=arguments.threads)
    for name, design in CLASSICS.items():
        predicted = evaluator.known_of(design)["inference_seconds"]
        generator = torch.Generator().manual_seed(0)
        network = Network(
            design, graph.num_features, graph.num_classes, evaluator.recipe.hidden_width, [generator]
        ).eval()
        spans = []
        for _ in range(6):
            before = time.perf_counter()
            classify(design, network, graph.adjacency, evaluator.normaliser.apply(graph.features))
            spans.append(time.perf_counter() - before)
        measured = float(np.median(spans[1:]))
        print(
            json.dumps(
                {
                    "name": f"inference_seconds of {name} on {graph.name}",
                    "ours": predicted,
                    "baseline": measured,
                    "ratio": predicted / measured,
                    "unit": "s",
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
