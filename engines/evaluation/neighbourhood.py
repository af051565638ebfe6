"""Inference for some nodes: only their neighbourhood's features are read, and the answer is that of the whole graph."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.bounded_inference import propagated
from engines.evaluation.further_inputs import FurtherInputs, further_inputs
from engines.evaluation.inference import post_process, transform
from engines.evaluation.normalise import Normaliser
from engines.graph import Nodes
from search_space.architecture import Architecture
from search_space.assembly import Network
from search_space.graph_operators import GraphOperator, channels, graph_operator


def classify_nodes(
    design: Architecture,
    network: Network,
    adjacency: sparse.csr_array,
    read_features: Callable[[Nodes], NDArray[np.float32]],
    nodes: Nodes,
    num_features: int,
    memory_bytes: int | None = None,
    structure: Normaliser | None = None,
) -> NDArray[np.float32]:
    """Class probabilities of some nodes.

    Matrices are built from the whole adjacency, so degrees and triangle counts are those of the whole graph. Rows are
    then cut down to the nodes that the design's steps reach. Rows at the rim of that neighbourhood miss neighbours and
    come out wrong, but no wrong value has steps enough left to travel to a node that was asked for.

    Args:
        network: trained for S repeats, on the CPU.
        adjacency: (N, N) as in a Graph.
        read_features: given ascending node numbers (m,), returns their normalised features (m, F); called once for
            each node.
        nodes: (n,) node numbers in any order; may repeat.
        num_features: F.
        memory_bytes: what features and hops may take; None for no limit.
        structure: how local structure is standardised, for designs that take it.
    Returns:
        (S, n, C); each row sums to one.
    """
    matrices: dict[str, sparse.csr_array] = {}
    needed = np.unique(nodes)
    outputs, post, post_matrix = needed, None, None
    if design.post_aggregator is not None:
        post = graph_operator(design.post_aggregator)
        outputs, post_matrix = _neighbourhood(post, design.k_post, needed, adjacency, matrices)
    inputs, walks = outputs, []
    if design.pre_aggregator is not None:
        # every channel of an aggregator has the same pattern, so they reach the same nodes
        for operator in channels(design.pre_aggregator):
            inputs, matrix = _neighbourhood(operator, design.k_pre, outputs, adjacency, matrices)
            walks.append((matrix, operator.restart))
    matrices.clear()
    with propagated(
        design,
        walks,
        (inputs.size, num_features),
        lambda rows: read_features(inputs[rows]),
        sys.maxsize if memory_bytes is None else memory_bytes,
    ) as hops:
        # counted in the whole graph, and then cut down as the hops are
        whole = further_inputs(design, adjacency, structure)
        further = None if whole is None or whole.structure is None else FurtherInputs(None, whole.structure[inputs])
        probabilities = transform(network, hops, np.searchsorted(inputs, outputs), further=further)
    if post is not None and post_matrix is not None:
        probabilities = post_process(probabilities, post_matrix, post, design.k_post)
    return probabilities[:, np.searchsorted(outputs, nodes)]


def _neighbourhood(
    operator: GraphOperator,
    steps: int,
    nodes: Nodes,
    adjacency: sparse.csr_array,
    matrices: dict[str, sparse.csr_array],
) -> tuple[Nodes, sparse.csr_array]:
    """Ascending nodes that `steps` steps of the operator read for `nodes`, and the matrix between them.

    Args:
        matrices: built so far, by key; added to.
    """
    if operator.matrix_key not in matrices:
        matrices[operator.matrix_key] = operator.matrix(adjacency)
    matrix = matrices[operator.matrix_key]
    reached = frontier = nodes
    for _ in range(steps):
        frontier = np.setdiff1d(matrix[frontier].indices, reached)
        if frontier.size == 0:
            break
        reached = np.union1d(reached, frontier)
    between = sparse.csr_array(matrix[reached][:, reached])
    between.sort_indices()
    return reached.astype(np.int64), between
