"""`pasca predict`: classify the nodes of a graph with an exported model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pasca.commands.answer import Answer
from pasca.commands.options import Debug, Json, with_load_options


@with_load_options
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A folder that `pasca export` wrote.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="A folder or file with a graph, PATH:NAME, or digits.")],
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write labels and probabilities of all classes as CSV.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", metavar="FILE", help="Classify only these: one node id a line.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="Memory for features and hops, as in 4GB [half]."),
    ] = None,
    json: Json = False,
    debug: Debug = False,
    load: dict[str, Any] | None = None,
) -> Answer:
    """Classify the nodes of a graph: that of the training, one that grew, or another with the same features."""
    from pasca.datasets import load as load_graph
    from pasca.model import load_model
    from pasca.predictions import read_nodes, write_predictions
    from pasca.tables import Cells

    loaded = load_model(model)
    graph = load_graph(data, **{**loaded.load_options, **(load or {})})
    found = loaded.predict(graph, None if only is None else read_nodes(only, graph), memory=memory)
    if out is not None:
        path = write_predictions(found, out)
        return Answer({"nodes": len(found), "path": str(path)}, [f"{len(found)} predictions are in {path}"], json)
    likeliest = found.probabilities.max(axis=1)
    rows = tuple(
        (str(node), str(label), f"{p:.4f}")
        for node, label, p in zip(found.node_ids, found.labels, likeliest, strict=True)
    )
    data_rows = [
        {
            "id": str(node),
            "label": str(label),
            "probabilities": dict(zip(found.class_names, map(float, p), strict=True)),
        }
        for node, label, p in zip(found.node_ids, found.labels, found.probabilities, strict=True)
    ]
    return Answer(data_rows, [Cells(("id", "label", "probability"), rows, frozenset((2,)))], json)
