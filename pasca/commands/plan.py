"""`pasca plan`: what propagating a graph takes on ranks, before anything starts."""

from __future__ import annotations

from typing import Annotated

import typer

from pasca.commands.answer import Answer
from pasca.commands.options import Debug, Json


def plan(
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="A graph to count; or give --nodes, --edges and --features."),
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="Nodes of a graph that is not at hand.")] = None,
    edges: Annotated[int | None, typer.Option("--edges", help="Its edges, each counted once.")] = None,
    features: Annotated[int | None, typer.Option("--features", help="Its features.")] = None,
    hops: Annotated[int, typer.Option("--hops", help="Hops to propagate and keep [3].")] = 3,
    ranks: Annotated[str, typer.Option("--ranks", help="Numbers of ranks, with commas [1,2,4].")] = "1,2,4",
    partition: Annotated[
        str, typer.Option("--partition", help="Of a graph at hand: contiguous, hash or metis [contiguous].")
    ] = "contiguous",
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="What one rank may take, as in 16GB [no limit].")
    ] = None,
    bandwidth: Annotated[
        str | None,
        typer.Option("--bandwidth", metavar="SIZE", help="Bytes a second between ranks, as in 10GB [1GB]."),
    ] = None,
    multiply_adds: Annotated[
        float | None,
        typer.Option("--multiply-adds", help="Multiply-adds a second of a rank [measured on this machine]."),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> Answer:
    """Say what propagation takes on each number of ranks: memory of a rank, bytes sent, seconds, and what fits.

    Sizes alone are planned for edges between random nodes, the worst that is usual. Training is not part of the plan.
    """
    from pasca.planning import plan_ranks, plan_said
    from pasca.quantities import parse_bytes

    planned = plan_ranks(
        data,
        sizes={"nodes": nodes, "edges": edges, "features": features},
        hops=hops,
        ranks=ranks,
        partition=partition,
        memory_bytes=None if memory is None else parse_bytes(memory, "memory"),
        wire_bytes=None if bandwidth is None else float(parse_bytes(bandwidth, "bandwidth")),
        multiply_adds=multiply_adds,
    )
    return Answer(planned, plan_said(planned), json)
