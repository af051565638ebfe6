"""One evaluation at equal budget: pasca against SGL, the code published with the PaSca paper (sgl-dair 0.1.5).

    python benchmarks/bench_evaluation.py DATA --sgl FOLDER

Both train the same design: augmented adjacency, six hops, message operator as named, three layers of width 128, ten
runs of 200 epochs, Adam with learning rate 0.01 and weight decay 5e-4, all epochs run, one thread, everything from the
raw graph. Theirs is timed around `SearchManager._execute`, ours around a new evaluator and its training. SGL measures
validation and test accuracy after every epoch, pasca every fifth (its default); `ours_validating_every_epoch` is ours
without that. How SGL is made to run: `sgl_peer.py`. Prints one JSON line for each message operator and one with the
geometric mean.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from pathlib import Path

import torch
from sgl_peer import HIDDEN_WIDTH, NUM_EPOCHS, NUM_RUNS, SGL

import pasca
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.recipe import Recipe
from engines.graph import Graph
from search_space.architecture import Architecture

NUM_HOPS = 6
EVERY = Recipe().evaluate_every
# Our operator, and the number SGL's search gives to the same.
MESSAGES = {"mean": 2, "concat": 1, "adaptive": 7}


def our_seconds(graph: Graph, message: str, evaluate_every: int) -> float:
    """Seconds of our evaluation of the same design, propagation included."""
    recipe = Recipe(
        hidden_width=HIDDEN_WIDTH,
        learning_rate=0.01,
        weight_decay=5e-4,
        max_epochs=NUM_EPOCHS,
        patience=NUM_EPOCHS,
        evaluate_every=evaluate_every,
    )
    design = Architecture.parse(f"augmented^{NUM_HOPS}/{message}/mlp-3/-")
    began = time.perf_counter()
    evaluator = LocalEvaluator(graph, recipe=recipe, threads=1)
    trained = evaluator.train(design, range(NUM_RUNS))
    seconds = time.perf_counter() - began
    assert trained.details["num_epochs"] == NUM_EPOCHS
    evaluator.close()
    return seconds


def main() -> None:
    """Time both, one after the other, for each message operator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="Cora")
    parser.add_argument("--sgl", type=Path, required=True)
    parser.add_argument("--messages", nargs="+", choices=list(MESSAGES), default=list(MESSAGES))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    graph = pasca.load(arguments.data)
    sgl = SGL(arguments.sgl)
    our_seconds(graph, "none", EVERY)  # compiles what is compiled
    ratios = []
    for message in arguments.messages:
        # Ours before and after theirs, the mean of both counts: a machine that others use changes its speed in between.
        before = our_seconds(graph, message, EVERY)
        theirs = sgl.seconds(graph, [NUM_HOPS, 1, MESSAGES[message], 3, 0, 0, 0])
        ours = (before + our_seconds(graph, message, EVERY)) / 2
        ratios.append(theirs / ours)
        row = {
            "name": f"one evaluation of augmented^{NUM_HOPS}/{message}/mlp-3/- on {graph.name}",
            "ours": ours,
            "baseline": theirs,
            "ratio": theirs / ours,
            "unit": "s",
            "ours_validating_every_epoch": our_seconds(graph, message, 1),
        }
        print(json.dumps(row), flush=True)
    mean = statistics.geometric_mean(ratios)
    print(
        json.dumps(
            {
                "name": f"one evaluation on {graph.name}, geometric mean over {', '.join(arguments.messages)}",
                "ours": 1.0,
                "baseline": mean,
                "ratio": mean,
                "unit": "times ours",
                "smallest_ratio": min(ratios),
                "versions": {"python": platform.python_version(), "torch": torch.__version__},
            }
        )
    )


if __name__ == "__main__":
    main()
