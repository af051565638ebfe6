"""Both propagation plans give, bit by bit, what one process gives, and send the bytes that they said they would."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation import row_blocks
from engines.evaluation.communicator import Communicator
from engines.evaluation.feature_slices import FeatureSlices
from engines.evaluation.partition import PARTITIONS, Partition, make_partition
from engines.evaluation.plans import Ownership, PropagationPlan
from engines.evaluation.propagation import propagate
from engines.evaluation.row_blocks import RowBlock, RowBlocks
from engines.graph import undirected
from search_space.errors import ConfigError, ShapeError
from search_space.graph_operators import graph_operator

ROOMY, TIGHT = 1 << 20, 12_000


def random_graph(N: int, E: int) -> sparse.csr_array:
    """A graph with isolated nodes, since nodes outnumber what its edges reach."""
    rng = np.random.default_rng(0)
    return undirected(rng.integers(0, N, E), rng.integers(0, N, E), N)[0]


def features(N: int, W: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).standard_normal((N, W), dtype=np.float32)


def plans(
    ranks: Communicator, matrix: sparse.csr_array, ownership: Ownership, partition: Partition, buffer_bytes: int
) -> Iterator[PropagationPlan]:
    yield RowBlocks(
        ranks,
        ownership,
        lambda key: RowBlock.of(matrix, ownership, partition.owner, ranks.rank, ranks.size),
        buffer_bytes,
    )
    yield FeatureSlices(ranks, ownership, lambda key: matrix, buffer_bytes)


@pytest.mark.parametrize("aggregator", ["augmented", "ppr0.2", "triangle"])
@pytest.mark.parametrize("method", PARTITIONS)
@pytest.mark.parametrize(
    ("N", "E", "W", "buffer_bytes"), [(3, 2, 1, ROOMY), (50, 40, 5, ROOMY), (300, 900, 13, TIGHT), (90, 200, 36, ROOMY)]
)
def test_hops_equal_those_of_one_process(
    ranks: Communicator, N: int, E: int, W: int, method: str, aggregator: str, buffer_bytes: int
) -> None:
    adjacency, x = random_graph(N, E), features(N, W)
    operator = graph_operator(aggregator)
    matrix = operator.matrix(adjacency)
    expected = propagate(matrix, x, 3, restart=operator.restart)[1:]
    partition = make_partition(method, adjacency, ranks.size)
    ownership = Ownership.of(partition, adjacency, ranks.rank)
    for plan in plans(ranks, matrix, ownership, partition, buffer_bytes):
        walk = plan.walk(operator.matrix_key, x[ownership.nodes], operator.restart)
        for hop, whole in zip([*walk.steps(2), *walk.steps(1)], expected, strict=True):
            np.testing.assert_array_equal(hop, whole[ownership.nodes], err_msg=plan.name)


def test_a_path_of_three_nodes_worked_by_hand(ranks: Communicator) -> None:
    adjacency = undirected(np.array([0, 1]), np.array([1, 2]), 3)[0]
    matrix = graph_operator("augmented").matrix(adjacency)
    partition = make_partition("contiguous", adjacency, ranks.size)
    ownership = Ownership.of(partition, adjacency, ranks.rank)
    x = np.array([[1.0], [2.0], [3.0]], np.float32)
    for plan in plans(ranks, matrix, ownership, partition, ROOMY):
        (hop,) = plan.walk("augmented", x[ownership.nodes], 0.0).steps(1)
        whole = np.empty((3, 1), np.float32)
        for nodes, rows in zip(ranks.gather(plan.nodes), ranks.gather(hop), strict=True):
            whole[nodes] = rows
        np.testing.assert_allclose(whole.ravel(), [1.316497, 2.299660, 2.316497], rtol=1e-6)


@pytest.mark.parametrize("aggregator", ["augmented", "triangle"])
@pytest.mark.parametrize("method", PARTITIONS)
def test_bytes_sent_are_those_predicted(ranks: Communicator, method: str, aggregator: str) -> None:
    adjacency, x = random_graph(300, 900), features(300, 13)
    matrix = graph_operator(aggregator).matrix(adjacency)
    partition = make_partition(method, adjacency, ranks.size)
    ownership = Ownership.of(partition, adjacency, ranks.rank)
    for plan in plans(ranks, matrix, ownership, partition, ROOMY):
        predicted = plan.predicted_bytes(aggregator, 13, 3)
        before = ranks.traffic.copy()
        plan.walk(aggregator, x[ownership.nodes], 0.0).steps(3)
        sent = int(ranks.sum(np.array([ranks.traffic.since(before).sent_bytes]))[0])
        assert sent == predicted, plan.name


def test_rows_held_by_all_ranks_are_the_nodes_once(ranks: Communicator) -> None:
    adjacency = random_graph(300, 900)
    for method in PARTITIONS:
        partition = make_partition(method, adjacency, ranks.size)
        parts = ranks.gather(Ownership.of(partition, adjacency, ranks.rank).nodes)
        assert sorted(np.concatenate(parts).tolist()) == list(range(300))


def test_interior_rows_are_computed_in_batches(ranks: Communicator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "BATCH_ROWS", 7)
    adjacency, x = random_graph(300, 900), features(300, 4)
    matrix = graph_operator("augmented").matrix(adjacency)
    partition = make_partition("metis", adjacency, ranks.size)
    ownership = Ownership.of(partition, adjacency, ranks.rank)
    plan = next(plans(ranks, matrix, ownership, partition, ROOMY))
    (hop,) = plan.walk("augmented", x[ownership.nodes], 0.0).steps(1)
    np.testing.assert_array_equal(hop, propagate(matrix, x, 1)[1][ownership.nodes])


def test_buffers_that_hold_no_column_are_refused_on_every_rank(ranks: Communicator) -> None:
    if ranks.size == 1:
        pytest.skip("one rank exchanges nothing")
    adjacency, x = random_graph(300, 900), features(300, 4)
    matrix = graph_operator("augmented").matrix(adjacency)
    partition = make_partition("hash", adjacency, ranks.size)
    ownership = Ownership.of(partition, adjacency, ranks.rank)
    plan = next(plans(ranks, matrix, ownership, partition, 100))
    with pytest.raises(ConfigError, match=r"but 100 are allowed; raise --memory"):
        plan.walk("augmented", x[ownership.nodes], 0.0)


def test_a_request_for_rows_of_another_partition_is_refused(ranks: Communicator) -> None:
    if ranks.size == 1:
        pytest.skip("needs two ranks")
    complete = sparse.csr_array(np.ones((8, 8), np.float32) - np.eye(8, dtype=np.float32))
    matrix = graph_operator("augmented").matrix(complete)
    partition = make_partition("contiguous", complete, ranks.size)
    ownership = Ownership.of(partition, complete, ranks.rank)
    short = Ownership(ownership.nodes[:-1], ownership.num_interior)
    plan = RowBlocks(
        ranks, short, lambda key: RowBlock.of(matrix, ownership, partition.owner, ranks.rank, ranks.size), ROOMY
    )
    with pytest.raises(ShapeError, match="was the graph partitioned for another number of ranks"):
        plan.predicted_bytes("augmented", 1, 1)
