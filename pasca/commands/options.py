"""Options that several commands share. Nothing heavy is imported here: `pasca --help` has to be quick."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from search_space.errors import ConfigError

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and what the program logs.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="Name of a run below results/, or its folder.")]
AtMost = Annotated[
    list[str] | None,
    typer.Option(
        "--at-most", metavar="OBJECTIVE=VALUE", help="A bound such as inference_seconds=5ms; may be repeated."
    ),
]
PICK_RULES = "knee, best:OBJECTIVE, an id, a design, or as in 'min inference_seconds where val_error<=best+1%'."
Pick = Annotated[str, typer.Option("--pick", metavar="RULE", help=PICK_RULES)]
Compare = Annotated[
    list[str] | None,
    typer.Option("--compare", metavar="RUN", help="Show other runs beside it: names after one --compare, or several."),
]
MoreRuns = Annotated[list[str] | None, typer.Argument(metavar="RUN2", help="More runs, after --compare.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Fixes designs, initial weights and dropout [0].")]
Device = Annotated[str | None, typer.Option("--device", help="Where to train: cpu, cuda, cuda:1 [cpu].")]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads to compute with [all cores].")]
Memory = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Memory for features, hops and training, as in 4GB [half]."),
]
HopStore = Annotated[
    str | None,
    typer.Option(
        "--hop-store", metavar="DIR", help="Keep hop features in this folder for later runs; cache: pasca's own [off]."
    ),
]
HopStoreLimit = Annotated[
    str | None, typer.Option("--hop-store-limit", metavar="SIZE", help="What the hop store may take on disk [20GB].")
]
HopDtype = Annotated[
    str | None,
    typer.Option(
        "--hop-dtype", help="Keep hops as float32, or as float16: half the space, values off by 2^-11 [float32]."
    ),
]
Metric = Annotated[str | None, typer.Option("--metric", help="accuracy, macro-f1 or roc-auc [accuracy].")]
Recipe = Annotated[
    list[str] | None,
    typer.Option("--recipe", metavar="FIELD=VALUE", help="A field of the recipe, as in dropout=0.8; may be repeated."),
]

LOAD_OPTIONS: dict[str, Any] = {
    "split": Annotated[
        str | None, typer.Option("--split", help="Name or number of one of the data's splits, or random.")
    ],
    "train_per_class": Annotated[int | None, typer.Option("--train-per-class", help="Training nodes a class [20].")],
    "val_per_class": Annotated[int | None, typer.Option("--val-per-class", help="Validation nodes a class [30].")],
    "train_fraction": Annotated[float | None, typer.Option("--train-fraction", help="Training part of every class.")],
    "val_fraction": Annotated[float | None, typer.Option("--val-fraction", help="Validation part of every class.")],
    "split_seed": Annotated[int | None, typer.Option("--split-seed", help="Seed of a random split [0].")],
    "directed": Annotated[bool | None, typer.Option("--directed", help="Keep the directions of arcs.")],
    "weighted": Annotated[bool | None, typer.Option("--weighted/--unweighted", help="Use or ignore edge weights.")],
    "features": Annotated[
        str | None,
        typer.Option("--features", help="degree, onehot-degree, svd, identity, adjacency, or a file."),
    ],
    "edges": Annotated[str | None, typer.Option("--edges", metavar="FILE", help="The edge table.")],
    "nodes": Annotated[str | None, typer.Option("--nodes", metavar="FILE", help="The node table.")],
    "labels": Annotated[str | None, typer.Option("--labels", metavar="FILE", help="The labels.")],
    "header": Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first row of a table names its columns.")
    ],
    "id_column": Annotated[str | None, typer.Option("--id-column", metavar="NAME", help="Of the node table.")],
    "label_column": Annotated[str | None, typer.Option("--label-column", metavar="NAME", help="Of the node table.")],
    "unknown_nodes": Annotated[
        str | None, typer.Option("--unknown-nodes", help="error or drop: edges to nodes that the table lacks [error].")
    ],
    "encoding": Annotated[str | None, typer.Option("--encoding", help="Of text files [utf-8].")],
    "verify": Annotated[bool | None, typer.Option("--verify", help="Check checksums of a folder that pasca wrote.")],
}
"""Flags of `pasca.datasets.LoadOptions`, by field."""


def with_load_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options for reading data; it gets those that were used as the keyword `load`."""
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "load"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in LOAD_OPTIONS.items()
    ]

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        load = {name: arguments.pop(name) for name in LOAD_OPTIONS}
        return command(**arguments, load={name: value for name, value in load.items() if value is not None})

    keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    wrapped.__signature__ = signature.replace(parameters=[*keyword_only, *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*keyword_only, *added)}
    return wrapped


def parse_fields(texts: Iterable[str], option: str) -> dict[str, Any]:
    """Read FIELD=VALUE texts; a value is a number, true or false where it looks like one, else a text.

    Raises:
        ConfigError: a text has no `=` or repeats a field.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name, value = name.strip().replace("-", "_"), value.strip()
        if not equals or not name or not value:
            raise ConfigError(f"{option} takes FIELD=VALUE, as in dropout=0.8; got {text!r}")
        if name in found:
            raise ConfigError(f"{option} gives {name} twice: {found[name]!r} and {value!r}")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = value
    return found


def recipe_fields(recipe: Iterable[str] | None, metric: str | None) -> dict[str, Any]:
    """Fields of the training recipe from `--recipe` and `--metric`."""
    fields = parse_fields(recipe or (), "--recipe")
    if metric is not None:
        fields["metric"] = metric
    return fields


def given(**settings: Any) -> dict[str, Any]:
    """The settings that the command line did set."""
    return {name: value for name, value in settings.items() if value is not None and value != {}}
