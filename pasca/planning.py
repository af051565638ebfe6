"""Plans of propagation on ranks, for graphs at hand and for graphs of which only the sizes are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pasca.quantities import seconds_text
from pasca.tables import Cells
from search_space.errors import ConfigError


def plan_ranks(
    data: str | None,
    *,
    sizes: Mapping[str, int | None],
    hops: int,
    ranks: str,
    partition: str,
    memory_bytes: int | None,
    wire_bytes: float | None,
    multiply_adds: float | None,
) -> dict[str, Any]:
    """Both plans at each number of ranks.

    Args:
        data: a graph to read and count; None where the sizes are given.
        sizes: nodes, edges (each counted once) and features; all None where a graph is given.
        hops: K; hops 0..K are kept.
        ranks: numbers of ranks, with commas.
        partition: of a graph at hand.
        memory_bytes: what one rank may take; None for no limit.
        wire_bytes: bytes a second between ranks; None for a usual network.
        multiply_adds: multiply-adds a second of one rank; None measures this machine.
    Returns:
        JSON types: what was planned for, and one entry for each number of ranks and plan.
    Raises:
        ConfigError: the graph is not stated, or a number has no legal value.
    """
    from engines.evaluation.calibration import USUAL_WIRE_BYTES, calibrate
    from engines.evaluation.partition import make_partition, partition_report
    from engines.evaluation.plan_model import Layout, Rates, estimate
    from engines.evaluation.plans import buffer_bytes_of

    counts = _counts(ranks)
    given = [name for name, value in sizes.items() if value is not None]
    if hops < 1:
        raise ConfigError(f"hops is at least 1, got {hops}")
    if (data is None) == (not given) or (data is None and len(given) < len(sizes)):
        raise ConfigError(
            f"a plan needs a graph, or --nodes, --edges and --features, got {data or ', '.join(given) or 'neither'}"
        )
    for name in given:
        if (value := sizes[name]) is None or value < (0 if name == "edges" else 1):
            raise ConfigError(f"--{name} is at least {0 if name == 'edges' else 1}, got {value}")
    layouts = {}
    if data is not None:
        from pasca.datasets import load

        graph = load(data, for_training=False)
        name, N, E, F = graph.name, graph.num_nodes, graph.num_edges, graph.num_features
        for count in counts:
            made = make_partition(partition, graph.adjacency, count)
            layouts[count] = Layout.counted(partition_report(made, graph.adjacency))
    else:
        name, N, E, F = "a graph with random edges", *(int(sizes[key] or 0) for key in ("nodes", "edges", "features"))
        layouts = {count: Layout.expected(N, E, count) for count in counts}
    rates = calibrate(wire_bytes) if multiply_adds is None else Rates(multiply_adds, wire_bytes or USUAL_WIRE_BYTES)
    buffers = buffer_bytes_of(memory_bytes)
    entries = []
    for count in counts:
        for plan in ("rows", "features"):
            one = estimate(plan, layouts[count], F, hops, rates, buffers)
            fits = memory_bytes is None or one.memory_bytes <= memory_bytes
            entries.append({"ranks": count, **asdict(one), "seconds": one.seconds, "fits": fits})
    return {
        "graph": name,
        "nodes": N,
        "edges": E,
        "features": F,
        "hops": hops,
        "dense_bytes_per_hop": N * F * 4,
        "memory_bytes": memory_bytes,
        "multiply_adds_per_second": rates.multiply_adds,
        "wire_bytes_per_second": rates.wire_bytes,
        "plans": entries,
    }


def plan_said(planned: Mapping[str, Any]) -> list[str | Cells]:
    """The plan as lines and a table."""
    rows = tuple(
        (
            str(one["ranks"]),
            one["plan"],
            _size(one["memory_bytes"]),
            _size(one["hop_bytes"]),
            _size(one["wire_bytes"]),
            seconds_text(one["compute_seconds"]),
            seconds_text(one["wire_seconds"]),
            "yes" if one["fits"] else "no",
        )
        for one in planned["plans"]
    )
    titles = ("ranks", "plan", "memory a rank", "its hops", "sent in all", "compute", "wire", "fits")
    said: list[str | Cells] = [
        f"{planned['graph']}: {planned['nodes']:,} nodes, {planned['edges']:,} edges, {planned['features']:,} features",
        f"dense features: {_size(planned['dense_bytes_per_hop'])} per hop, hops 0 to {planned['hops']} kept",
        f"reckoned with {planned['multiply_adds_per_second']:.3g} multiply-adds and "
        f"{_size(planned['wire_bytes_per_second'])} sent a second by each rank",
        Cells(titles, rows, frozenset({0, 2, 3, 4, 5, 6})),
    ]
    if planned["memory_bytes"] is not None:
        said.append(_advice(planned))
    return said


def _advice(planned: Mapping[str, Any]) -> str:
    limit = _size(planned["memory_bytes"])
    fitting = [one for one in planned["plans"] if one["fits"]]
    if not fitting:
        least = min(planned["plans"], key=lambda one: one["memory_bytes"])
        return (
            f"nothing fits {limit} a rank; the least is {_size(least['memory_bytes'])} with {least['ranks']} rank(s) "
            f"in {least['plan']}: use more ranks, fewer hops, or reduced features"
        )
    best = min(fitting, key=lambda one: (one["ranks"], one["seconds"]))
    return f"with {limit} a rank, {best['ranks']} rank(s) in {best['plan']} are enough"


def _counts(text: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise ConfigError(f"--ranks takes numbers of at least 1 with commas, as in 16,64,256, got {text!r}")
    return counts


def _size(num_bytes: float) -> str:
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if num_bytes >= unit:
            return f"{num_bytes / unit:.1f} {name}"
    return f"{num_bytes:.0f} B"
