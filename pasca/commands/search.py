"""`pasca search`: search for the designs with the best trade-offs, and show the front."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pasca.commands.answer import Answer, Stopped
from pasca.commands.options import (
    AtMost,
    Debug,
    Device,
    HopDtype,
    HopStore,
    HopStoreLimit,
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
def search(
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="A folder or file with a graph, PATH:NAME, or digits [digits]."),
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option("--evaluations", "-n", help="Designs to evaluate in all [100].")
    ] = None,
    time_budget: Annotated[
        str | None,
        typer.Option("--time-budget", metavar="TIME", help="End after this long, as in 10m; retraining included."),
    ] = None,
    trial_timeout: Annotated[
        str | None,
        typer.Option("--trial-timeout", metavar="TIME", help="Fail a design that is not done after this long [never]."),
    ] = None,
    seed: Seed = None,
    objectives: Annotated[
        str | None,
        typer.Option(
            "--objectives",
            help="Two or more of val_error, inference_seconds, parameters, macs, peak_memory_bytes, with commas "
            "[val_error,inference_seconds].",
        ),
    ] = None,
    at_most: AtMost = None,
    retrain: Annotated[
        int | None,
        typer.Option("--retrain", help="Fresh seeds for the final front and the classics; 0 skips that [10]."),
    ] = None,
    replications: Annotated[
        int | None,
        typer.Option(
            "--replications",
            help="Trainings at most that give promising designs further seeds, besides the evaluations [0].",
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option("--repeats", help="Seeds that each design is trained with [3].")
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="NAME", help="Keep the run in results/NAME.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Keep the run in this folder instead.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the run to the total asked for; other settings stay as they were."),
    ] = False,
    join: Annotated[
        bool,
        typer.Option("--join", help="Work on the run together with the processes that are at it; see long-runs.md."),
    ] = False,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="TOML file with settings; options override it.")
    ] = None,
    space: Annotated[
        str | None,
        typer.Option("--space", metavar="NAME", help="paper, extended, or a TOML file that restricts one [paper]."),
    ] = None,
    metric: Metric = None,
    recipe: Recipe = None,
    searcher: Annotated[str | None, typer.Option("--searcher", help="ehvi, nsga2 or random [ehvi].")] = None,
    num_initial: Annotated[
        int | None, typer.Option("--num-initial", help="Designs tried before the model takes over [16].")
    ] = None,
    warm_start: Annotated[
        list[str] | None,
        typer.Option("--warm-start", metavar="RUN", help="Try the best designs of this run on a similar graph early."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", help="Designs evaluated at the same time, each in a process of its own [1]."),
    ] = None,
    ranks_per_evaluator: Annotated[
        int | None,
        typer.Option("--ranks-per-evaluator", help="Under mpiexec: ranks that evaluate one design together [1]."),
    ] = None,
    plan: Annotated[
        str | None, typer.Option("--plan", help="How such ranks propagate: auto, rows or features [auto].")
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", help="Whose nodes are whose: contiguous, hash or metis [contiguous].")
    ] = None,
    servers: Annotated[int | None, typer.Option("--servers", help="Ranks of a group that serve weights [1].")] = None,
    consistency: Annotated[
        str | None, typer.Option("--consistency", help="How they train: bsp, ssp, asp or admm [bsp].")
    ] = None,
    staleness: Annotated[
        int | None, typer.Option("--staleness", help="Clocks that a rank may be ahead of the slowest under ssp [4].")
    ] = None,
    compression: Annotated[
        str | None, typer.Option("--compression", help="Of gradients between ranks: none or 16bit [none].")
    ] = None,
    batch_rows: Annotated[
        int | None, typer.Option("--batch-rows", help="Training rows of a batch that ranks share [all].")
    ] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Let seed and workers fix the designs, whichever finishes first.")
    ] = False,
    early_stopping: Annotated[
        bool | None,
        typer.Option(
            "--early-stopping/--no-early-stopping",
            help="Train each design once first, the other times only if the front leaves it a chance [no].",
        ),
    ] = None,
    device: Device = None,
    threads: Threads = None,
    memory: Memory = None,
    hop_store: HopStore = None,
    hop_store_limit: HopStoreLimit = None,
    hop_dtype: HopDtype = None,
    retime: Annotated[bool, typer.Option("--retime", help="Measure the stage times anew.")] = False,
    stage_times: Annotated[
        str | None, typer.Option("--stage-times", metavar="RUN", help="Take the stage times of another run.")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option("--storage", metavar="URL", help="Database of the record instead of a file in the run."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    json: Json = False,
    debug: Debug = False,
    load: dict[str, Any] | None = None,
) -> Answer:
    """Search for the designs with the best trade-offs between accuracy and cost, and show the Pareto front.

    The record is kept in a run folder; Ctrl-C loses nothing, and --resume goes on.
    """
    from pasca.config import read_settings, read_space

    flags = given(
        data=data,
        evaluations=evaluations,
        time_budget=time_budget,
        trial_timeout=trial_timeout,
        seed=seed,
        objectives=objectives,
        at_most=tuple(at_most) if at_most else None,
        retrain=retrain,
        replications=replications,
        repeats=repeats,
        run=run,
        out=out,
        resume=resume or None,
        join=join or None,
        space=None if space is None else read_space(space),
        recipe=recipe_fields(recipe, metric),
        searcher=searcher,
        num_initial=num_initial,
        warm_start=tuple(warm_start) if warm_start else None,
        workers=workers,
        ranks_per_evaluator=ranks_per_evaluator,
        group=given(
            plan=plan,
            partition=partition,
            servers=servers,
            consistency=consistency,
            staleness=staleness,
            compression=compression,
            batch_rows=batch_rows,
        ),
        deterministic=deterministic or None,
        early_stopping=early_stopping,
        device=device,
        threads=threads,
        memory=memory,
        hop_store=hop_store,
        hop_store_limit=hop_store_limit,
        hop_dtype=hop_dtype,
        retime=retime or None,
        stage_times=stage_times,
        storage=storage,
        load=load,
    )
    settings = read_settings(config, flags)
    name_run(settings)
    try:
        return _search(settings, quiet=quiet, as_json=json)
    except KeyboardInterrupt as interrupt:
        raise stopped(settings, interrupt) from None


def _search(settings: dict[str, Any], *, quiet: bool, as_json: bool) -> Answer:
    import sys

    from pasca.progress import Silence, on_stream
    from pasca.searching import search as run_search
    from pasca.tables import front_lines

    study = run_search(progress=Silence() if quiet else on_stream(sys.stderr), **settings)
    front = study.front()
    said = [*front_lines(front), f"kept in {study.folder}"]
    return Answer({**front.as_mapping(), "folder": str(study.folder)}, said, as_json)


def name_run(settings: dict[str, Any]) -> None:
    """Name the run now if nobody did, so that an interrupted one can be spoken of."""
    from pasca.config import RunConfig
    from pasca.runs import data_label, fresh_name

    named = any(settings.get(name) for name in ("run", "out", "resume", "join"))
    if not named:
        settings["run"] = fresh_name(data_label(str(settings.get("data", RunConfig().data))))


def stopped(settings: dict[str, Any], interrupt: KeyboardInterrupt) -> Stopped:
    """What to say of an interrupted search."""
    import shlex

    from pasca.interrupts import Terminated
    from pasca.members import holders
    from pasca.runs import MANIFEST_FILE, run_folder

    what, code = ("terminated", 143) if isinstance(interrupt, Terminated) else ("interrupted", 130)
    run, out = settings.get("run"), settings.get("out")
    if (run is None and out is None) or not (run_folder(run, out) / MANIFEST_FILE).is_file():
        return Stopped(f"{what} before anything was recorded", code)
    where = f"--run {shlex.quote(run)}" if run is not None else f"--out {shlex.quote(str(out))}"
    if others := holders(run_folder(run, out)):
        goes_on = f"the run goes on in {', '.join(others)}"
        return Stopped(f"{what}; {goes_on}, work on it again with: pasca search {where} --join", code)
    return Stopped(f"{what}; nothing finished is lost, go on with: pasca search {where} --resume", code)
