"""GraphShare: what one rank of a group needs of a graph for its part; cut from the whole graph, or read from files."""

from __future__ import annotations

from typing import Protocol

from scipy import sparse

from engines.evaluation.communicator import Communicator
from engines.evaluation.normalise import Normaliser
from engines.evaluation.partition import PartitionReport, make_partition, partition_report
from engines.evaluation.plans import Ownership
from engines.evaluation.row_blocks import RowBlock
from engines.graph import Features, Graph
from search_space.graph_operators import graph_operator

USUAL_PARTITION = "contiguous"


class GraphShare(Protocol):
    """One rank's share of a graph under a partition.

    Attributes:
        graph: the whole graph. Its labels, splits and sizes are read; its adjacency and features are left to the
            methods below, so they may be memory-mapped and never touched.
        partition: how the nodes were divided.
        report: what the partition costs.
        ownership: the nodes of this rank.
    """

    graph: Graph
    partition: str
    report: PartitionReport
    ownership: Ownership

    def features(self) -> Features:
        """(n, F) rows of the own nodes, as the graph has them."""
        ...

    def normaliser(self, kind: str) -> Normaliser:
        """Fitted on all nodes."""
        ...

    def block(self, key: str) -> RowBlock:
        """The own rows of the matrix with that key."""
        ...

    def matrix(self, key: str) -> sparse.csr_array:
        """The whole (N, N) matrix with that key; may be memory-mapped."""
        ...


class CutShare:
    """A share cut from the whole graph, which this rank holds.

    Args:
        communicator: the group.
        graph: the same on every rank.
        partition: `contiguous`, `hash` or `metis`.
    Raises:
        ConfigError: the partition is unknown.
    """

    def __init__(self, communicator: Communicator, graph: Graph, partition: str = USUAL_PARTITION) -> None:
        self.graph, self.partition = graph, partition
        self._parts = make_partition(partition, graph.adjacency, communicator.size)
        self._rank = communicator.rank
        self.report = partition_report(self._parts, graph.adjacency)
        self.ownership = Ownership.of(self._parts, graph.adjacency, communicator.rank)

    def features(self) -> Features:
        """See GraphShare."""
        return self.graph.features[self.ownership.nodes]

    def normaliser(self, kind: str) -> Normaliser:
        """See GraphShare."""
        return Normaliser.fit(kind, self.graph.features)

    def block(self, key: str) -> RowBlock:
        """See GraphShare."""
        return RowBlock.of(self.matrix(key), self.ownership, self._parts.owner, self._rank, self._parts.num_parts)

    def matrix(self, key: str) -> sparse.csr_array:
        """See GraphShare."""
        return graph_operator(key).matrix(self.graph.adjacency)
