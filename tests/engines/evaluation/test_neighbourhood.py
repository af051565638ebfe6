"""Classifying some nodes reads what their answer depends on, no more, and gives the answer of the whole graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.further_inputs import standard_structure
from engines.evaluation.inference import classify
from engines.evaluation.neighbourhood import classify_nodes
from engines.graph import Nodes, undirected
from search_space.architecture import Architecture
from search_space.assembly import Network
from search_space.graph_operators import graph_operator

N, F, C = 40, 3, 4
DESIGNS = (
    "augmented^2/concat/mlp-2/ppr0.2^1",
    "triangle^2/adaptive/mlp-2/augmented^1",
    "ppr0.1^3/none/mlp-1/-",
    "-/-/mlp-2/triangle^2",
    "-/-/mlp-1/-",
    "augmented^1/mean/mlp-2/ppr0.1^1@structure=counts",
)


@pytest.fixture
def adjacency() -> sparse.csr_array:
    """A sparse graph with a few triangles and an isolated last node."""
    rng = np.random.default_rng(0)
    sources, targets = rng.integers(N - 1, size=(2, 30))
    ring = np.arange(8)
    matrix, _, _ = undirected(
        np.concatenate((sources, ring, ring)), np.concatenate((targets, (ring + 1) % 8, (ring + 2) % 8)), N
    )
    return matrix


def network(design: Architecture, num_repeats: int = 2) -> Network:
    return Network(design, F, C, 8, [torch.Generator().manual_seed(seed) for seed in range(num_repeats)]).eval()


@pytest.mark.parametrize("text", DESIGNS)
def test_the_answer_is_that_of_the_whole_graph(adjacency: sparse.csr_array, text: str) -> None:
    design = Architecture.parse(text)
    features = np.random.default_rng(1).normal(size=(N, F)).astype(np.float32)
    made = network(design)
    standard, _ = standard_structure(adjacency)
    whole = classify(design, made, adjacency, features, structure=standard)
    for nodes in (np.asarray([5]), np.asarray([39, 2, 2, 17]), np.arange(N)):
        found = classify_nodes(design, made, adjacency, lambda rows: features[rows], nodes, F, structure=standard)
        np.testing.assert_allclose(found, whole[:, nodes], atol=1e-6)


@pytest.mark.parametrize("text", DESIGNS)
def test_features_are_read_once_and_only_where_a_path_of_the_steps_leads(
    adjacency: sparse.csr_array, text: str
) -> None:
    """The rows that matter are where the product of the steps' matrices, dense, is not zero."""
    design = Architecture.parse(text)
    reach = np.eye(N)
    for aggregator, steps in ((design.post_aggregator, design.k_post), (design.pre_aggregator, design.k_pre)):
        for _ in range(steps):
            reach = reach @ graph_operator(str(aggregator)).matrix(adjacency).toarray()
    for node in range(0, N, 6):
        read: list[list[int]] = []

        def features(rows: Nodes, read: list[list[int]] = read) -> NDArray[np.float32]:
            read.append(rows.tolist())
            return np.ones((rows.size, F), dtype=np.float32)

        standard, _ = standard_structure(adjacency)
        classify_nodes(design, network(design), adjacency, features, np.asarray([node]), F, structure=standard)
        assert read == [np.flatnonzero(reach[node]).tolist()]
