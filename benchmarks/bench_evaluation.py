"""One evaluation at equal budget: pasca against SGL, the code published with the PaSca paper (sgl-dair 0.1.5).

    python benchmarks/bench_evaluation.py DATA --sgl FOLDER

FOLDER holds SGL's package `sgl`, as `pip download --no-deps sgl-dair==0.1.5` and unpacking leave it. Both train the
same design: augmented adjacency, six hops, message operator as named, three layers of width 128, ten runs of 200
epochs, Adam with learning rate 0.01 and weight decay 5e-4, all epochs run, one thread, everything from the raw graph.
Theirs is timed around `SearchManager._execute`, ours around a new evaluator and its training. SGL measures validation
and test accuracy after every epoch, pasca validates every fourth; `ours_validating_every_epoch` is ours without that.

What is done to SGL so that it runs at all, nothing of which slows it down: its module `sgl.data.base_dataset` imports a
module missing from the wheel, and is replaced by one with the class that `sgl.models` asks for; its compiled product
is missing from the wheel, so it takes its own way for other systems, SciPy's; torch is told to load the whole models
that SGL saves. Prints one JSON line for each message operator and one with the geometric mean.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pasca
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.recipe import Recipe
from engines.graph import Graph
from search_space.architecture import Architecture

NUM_RUNS, NUM_EPOCHS, NUM_HOPS = 10, 200, 6
# Our operator, and the number SGL's search gives to the same.
MESSAGES = {"mean": 2, "concat": 1, "adaptive": 7}


def load_sgl(folder: Path) -> tuple[Any, Any]:
    """SGL's SearchModel and SearchManager."""
    sys.path.insert(0, str(folder))
    stand_in = types.ModuleType("sgl.data.base_dataset")
    stand_in.HeteroNodeDataset = type("HeteroNodeDataset", (), {})  # type: ignore[attr-defined]
    sys.modules["sgl.data.base_dataset"] = stand_in
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    from sgl.operators import base_op  # type: ignore[import-not-found]
    from sgl.search.auto_search import SearchManager  # type: ignore[import-not-found]
    from sgl.search.search_models import SearchModel  # type: ignore[import-not-found]

    base_op.platform = types.SimpleNamespace(system=lambda: "without the compiled product")
    return SearchModel, SearchManager


def sgl_seconds(sgl: tuple[Any, Any], graph: Graph, message: int) -> float:
    """Seconds of SGL's evaluation of one design."""
    model_class, manager_class = sgl
    features = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
    rows = features / np.maximum(np.abs(features).sum(axis=1, keepdims=True), 1e-12)
    data = types.SimpleNamespace(
        adj=graph.adjacency.__class__(graph.adjacency).tocsr(),
        x=rows.astype(np.float32),
        y=torch.from_numpy(graph.labels),
        train_idx=graph.split.train,
        val_idx=graph.split.validation,
        test_idx=graph.split.test,
        num_node=graph.num_nodes,
    )
    from scipy import sparse

    data.adj = sparse.csr_matrix(data.adj)
    torch.manual_seed(0)
    began = time.perf_counter()
    model = model_class([NUM_HOPS, 1, message, 3, 0, 0, 0], graph.num_features, graph.num_classes, 128)
    manager = manager_class(data, model, lr=0.01, weight_decay=5e-4, epochs=NUM_EPOCHS, device="cpu")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)  # it saves ./best.pt
        try:
            manager._execute()
        finally:
            os.chdir(here)
    return time.perf_counter() - began


def our_seconds(graph: Graph, message: str, evaluate_every: int) -> float:
    """Seconds of our evaluation of the same design, propagation included."""
    recipe = Recipe(
        hidden_width=128,
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
    sgl = load_sgl(arguments.sgl)
    our_seconds(graph, "none", 4)  # compiles what is compiled
    ratios = []
    for message in arguments.messages:
        # Ours before and after theirs, the mean of both counts: a machine that others use changes its speed in between.
        before = our_seconds(graph, message, 4)
        theirs = sgl_seconds(sgl, graph, MESSAGES[message])
        ours = (before + our_seconds(graph, message, 4)) / 2
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
