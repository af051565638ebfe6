"""The command line: subcommands, exit codes, and the one place that prints.

Exit codes: 0 done, 1 failed, 2 misused, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from pasca import __version__
from pasca.commands.answer import Answer, Stopped
from pasca.commands.convert import convert
from pasca.commands.evaluate import evaluate
from pasca.commands.export import export
from pasca.commands.front import front
from pasca.commands.info import info
from pasca.commands.plan import plan
from pasca.commands.predict import predict
from pasca.commands.prepare import prepare
from pasca.commands.report import report
from pasca.commands.rerun import rerun
from pasca.commands.runs import runs
from pasca.commands.search import search
from pasca.interrupts import terminations_raised
from pasca.plain import visible
from pasca.supervision import supervised
from search_space.errors import InputError, PascaError

app = typer.Typer(
    name="pasca",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for _command in (search, front, report, export, predict, evaluate, runs, info, convert, prepare, plan, rerun):
    app.command()(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"pasca {__version__}")
        raise typer.Exit


@app.callback()
def _pasca(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Search scalable graph neural network designs for the best trade-offs between accuracy and cost."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Results go to stdout, progress and errors to stderr."""
    supervised()
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    if debug:
        logging.basicConfig(level=logging.WARNING)
        for name in ("pasca", "engines", "search_space"):
            logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        with terminations_raised():
            answer = app(_with_designs(given) or ["--help"], prog_name="pasca", standalone_mode=False)
            if isinstance(answer, Answer):
                _print(answer)
                return answer.exit_code
            # typer hands back an exit code where a command was left early: after --help, --version or Ctrl-C.
            return answer if isinstance(answer, int) and given else 0 if given else 2
    except BrokenPipeError:
        # The reader of stdout has gone; what is still buffered must not raise again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Stopped as stop:
        _complain(str(stop), prefix="pasca: ")
        return stop.exit_code
    except Exception as error:
        if debug:
            traceback.print_exc()
        message, code = _explain(error)
        _complain(message)
        return code


def _with_designs(given: Sequence[str]) -> list[str]:
    """The arguments, where a design without pre-processing, such as -/-/mlp-2/-, is not taken for options.

    No option begins with `-/`, and blanks around a design mean nothing.
    """
    return [f" {argument}" if argument.startswith("-/") else argument for argument in given]


def _explain(error: Exception) -> tuple[str, int]:
    """One line about an error, and the exit code it leads to."""
    if isinstance(error, PascaError):
        return str(error), 2 if isinstance(error, InputError) else 1
    if isinstance(error, typer.TyperException):
        message = getattr(error, "format_message", lambda: str(error))()
        return f"{message} Try: pasca --help", 2
    if isinstance(error, MemoryError):
        return f"out of memory ({error or 'an allocation failed'}); a smaller --memory may help", 1
    return f"{type(error).__name__}: {error}; this is a fault in pasca, --debug shows where", 1


def _complain(message: str, prefix: str = "pasca: error: ") -> None:
    print(visible(prefix + " ".join(message.split())), file=sys.stderr)


def _print(answer: Answer) -> None:
    if answer.as_json:
        print(json.dumps(answer.data, indent=2, ensure_ascii=False, allow_nan=False))
        return
    for part in answer.said:
        if not sys.stdout.isatty():
            print(visible(part) if isinstance(part, str) else part.text())
            continue
        from rich.console import Console

        console = Console(highlight=False, emoji=False, markup=False)
        if isinstance(part, str):
            # Lines break between words; a path or a command that is too long stays whole, to be copied.
            console.print(visible(part), overflow="ignore", crop=False)
        else:
            console.print(part.rich(console.width))
    sys.stdout.flush()
