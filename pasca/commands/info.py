"""`pasca info`: say what a graph holds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pasca.commands.answer import Answer
from pasca.commands.options import Debug, Json, with_load_options


@with_load_options
def info(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A folder or file with a graph, PATH:NAME, or digits.")],
    json: Json = False,
    debug: Debug = False,
    load: dict[str, Any] | None = None,
) -> Answer:
    """Read a graph and say what it holds: nodes, edges, features, labels, split, and what was done to them."""
    from pasca.datasets import load as load_graph
    from pasca.datasets import summary, summary_lines

    graph = load_graph(data, **{**(load or {}), "for_training": False})
    return Answer(summary(graph), summary_lines(graph), json)
