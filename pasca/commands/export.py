"""`pasca export`: train a design of a run and write it as a model folder."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pasca.commands.answer import Answer
from pasca.commands.options import AtMost, Debug, Device, Json, Pick, Run, Threads
from search_space.errors import ConfigError


def export(
    run: Run,
    pick: Pick = "knee",
    at_most: AtMost = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="The folder to write, which must not exist [in the run].")
    ] = None,
    ensemble: Annotated[
        bool,
        typer.Option(
            "--ensemble", help="Average the networks of all seeds where that beats the best one by validation."
        ),
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
    from pasca.model_folder import read_description
    from pasca.results import Study

    if architecture and ensemble:
        raise ConfigError("--architecture writes no network and --ensemble several; give one of them")
    study = Study.open(run)
    trial = study.pick(pick, at_most or [])
    data: dict[str, Any] = {"run": study.name, "id": trial.number, "design": str(trial.design)}
    what = f"design {trial.number} ({trial.design}) of run {study.name} is in"
    if architecture:
        path = study.export_architecture(pick, out=out, at_most=at_most or [])
        return Answer({**data, "path": str(path)}, [f"{what} {path}"], json)
    path = study.export(pick, out=out, at_most=at_most or [], ensemble=ensemble, device=device, threads=threads)
    written = read_description(path)
    repeats, protocol = written["repeats"], written["protocol"]
    data |= {"path": str(path), "networks": repeats["count"], "val_error": repeats["val_error"]}
    said = [f"{what} {path}"]
    if ensemble:
        together, alone = protocol["ensemble_val_error"], protocol["best_network_val_error"]
        data |= {"ensemble_val_error": together, "best_network_val_error": alone}
        count = len(protocol["training_seeds"])
        said.append(
            f"validation error of {count} networks together {100 * together:.1f} %, of the best "
            f"alone {100 * alone:.1f} %: {'all were' if repeats['count'] > 1 else 'the best was'} exported"
        )
    return Answer(data, said, json)
