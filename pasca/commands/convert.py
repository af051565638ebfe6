"""`pasca convert`: rewrite a graph as a folder that opens at once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pasca.commands.answer import Answer
from pasca.commands.options import Debug, Json, with_load_options


@with_load_options
def convert(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A folder or file with a graph, PATH:NAME, or digits.")],
    out: Annotated[str, typer.Argument(metavar="OUT", help="The folder to write, which must not exist.")],
    json: Json = False,
    debug: Debug = False,
    load: dict[str, Any] | None = None,
) -> Answer:
    """Read a graph in any format and write it, with all its splits, as a folder that opens at once."""
    from pasca.datasets import convert as convert_graph
    from pasca.datasets import summary, summary_lines

    graph = convert_graph(data, out, **(load or {}))
    return Answer({**summary(graph), "path": out}, [*summary_lines(graph), f"written to {out}"], json)
