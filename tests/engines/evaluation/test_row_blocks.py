"""What ranks exchange under any partition: each foreign row that is gathered from, once, and with it the exact hop."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.evaluation.partition import PARTITIONS, make_partition
from engines.evaluation.plans import Ownership
from engines.evaluation.row_blocks import RowBlock
from engines.graph import undirected
from search_space.graph_operators import graph_operator


@settings(max_examples=60)
@given(
    st.integers(1, 30),
    st.integers(0, 60),
    st.integers(1, 6),
    st.sampled_from(sorted(PARTITIONS)),
    st.sampled_from(["augmented", "triangle"]),
    st.integers(0, 10**6),
)
def test_own_rows_and_halo_rows_give_the_hop(N: int, E: int, P: int, method: str, aggregator: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    adjacency = undirected(rng.integers(0, N, E), rng.integers(0, N, E), N)[0]
    matrix = graph_operator(aggregator).matrix(adjacency)
    x = rng.standard_normal((N, 2)).astype(np.float32)
    partition = make_partition(method, adjacency, P)
    owner = partition.owner
    hop = np.full_like(x, np.nan)
    for rank in range(P):
        ownership = Ownership.of(partition, adjacency, rank)
        block = RowBlock.of(matrix, ownership, owner, rank, P)
        dense = matrix.toarray()[ownership.nodes] != 0
        # The halo is the foreign nodes among the columns, by owner and then ascending, and the counts say whose.
        foreign = [node for node in np.flatnonzero(dense.any(axis=0)) if owner[node] != rank]
        assert block.halo.tolist() == sorted(foreign, key=lambda node: (owner[node], node))
        assert block.halo_counts.tolist() == [sum(owner[node] == p for node in foreign) for p in range(P)]
        own = x[ownership.nodes]
        split = ownership.num_interior
        hop[ownership.nodes[:split]] = block.interior @ own
        hop[ownership.nodes[split:]] = block.boundary @ np.concatenate((own[block.near], x[block.halo]))
    np.testing.assert_array_equal(hop, matrix @ x)
