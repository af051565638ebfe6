"""`pasca report`: write a run as one page for a browser."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pasca.commands.answer import Answer, Stopped
from pasca.commands.briefly import without_collecting
from pasca.commands.options import AtMost, Compare, Debug, Json, MoreRuns, Pick, Run


def report(
    run: Run,
    more: MoreRuns = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="The page to write [report.html in the run's folder].")
    ] = None,
    pick: Pick = "knee",
    at_most: AtMost = None,
    compare: Compare = None,
    live: Annotated[
        bool, typer.Option("--live", help="Keep the page up to date until the run ends; it reads itself anew.")
    ] = False,
    every: Annotated[int, typer.Option("--every", metavar="SECONDS", min=1, help="How often, with --live.")] = 10,
    json: Json = False,
    debug: Debug = False,
) -> Answer:
    """Write a run, finished or not, as one HTML page that needs no network: front, effects, costs, curves, classes."""
    from pasca.commands.front import opened
    from pasca.progress import Lines
    from pasca.reporting import follow_report, write_report
    from pasca.results import Study

    others = opened(compare, more)
    bounds = at_most or []
    if live:
        try:
            pages = follow_report(run, out, every=every, pick=pick, at_most=bounds, others=others)
            written = next(pages)
            Lines(sys.stderr).note(
                f"open {written.absolute().as_uri()}; it is written anew every {every} s until the run ends, "
                "Ctrl-C stops that"
            )
            for page in pages:
                written = page
        except KeyboardInterrupt:
            raise Stopped("stopped following; the page stays as it was written last", 130) from None
    else:
        with without_collecting():
            written = write_report(Study.open(run), out, pick=pick, at_most=bounds, others=others)
    path = written.absolute()
    return Answer({"report": str(path), "bytes": path.stat().st_size}, [f"wrote {path}", f"open {path.as_uri()}"], json)
