"""The byte model: what each propagation plan sends, holds and takes, and which one to choose.

All figures follow from counts that are known before anything starts. Traffic is exact when the halo rows are counted,
and an expectation when only the sizes of the graph are known.
"""

from __future__ import annotations

from dataclasses import dataclass

from engines.evaluation.feature_slices import TILE_BYTES, TILES_UNDER_WAY, column_share
from engines.evaluation.partition import PartitionReport, expected_halo
from search_space.errors import ConfigError

PLANS = ("auto", "rows", "features")
FLOAT_BYTES = 4
ENTRY_BYTES = 8
"""A stored matrix entry: a float32 value and an int32 column."""
ENTRY_COLUMNS = 24
"""Columns that would take as long as what an entry takes at any width: its index, and lines of memory read in part."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A graph divided among ranks, in numbers.

    Attributes:
        num_nodes, num_entries: N, and the non-zeros of the propagation matrix, self-loops included.
        num_ranks: P.
        halo_rows: of all ranks together.
        largest_nodes, largest_entries, largest_halo: of the rank with the most of each.
    """

    num_nodes: int
    num_entries: int
    num_ranks: int
    halo_rows: int
    largest_nodes: int
    largest_entries: int
    largest_halo: int

    @classmethod
    def counted(cls, report: PartitionReport) -> Layout:
        """From a partition of a graph that is at hand; every row has its self-loop."""
        entries = [edges + nodes for edges, nodes in zip(report.edges, report.nodes, strict=True)]
        return cls(
            sum(report.nodes),
            sum(entries),
            len(report.nodes),
            sum(report.halo),
            max(report.nodes),
            max(entries),
            max(report.halo),
        )

    @classmethod
    def expected(cls, num_nodes: int, num_edges: int, num_ranks: int) -> Layout:
        """For a hash partition of an undirected graph with edges between random nodes, the worst that is usual."""
        if num_nodes < 1 or num_edges < 0 or num_ranks < 1:
            raise ConfigError(
                f"a plan needs at least 1 node, 0 edges and 1 rank, got {num_nodes}, {num_edges} and {num_ranks}"
            )
        halo = round(expected_halo(num_nodes, 2 * num_edges, num_ranks))
        entries = 2 * num_edges + num_nodes
        shares = (-(-num_nodes // num_ranks), -(-entries // num_ranks), -(-halo // num_ranks))
        return cls(num_nodes, entries, num_ranks, halo, *shares)


@dataclass(frozen=True, slots=True)
class Rates:
    """What the machines do in a second.

    Attributes:
        multiply_adds: of the propagation kernel, per rank, `ENTRY_COLUMNS` counted for each entry besides its columns.
        wire_bytes: that one rank can send while it receives as many.
    """

    multiply_adds: float
    wire_bytes: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """One plan's cost.

    Attributes:
        plan: `rows` or `features`.
        wire_bytes: payload that all ranks send together.
        hop_bytes: hop features of the largest rank, hop 0 included; falls as 1/P.
        memory_bytes: of the largest rank while it propagates: matrix, hops and working buffers.
        compute_seconds, wire_seconds: of the slowest rank, as if nothing overlapped.
    """

    plan: str
    wire_bytes: int
    hop_bytes: int
    memory_bytes: int
    compute_seconds: float
    wire_seconds: float

    @property
    def seconds(self) -> float:
        """Compute and wire together."""
        return self.compute_seconds + self.wire_seconds


def estimate(plan: str, layout: Layout, width: int, num_hops: int, rates: Rates, buffer_bytes: int) -> Estimate:
    """What one plan takes for hops 1..K of (N, W) features, all kept.

    Args:
        buffer_bytes: what the working buffers of one rank may take.
    """
    P, N = layout.num_ranks, layout.num_nodes
    hops = layout.largest_nodes * width * FLOAT_BYTES * (num_hops + 1)
    if plan == "rows":
        wire = layout.halo_rows * width * FLOAT_BYTES * num_hops
        matrix = layout.largest_entries * ENTRY_BYTES + layout.largest_nodes * FLOAT_BYTES
        # rows sent, halo rows, and the own rows that the same rows gather from
        near = min(layout.largest_nodes, 2 * layout.largest_halo)
        tile = FLOAT_BYTES * width * (2 * layout.largest_halo + near)
        compute = layout.largest_entries * (width + ENTRY_COLUMNS) * num_hops
        busiest = layout.largest_halo * width * FLOAT_BYTES * num_hops
    else:
        share = -(-width // P)
        wire = slice_bytes(layout, width) * (num_hops + 1)
        matrix = layout.num_entries * ENTRY_BYTES + N * FLOAT_BYTES
        hops += 3 * N * share * FLOAT_BYTES  # columns of two hops, and of the start that steps may go back to
        tile = min(FLOAT_BYTES * (layout.largest_nodes * width + N * share), TILES_UNDER_WAY * TILE_BYTES)
        compute = layout.num_entries * (share + ENTRY_COLUMNS) * num_hops
        busiest = (N - N // P) * share * FLOAT_BYTES * (num_hops + 1)
    return Estimate(
        plan,
        wire,
        layout.largest_nodes * width * FLOAT_BYTES * (num_hops + 1),
        matrix + hops + (min(tile, buffer_bytes) if P > 1 else 0),
        compute / rates.multiply_adds,
        busiest / rates.wire_bytes if P > 1 else 0.0,
    )


def slice_bytes(layout: Layout, width: int) -> int:
    """Payload of one all-to-all between rows and columns when all ranks own about as many nodes."""
    P, N = layout.num_ranks, layout.num_nodes
    shares = [column_share(width, rank, P) for rank in range(P)]
    kept = sum((share.stop - share.start) * N / P for share in shares)
    sent: int = round((N * width - kept) * FLOAT_BYTES)
    return sent


def choose_plan(
    wanted: str,
    layout: Layout,
    width: int,
    num_hops: int,
    rates: Rates,
    *,
    buffer_bytes: int,
    memory_bytes: int | None = None,
) -> Estimate:
    """The plan that was asked for, or with `auto` the faster one of those that fit the memory of a rank.

    Raises:
        ConfigError: the plan is unknown, or what was asked for does not fit; the message says what would.
    """
    if wanted not in PLANS:
        raise ConfigError(f"unknown plan {wanted!r}; choose from: {', '.join(PLANS)}")
    both = {name: estimate(name, layout, width, num_hops, rates, buffer_bytes) for name in ("rows", "features")}
    asked = list(both.values()) if wanted == "auto" else [both[wanted]]
    fitting = [one for one in asked if memory_bytes is None or one.memory_bytes <= memory_bytes]
    if fitting:
        return min(fitting, key=lambda one: (one.seconds, one.wire_bytes))
    assert memory_bytes is not None
    least = min(both.values(), key=lambda one: one.memory_bytes)
    names = " and ".join(f"{one.plan} {one.memory_bytes / 1e9:.3g} GB" for one in asked)
    remedy = (
        f"--plan {least.plan} would fit with {least.memory_bytes / 1e9:.3g} GB"
        if least.memory_bytes <= memory_bytes
        else "use more ranks, fewer hops or a larger --memory"
    )
    raise ConfigError(
        f"propagating {num_hops} hops of {width} features needs {names} on a rank, but {memory_bytes / 1e9:.3g} GB "
        f"are allowed; {remedy}"
    )
