"""What tests of exported models share: small graphs, and designs with weights that no training has tamed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.graph import Graph, Split, undirected
from search_space.architecture import Architecture

HIDDEN_WIDTH = 8


@pytest.fixture
def named_graph() -> Graph:
    """60 nodes with ids and four named features; two are isolated, a third of the edges close triangles."""
    rng = np.random.default_rng(3)
    N = 60
    sources, targets = rng.integers(N - 2, size=(2, 90))
    ring = np.arange(20)
    sources = np.concatenate((sources, ring, ring))
    targets = np.concatenate((targets, (ring + 1) % 20, (ring + 2) % 20))
    adjacency, _, _ = undirected(sources, targets, N)
    labels = rng.integers(3, size=N)
    order = rng.permutation(N)
    return Graph(
        name="small",
        adjacency=adjacency,
        features=rng.normal(size=(N, 4)).astype(np.float32),
        labels=labels.astype(np.int64),
        class_names=("red", "green", "blue"),
        split=Split(order[:12], order[12:30], order[30:], "by hand"),
        node_ids=np.asarray([f"n{i:03d}" for i in range(N)]),
        feature_names=("f1", "f2", "f3", "f4"),
    )


@pytest.fixture
def make_trained() -> Callable[..., Any]:
    """A TrainedDesign with random weights everywhere, so that no bias or hop weight is at its starting value."""
    # not at the head of the file: most tests beside this one need no torch
    import torch

    from engines.evaluation.further_inputs import standard_structure
    from engines.evaluation.local import TrainedDesign
    from engines.evaluation.normalise import Normaliser
    from engines.evaluation.training import Trained
    from search_space.assembly import Network
    from search_space.hops import hop_width

    def make(
        design: str,
        graph: Graph,
        *,
        num_repeats: int = 3,
        normalise: str = "row",
        val_errors: tuple[float, ...] | None = None,
        val_losses: tuple[float, ...] | None = None,
    ) -> TrainedDesign:
        architecture = Architecture.parse(design)
        generators = [torch.Generator().manual_seed(seed) for seed in range(num_repeats)]
        width, hidden = hop_width(architecture, graph.num_features), architecture.hidden_width or HIDDEN_WIDTH
        network = Network(architecture, width, graph.num_classes, hidden, generators, graph.num_nodes)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.uniform_(-1.0, 1.0, generator=generators[0])
        zeros = (0.0,) * num_repeats
        trained = Trained(
            network=network.eval(),
            best_epochs=np.arange(num_repeats),
            validation_scores=np.zeros(num_repeats),
            validation_losses=np.asarray(val_losses or zeros),
            num_epochs=9,
            curve=[],
        )
        return TrainedDesign(
            design=architecture,
            seeds=tuple(range(100, 100 + num_repeats)),
            trained=trained,
            normaliser=Normaliser.fit(normalise, graph.features),
            val_errors=np.asarray(val_errors or zeros),
            structure=None if architecture.structure is None else standard_structure(graph.adjacency)[0],
        )

    return make


@pytest.fixture
def export(tmp_path: Path, make_trained: Callable[..., Any]) -> Callable[..., Path]:
    """Export a design with random weights; gives the folder."""
    from engines.evaluation.recipe import Recipe
    from pasca.export import export_design

    def make(design: str, graph: Graph, *, name: str = "model", normalise: str = "row", ensemble: bool = False) -> Path:
        return export_design(
            make_trained(design, graph, normalise=normalise),
            graph,
            Recipe(hidden_width=HIDDEN_WIDTH, normalise=normalise),
            tmp_path / name,
            metrics={"val_error": 0.25},
            protocol={"split": graph.split.name},
            ensemble=ensemble,
        )

    return make
