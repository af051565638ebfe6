"""`pasca evaluate`: train one design and say how good it is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pasca.commands.answer import Answer
from pasca.commands.options import (
    Debug,
    Device,
    Json,
    Memory,
    Metric,
    Recipe,
    Seed,
    Threads,
    given,
    recipe_fields,
    with_load_options,
)


@with_load_options
def evaluate(
    design: Annotated[
        str,
        typer.Argument(
            metavar="DESIGN",
            help="A classic such as SGC, a text form such as ppr0.1^6/weighted/mlp-3/-, or a design's JSON.",
        ),
    ],
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="A folder or file with a graph, PATH:NAME, or digits [digits]."),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="How often to train it, with different seeds.")] = 3,
    test: Annotated[bool, typer.Option("--test", help="Also read the test labels.")] = False,
    seed: Seed = None,
    metric: Metric = None,
    recipe: Recipe = None,
    device: Device = None,
    threads: Threads = None,
    memory: Memory = None,
    json: Json = False,
    debug: Debug = False,
    load: dict[str, Any] | None = None,
) -> Answer:
    """Train one design, in the search space or not, with any number of seeds. Test labels are read only with --test."""
    from pasca.config import RunConfig
    from pasca.evaluation import evaluate_design
    from pasca.export import read_design
    from pasca.tables import evaluation_lines

    config = RunConfig().with_settings(
        given(
            data=data,
            repeats=seeds,
            seed=seed,
            device=device,
            threads=threads,
            memory=memory,
            recipe=recipe_fields(recipe, metric),
            load=load,
        )
    )
    # A file is named by a path to JSON; a design's text form never ends like that.
    wanted = read_design(design) if design.endswith(".json") else design
    found = evaluate_design(wanted, config, test=test)
    return Answer(found, evaluation_lines(found), json)
