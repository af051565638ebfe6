"""`pasca front`: show the Pareto front of a run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pasca.commands.answer import Answer
from pasca.commands.options import AtMost, Debug, Json, Run


def front(
    run: Run,
    at_most: AtMost = None,
    pick: Annotated[
        str | None,
        typer.Option(
            "--pick", metavar="RULE", help="Show one design: knee, best:OBJECTIVE, an id, or a design's text form."
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare", metavar="RUN", help="Put another run beside it; may be repeated, or names with commas."
        ),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print the front as comma-separated values.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> Answer:
    """Show the Pareto front of a run, finished or not, with the classics below it."""
    from pasca.front_csv import front_csv
    from pasca.results import Study
    from pasca.tables import front_lines

    study = Study.open(run)
    if compare:
        return _compared([study, *opened(compare)], at_most or [], json)
    if pick is not None:
        return _picked(study, pick, at_most or [], json)
    found = study.front(at_most or [])
    return Answer(found.as_mapping(), front_csv(found).splitlines() if csv else front_lines(found), json)


def opened(runs: list[str]) -> list[Any]:
    """The studies of some runs, named one by one or several with commas between."""
    from pasca.results import Study

    return [Study.open(name.strip()) for text in runs for name in text.split(",")]


def _compared(studies: list[Any], at_most: list[str], as_json: bool) -> Answer:
    from pasca.comparison import compare

    found = compare(studies, at_most)
    return Answer(found.as_mapping(), found.lines(), as_json)


def _picked(study: Any, rule: str, at_most: list[str], as_json: bool) -> Answer:
    from dataclasses import replace

    from pasca.fronts import trial_row
    from pasca.tables import front_cells

    trial = study.pick(rule, at_most)
    found = study.front(at_most)
    row = trial_row(trial, study.retrained(), knee=any(row.knee and row.id == trial.number for row in found.rows))
    shown = front_cells(replace(found, rows=(row,)), [row])
    return Answer({"run": study.name, "pick": row.as_mapping(found.metric)}, [shown], as_json)
