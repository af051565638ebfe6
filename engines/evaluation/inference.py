"""Inference: from hop features and weights to class probabilities of all nodes, in row blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.hop_files import HopRows
from engines.evaluation.propagation import propagate_step
from search_space.architecture import Architecture
from search_space.assembly import Network
from search_space.graph_operators import graph_operator

BLOCK_ROWS = 1024
"""Rows that are joined and transformed together: a block of wide features stays near the last-level cache."""


def classify(
    design: Architecture, network: Network, adjacency: sparse.csr_array, features: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Class probabilities of all nodes from the raw graph: build, propagate, join, transform, post-process.

    Hops that are not joined are dropped as soon as the next one exists, so `none` needs two or three feature arrays
    whatever K_pre is, and the other joins K_pre + 1.

    Args:
        network: trained for S repeats, on the CPU.
        adjacency: (N, N) as in a Graph.
        features: (N, F) float32, normalised.
    Returns:
        (S, N, C); each row sums to one.
    """
    matrices: dict[str, sparse.csr_array] = {}
    hops = [features]
    if design.pre_aggregator is not None:
        operator = graph_operator(design.pre_aggregator)
        matrix = matrices.setdefault(operator.matrix_key, operator.matrix(adjacency))
        keep_all = design.message != "none"
        for _ in range(design.k_pre):
            step = propagate_step(matrix, hops[-1], restart=operator.restart, start=features)
            hops = [*hops, step] if keep_all else [step]
    probabilities = transform(network, hops)
    if design.post_aggregator is None:
        return probabilities
    del hops
    operator = graph_operator(design.post_aggregator)
    if operator.matrix_key not in matrices:
        matrices = {operator.matrix_key: operator.matrix(adjacency)}
    return post_process(probabilities, matrices[operator.matrix_key], operator.restart, design.k_post)


def transform(network: Network, hops: Sequence[HopRows], rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
    """Join and transform rows block by block.

    Args:
        hops: those that the design joins, each (N, F).
        rows: which nodes, in this order; all of them when None.
    Returns:
        Softmax probabilities, (S, n, C) with n rows.
    """
    device = next(network.parameters()).device
    n = hops[0].shape[0] if rows is None else rows.size
    probabilities: NDArray[np.float32] | None = None
    with torch.inference_mode():
        for first in range(0, n, BLOCK_ROWS):
            last = min(first + BLOCK_ROWS, n)
            block = slice(first, last) if rows is None else rows[first:last]
            scores = network(network.prepare(stack_rows(hops, block).to(device)))
            if probabilities is None:
                S, _, C = scores.shape
                probabilities = np.empty((S, n, C), np.float32)
            probabilities[:, first:last] = torch.softmax(scores, dim=2).cpu().numpy()
    assert probabilities is not None, "there are no rows"
    return probabilities


def stack_rows(hops: Sequence[HopRows], rows: slice | NDArray[np.int64]) -> torch.Tensor:
    """The same rows of several hops as one tensor, (k, n, F); a view when one hop in memory and a slice are given."""
    first = hops[0][rows]
    if len(hops) == 1:
        return torch.from_numpy(first).unsqueeze(0)
    stacked = np.empty((len(hops), *first.shape), np.float32)
    stacked[0] = first
    for k in range(1, len(hops)):
        stacked[k] = hops[k][rows]
    return torch.from_numpy(stacked)


def post_process(
    probabilities: NDArray[np.float32], matrix: sparse.csr_array, restart: float, steps: int
) -> NDArray[np.float32]:
    """Propagate the softmax output, keep the last step, and divide each row by its sum.

    Args:
        probabilities: (S, N, C), X(0) of the post-processing stage.
        matrix: (N, N) of the aggregator.
    Returns:
        (S, N, C); each row sums to one. Rows of the matrix do not, which would distort scores that compare nodes.
    """
    S, N, C = probabilities.shape
    # (S, N, C) -> (N, S, C) -> (N, S·C): all repeats travel in one product
    start = np.ascontiguousarray(probabilities.transpose(1, 0, 2)).reshape(N, S * C)
    current = start
    for _ in range(steps):
        current = propagate_step(matrix, current, restart=restart, start=start)
    spread = current.reshape(N, S, C)
    spread = spread / spread.sum(axis=2, keepdims=True)
    return np.ascontiguousarray(spread.transpose(1, 0, 2))
