"""`pasca prepare`: write a graph so that each rank of a job reads its own part."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pasca.commands.answer import Answer
from pasca.commands.options import Debug, Json, with_load_options


@with_load_options
def prepare(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A folder or file with a graph, or a converted folder.")],
    out: Annotated[
        str | None,
        typer.Argument(metavar="OUT", help="The folder to write; left out, a converted folder DATA is added to."),
    ] = None,
    ranks: Annotated[int, typer.Option("--ranks", help="Ranks that will evaluate a design together [2].")] = 2,
    partition: Annotated[
        str, typer.Option("--partition", help="Whose nodes are whose: contiguous, hash or metis [contiguous].")
    ] = "contiguous",
    json: Json = False,
    debug: Debug = False,
    load: dict[str, Any] | None = None,
) -> Answer:
    """Write a graph, its matrices and the part of each rank as files that open at once.

    Then `mpiexec -n P pasca search OUT --ranks-per-evaluator RANKS` reads on each rank what that rank needs. A folder
    can be prepared for several numbers of ranks.
    """
    from pasca.preparing import prepare as prepare_graph
    from pasca.preparing import prepared_said

    report, folder = prepare_graph(data, out, ranks, partition, load or {})
    said = prepared_said(report, folder, ranks, partition)
    return Answer({"path": str(folder), "ranks": ranks, "partition": partition, **report.as_mapping()}, said, json)
