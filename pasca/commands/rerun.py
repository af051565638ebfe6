"""`pasca rerun`: repeat a run from its manifest, and compare."""

from __future__ import annotations

from typing import Annotated

import typer

from pasca.commands.answer import Answer, Stopped
from pasca.commands.options import Debug, Json, Run


def rerun(
    run: Run,
    data: Annotated[
        str | None, typer.Option("--data", metavar="DATA", help="Where the data is now, if it was moved.")
    ] = None,
    retrain: Annotated[
        bool,
        typer.Option("--retrain", help="Also repeat the training with fresh seeds, which reads the test labels."),
    ] = False,
    name: Annotated[
        str | None, typer.Option("--run", metavar="NAME", help="Keep the repetition in results/NAME [RUN-rerun].")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Keep the repetition in this folder instead.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> Answer:
    """Repeat a run with its settings, seeds and stage times, and compare: designs and values, to the last bit.

    Says the first difference and exits with 1 where there is one.
    """
    import sys

    from pasca.interrupts import Terminated
    from pasca.progress import Silence, on_stream
    from pasca.rerunning import rerun as repeat

    try:
        found = repeat(
            run,
            data=data,
            retrain=retrain,
            name=name,
            out=out,
            progress=Silence() if quiet else on_stream(sys.stderr),
        )
    except KeyboardInterrupt as interrupt:
        what, code = ("terminated", 143) if isinstance(interrupt, Terminated) else ("interrupted", 130)
        raise Stopped(f"{what}; {run} is as it was, start again with: pasca rerun {run}", code) from None
    return Answer(found.as_mapping(), found.lines(), json, exit_code=0 if found.equal else 1)
