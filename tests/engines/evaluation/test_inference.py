"""Inference against dense arithmetic on a five-node graph with an isolated node."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from engines.evaluation import inference
from engines.evaluation.inference import TrainingLabels, classify, post_process, transform
from engines.evaluation.normalise import Normaliser
from search_space.architecture import Architecture
from search_space.assembly import Network
from search_space.graph_operators import channels, graph_operator
from search_space.graph_operators.correct_and_smooth import correct_and_smooth
from search_space.hops import hop_width, required_hops
from search_space.local_structure import local_structure

KNOWN = TrainingLabels(np.array([0, 3]), np.array([2, 1]))
STANDARD = Normaliser("standard", np.linspace(0.0, 1.0, 6), np.linspace(0.5, 2.0, 6))
DESIGNS = [
    "-/-/mlp-1/-",
    "-/-/mlp-2/ppr0.2^3",
    "augmented^2/none/mlp-1/-",
    "ppr0.1^3/none/mlp-2/augmented^1",
    "triangle^1/max/mlp-2/triangle^2",
    "augmented^2/concat/mlp-3/ppr0.3^2",
    "ppr0.3^2/weighted/mlp-1/triangle^1",
    "augmented^3/adaptive/mlp-2/-",
    "augmented^2/mean/mlp-2/augmented^2",
    "heat0.25_r0.25^3/recursive/mlp-2/augmented_loops2^1",
    "highpass^2/jk/mlp-1/heat0.5^2",
    "twochannel^2/concat/mlp-2/augmented^1",
    "twochannel_loops0^2/none/mlp-1/-",
    "augmented^1/sum/mlp-1/cs0.8^3",
    "triangle^1/none/mlp-2/ppr0.1^2@labels=2",
    "augmented^1/jk/mlp-2/-@labels=1,adjacency=rows",
    "-/-/mlp-1/-@adjacency=rows",
    "ppr0.1^2/mean/mlp-2/augmented^1@structure=counts",
    "-/-/mlp-1/-@labels=1,adjacency=rows,structure=counts",
]


@pytest.fixture
def adjacency() -> sparse.csr_array:
    A = np.zeros((5, 5), dtype=np.float32)
    for i, j in [(0, 1), (0, 2), (1, 2), (2, 3)]:
        A[i, j] = A[j, i] = 1
    return sparse.csr_array(A)


@pytest.fixture
def features() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


def network_of(design: Architecture) -> Network:
    return Network(
        design, hop_width(design, 3), 4, 6, [torch.Generator().manual_seed(seed) for seed in (0, 1)], 5
    ).eval()


def dense_steps(aggregator: str, steps: int, adjacency: sparse.csr_array, X0: np.ndarray) -> list[np.ndarray]:
    operator = graph_operator(aggregator)
    M = operator.matrix(adjacency).toarray().astype(np.float64)
    hops = [X0.astype(np.float64)]
    for _ in range(steps):
        hops.append((1 - operator.restart) * M @ hops[-1] + operator.restart * hops[0])
    return hops


def dense(design: Architecture, network: Network, adjacency: sparse.csr_array, X: np.ndarray) -> np.ndarray:
    hops = [X]
    if design.pre_aggregator:
        found = [dense_steps(one.name, design.k_pre, adjacency, X) for one in channels(design.pre_aggregator)]
        hops = [np.concatenate(of_hop, axis=1) for of_hop in zip(*found, strict=True)]
    stacked = torch.from_numpy(np.stack([hops[k] for k in required_hops(design)]).astype(np.float32))
    shown = None
    if design.label_steps:
        start = np.zeros((5, 4))
        start[KNOWN.nodes, KNOWN.classes] = 1.0
        shown = torch.from_numpy(dense_steps("augmented", design.label_steps, adjacency, start)[-1].astype(np.float32))
    near = torch.from_numpy(adjacency.toarray()).to_sparse_coo() if design.adjacency else None
    counted = torch.from_numpy(STANDARD.apply(local_structure(adjacency))) if design.structure else None
    with torch.no_grad():
        scores = network(network.prepare(stacked), label_inputs=shown, adjacency_rows=near, structure=counted)
        probabilities = torch.softmax(scores, dim=2).numpy()
    if design.post_aggregator and design.post_aggregator.startswith("cs"):
        operator = graph_operator(design.post_aggregator)
        S = operator.matrix(adjacency).toarray().astype(np.float64)
        by_node = correct_and_smooth(
            probabilities.transpose(1, 0, 2),
            KNOWN.nodes,
            KNOWN.classes,
            design.k_post,
            lambda x, x0: (1 - operator.restart) * S @ x + operator.restart * x0,
        )
        probabilities = by_node.transpose(1, 0, 2)
    elif design.post_aggregator:
        probabilities = np.stack(
            [dense_steps(design.post_aggregator, design.k_post, adjacency, repeat)[-1] for repeat in probabilities]
        )
    return probabilities / probabilities.sum(axis=2, keepdims=True)


@pytest.mark.parametrize("text", DESIGNS)
def test_classify_equals_the_dense_computation(
    text: str, adjacency: sparse.csr_array, features: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "BLOCK_ROWS", 2)  # several blocks, the last one short
    design = Architecture.parse(text)
    network = network_of(design)
    found = classify(design, network, adjacency, features, KNOWN, STANDARD)
    assert found.shape == (2, 5, 4)
    np.testing.assert_allclose(found, dense(design, network, adjacency, features), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=2), 1.0, rtol=1e-5)


def test_chosen_rows_come_in_the_order_asked_for(features: np.ndarray) -> None:
    network = network_of(Architecture.parse("-/-/mlp-2/-"))
    every = transform(network, [features])
    rows = np.array([3, 0, 4])
    np.testing.assert_allclose(transform(network, [features], rows), every[:, rows], rtol=1e-6)


def test_post_processing_divides_rows_by_their_sum_and_keeps_the_winner(adjacency: sparse.csr_array) -> None:
    rng = np.random.default_rng(1)
    start = rng.dirichlet(np.ones(3), size=(2, 5)).astype(np.float32)
    operator = graph_operator("ppr0.1")
    found = post_process(start, operator.matrix(adjacency), operator, 4)
    for repeat, spread in zip(start, found, strict=True):
        raw = dense_steps("ppr0.1", 4, adjacency, repeat)[-1]
        assert np.abs(raw.sum(axis=1) - 1).max() > 0.05, "the rows of the matrix do not sum to one"
        np.testing.assert_array_equal(spread.argmax(axis=1), raw.argmax(axis=1))
        np.testing.assert_allclose(spread.sum(axis=1), 1.0, rtol=1e-6)


def test_an_isolated_node_keeps_its_own_scores(adjacency: sparse.csr_array, features: np.ndarray) -> None:
    with_post = Architecture.parse("-/-/mlp-2/augmented^3")
    network = network_of(with_post)
    alone = classify(Architecture.parse("-/-/mlp-2/-"), network, adjacency, features)
    np.testing.assert_allclose(classify(with_post, network, adjacency, features)[:, 4], alone[:, 4], rtol=1e-5)
