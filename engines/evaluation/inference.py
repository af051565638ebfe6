"""Inference: from hop features and weights to class probabilities of all nodes, in row blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.costs import BLOCK_ROWS
from engines.evaluation.further_inputs import FurtherInputs, FurtherRows, further_inputs
from engines.evaluation.hop_files import ColumnTiles, HopRows
from engines.evaluation.label_reuse import label_inputs
from engines.evaluation.normalise import Normaliser
from engines.evaluation.propagation import propagate_step
from search_space.architecture import Architecture
from search_space.assembly import Network
from search_space.graph_operators import CorrectAndSmooth, GraphOperator, channels, graph_operator
from search_space.graph_operators.correct_and_smooth import correct_and_smooth


@dataclass(frozen=True, eq=False)
class TrainingLabels:
    """What some designs know when they classify: labels of the training nodes, and no others.

    Attributes:
        nodes: (n,) node numbers.
        classes: (n,) int64, 0 to C - 1.
    """

    nodes: NDArray[np.int64]
    classes: NDArray[np.int64]


def classify(
    design: Architecture,
    network: Network,
    adjacency: sparse.csr_array,
    features: NDArray[np.float32],
    known: TrainingLabels | None = None,
    structure: Normaliser | None = None,
) -> NDArray[np.float32]:
    """Class probabilities of all nodes from the raw graph: build, propagate, join, transform, post-process.

    Hops that are not joined are dropped as soon as the next one exists, so `none` needs two or three feature arrays
    whatever K_pre is, and the other joins K_pre + 1.

    Args:
        network: trained for S repeats, on the CPU.
        adjacency: (N, N) as in a Graph.
        features: (N, F) float32, normalised.
        known: for designs that need it.
        structure: how local structure is standardised, for designs that take it.
    Returns:
        (S, N, C); each row sums to one.
    """
    matrices: dict[str, sparse.csr_array] = {}
    hops: list[HopRows] = [features]
    if design.pre_aggregator is not None:
        found = []
        for operator in channels(design.pre_aggregator):
            matrix = matrices.setdefault(operator.matrix_key, operator.matrix(adjacency))
            of_channel = [features]
            for _ in range(design.k_pre):
                step = propagate_step(matrix, of_channel[-1], restart=operator.restart, start=features)
                of_channel = [step] if design.message == "none" else [*of_channel, step]
            found.append(of_channel)
        hops = side_by_side(found)
        del found, of_channel, step
    shown = reused_labels(design, known, adjacency, matrices, network.transform.num_classes)
    further = further_inputs(design, adjacency, structure)
    probabilities = transform(network, hops, shown=shown, further=further)
    if design.post_aggregator is None:
        return probabilities
    del hops
    operator = graph_operator(design.post_aggregator)
    if operator.matrix_key not in matrices:
        matrices = {operator.matrix_key: operator.matrix(adjacency)}
    return post_process(probabilities, matrices[operator.matrix_key], operator, design.k_post, known)


def reused_labels(
    design: Architecture,
    known: TrainingLabels | None,
    adjacency: sparse.csr_array,
    matrices: dict[str, sparse.csr_array],
    num_classes: int,
) -> NDArray[np.float32] | None:
    """Further inputs (N, C) of a design that reuses labels; None for others.

    Args:
        matrices: built so far, by key; added to.
    """
    if design.label_steps is None:
        return None
    assert known is not None, "label reuse needs the training labels"
    low = graph_operator("augmented")
    if low.matrix_key not in matrices:
        matrices[low.matrix_key] = low.matrix(adjacency)
    return shown_labels(design.label_steps, known, matrices[low.matrix_key], num_classes)


def shown_labels(steps: int, known: TrainingLabels, matrix: sparse.csr_array, num_classes: int) -> NDArray[np.float32]:
    """Further inputs (N, C) of all nodes from the training labels; see `label_reuse`."""
    return label_inputs(
        matrix.shape[0], num_classes, known.nodes, known.classes, steps, lambda before: propagate_step(matrix, before)
    )


def side_by_side(of_channels: Sequence[Sequence[HopRows]]) -> list[HopRows]:
    """Hops of one channel as they are, or of several with the columns of the same hop next to each other."""
    if len(of_channels) == 1:
        return list(of_channels[0])
    return [ColumnTiles(tiles) for tiles in zip(*of_channels, strict=True)]


def transform(
    network: Network,
    hops: Sequence[HopRows],
    rows: NDArray[np.int64] | None = None,
    *,
    shown: NDArray[np.float32] | None = None,
    further: FurtherInputs | None = None,
) -> NDArray[np.float32]:
    """Join and transform rows block by block.

    Args:
        hops: those that the design joins, each (N, F).
        rows: which nodes, in this order; all of them when None.
        shown: (N, C) further inputs of a design that reuses labels.
        further: of all nodes, for a design that takes them.
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
            labels = None if shown is None else torch.from_numpy(shown[block]).to(device)
            others = FurtherRows() if further is None else further.rows(block, device)
            hop_rows = network.prepare(stack_rows(hops, block).to(device))
            scores = network(hop_rows, label_inputs=labels, adjacency_rows=others.adjacency, structure=others.structure)
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
    probabilities: NDArray[np.float32],
    matrix: sparse.csr_array,
    operator: GraphOperator,
    steps: int,
    known: TrainingLabels | None = None,
) -> NDArray[np.float32]:
    """Propagate the softmax output, keep the last step, and divide each row by its sum.

    Args:
        probabilities: (S, N, C), X(0) of the post-processing stage.
        matrix: (N, N) of the operator.
        known: for an operator that needs it.
    Returns:
        (S, N, C); each row sums to one. Rows of the matrix do not, which would distort scores that compare nodes.
    """
    S, N, C = probabilities.shape

    def step(before: NDArray[np.float32], start: NDArray[np.float32]) -> NDArray[np.float32]:
        return propagate_step(matrix, before, restart=operator.restart, start=start)

    # (S, N, C) -> (N, S, C) -> (N, S·C): all repeats travel in one product
    by_node = np.ascontiguousarray(probabilities.transpose(1, 0, 2))
    if isinstance(operator, CorrectAndSmooth):
        assert known is not None, "Correct & Smooth needs the training labels"
        spread = correct_and_smooth(by_node, known.nodes, known.classes, steps, step)
        # a node whose numbers were all cut off at zero is as likely to be of any class
        spread[spread.sum(axis=2) == 0.0] = 1.0
    else:
        start = by_node.reshape(N, S * C)
        current = start
        for _ in range(steps):
            current = step(current, start)
        spread = current.reshape(N, S, C)
    spread = spread / spread.sum(axis=2, keepdims=True)
    return np.ascontiguousarray(spread.transpose(1, 0, 2))
