"""`pasca front`: show the Pareto front of a run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from pasca.commands.answer import Answer
from pasca.commands.briefly import without_collecting
from pasca.commands.options import PICK_RULES, AtMost, Compare, Debug, Json, MoreRuns, Run
from search_space.errors import ConfigError

if TYPE_CHECKING:
    from pasca.results import Study


@without_collecting()
def front(
    run: Run,
    more: MoreRuns = None,
    at_most: AtMost = None,
    pick: Annotated[str | None, typer.Option("--pick", metavar="RULE", help=f"Show one design: {PICK_RULES}")] = None,
    compare: Compare = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> Answer:
    """Show the Pareto front of a run, finished or not, with the classics below it."""
    from pasca.front_csv import front_csv
    from pasca.results import Study
    from pasca.tables import front_lines

    if csv and json:
        raise ConfigError("--csv and --json are two forms of one answer; give one of them")
    if compare and pick is not None:
        raise ConfigError(f"--pick {pick!r} shows one design and --compare whole runs; give one of them")
    study, others = Study.open(run), opened(compare, more)
    if others:
        drawn = f"plots: pasca report {shlex.join((run, '--compare', *(compare or ()), *(more or ())))}"
        return _compared([study, *others], at_most or [], csv, json, drawn)
    if pick is not None:
        return _picked(study, pick, at_most or [], csv, json)
    found = study.front(at_most or [])
    return Answer(found.as_mapping(), front_csv(found).splitlines() if csv else front_lines(found), json)


def opened(compare: list[str] | None, more: list[str] | None) -> list[Study]:
    """The studies of the runs to compare with: after --compare, with commas between, or further on in the line.

    Raises:
        RunError: there is no such run.
        ConfigError: there are more runs but no --compare.
    """
    from pasca.results import Study

    if more and not compare:
        raise ConfigError(f"one run is shown at a time, got {' and '.join(more)} too; --compare shows them beside it")
    return [Study.open(name.strip()) for text in (*(compare or ()), *(more or ())) for name in text.split(",")]


def _compared(studies: list[Study], at_most: list[str], csv: bool, as_json: bool, drawn: str) -> Answer:
    from pasca.comparison import compare
    from pasca.front_csv import comparison_csv

    found = compare(studies, at_most)
    said = comparison_csv(found).splitlines() if csv else [*found.lines(), drawn]
    return Answer(found.as_mapping(), said, as_json)


def _picked(study: Study, rule: str, at_most: list[str], csv: bool, as_json: bool) -> Answer:
    from dataclasses import replace

    from pasca.front_csv import front_csv
    from pasca.fronts import trial_row
    from pasca.tables import front_cells

    trial = study.pick(rule, at_most)
    found = study.front(at_most)
    row = trial_row(trial, study.retrained(), knee=any(row.knee and row.id == trial.number for row in found.rows))
    alone = replace(found, rows=(row,), classics=(), nearest=())
    shown = front_csv(alone, "pick").splitlines() if csv else [front_cells(alone, [row])]
    return Answer({"run": study.name, "pick": row.as_mapping(found.metric)}, shown, as_json)
