"""`pasca export`: train a design of a run and write it as a model folder."""

from __future__ import annotations

from typing import Annotated

import typer

from pasca.commands.answer import Answer
from pasca.commands.options import AtMost, Debug, Device, Json, Pick, Run, Threads


def export(
    run: Run,
    pick: Pick = "knee",
    at_most: AtMost = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="The folder to write, which must not exist [in the run].")
    ] = None,
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="Export the networks of all seeds; the model averages them.")
    ] = False,
    architecture: Annotated[
        bool,
        typer.Option("--architecture", help="Write the design alone, as JSON for `pasca evaluate`; --out is a file."),
    ] = False,
    device: Device = None,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
) -> Answer:
    """Train a design of a run with the run's seeds and write it as a folder that predicts without the search."""
    from pasca.results import Study

    study = Study.open(run)
    trial = study.pick(pick, at_most or [])
    if architecture:
        path = study.export_architecture(pick, out=out, at_most=at_most or [])
    else:
        path = study.export(pick, out=out, at_most=at_most or [], ensemble=ensemble, device=device, threads=threads)
    data = {"run": study.name, "id": trial.number, "design": str(trial.design), "path": str(path)}
    return Answer(data, [f"design {trial.number} ({trial.design}) of run {study.name} is in {path}"], json)
