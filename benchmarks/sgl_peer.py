"""SGL, the code published with the PaSca paper (sgl-dair 0.1.5), made to run for comparison.

The folder holds its package `sgl`, as `pip download --no-deps sgl-dair==0.1.5` and unpacking leave it. What is done to
it so that it runs at all, nothing of which slows it down: its module `sgl.data.base_dataset` imports a module missing
from the wheel, and is replaced by one with the class that `sgl.models` asks for; its compiled product is missing from
the wheel, so it takes its own way for other systems, SciPy's; torch is told to load the whole models that SGL saves.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from engines.graph import Graph

HIDDEN_WIDTH, NUM_RUNS, NUM_EPOCHS = 128, 10, 200


class SGL:
    """Its evaluation of designs.

    Args:
        folder: that holds the package.
    """

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        stand_in = types.ModuleType("sgl.data.base_dataset")
        stand_in.HeteroNodeDataset = type("HeteroNodeDataset", (), {})  # type: ignore[attr-defined]
        sys.modules["sgl.data.base_dataset"] = stand_in
        os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
        from sgl.operators import base_op  # type: ignore[import-not-found]
        from sgl.search.auto_search import SearchManager  # type: ignore[import-not-found]
        from sgl.search.search_models import SearchModel  # type: ignore[import-not-found]

        base_op.platform = types.SimpleNamespace(system=lambda: "without the compiled product")
        self._model, self._manager = SearchModel, SearchManager

    def seconds(self, graph: Graph, design: Sequence[int], num_epochs: int = NUM_EPOCHS) -> float:
        """Seconds of one evaluation: ten runs of so many epochs, propagation included.

        Args:
            design: SGL's seven numbers.
        """
        features = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
        sums = np.maximum(np.abs(features).sum(axis=1, keepdims=True), 1e-12)
        data = types.SimpleNamespace(
            adj=sparse.csr_matrix(graph.adjacency),
            x=(features / sums).astype(np.float32),
            y=torch.from_numpy(graph.labels),
            train_idx=graph.split.train,
            val_idx=graph.split.validation,
            test_idx=graph.split.test,
            num_node=graph.num_nodes,
        )
        torch.manual_seed(0)
        began = time.perf_counter()
        model: Any = self._model(list(design), graph.num_features, graph.num_classes, HIDDEN_WIDTH)
        manager = self._manager(data, model, lr=0.01, weight_decay=5e-4, epochs=num_epochs, device="cpu")
        here = Path.cwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            os.chdir(folder)  # it saves ./best.pt
            try:
                manager._execute()
            finally:
                os.chdir(here)
        return time.perf_counter() - began
