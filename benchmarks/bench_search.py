"""How much of the exact front a search finds, on tables that others measured (NAS-Bench-Graph).

    python benchmarks/bench_search.py run ROWS --data cora photo cs --searchers ehvi random nsga2 tpe gp --seeds 10
    python benchmarks/bench_search.py table ROWS

Validation accuracy is maximised and the logarithm of latency minimised; no searcher knows either before a cell is
evaluated. Each is scaled so that 0 is the best and 1 the 5 % quantile of accuracy or the 95 % quantile of log latency,
and the score is the share of the exact front's hypervolume, with (1, 1) as the reference point, after 25 to 300
evaluations.

The baselines are Optuna's samplers at their defaults (NSGA-II with a population of 20), the Gaussian process to 150
evaluations. They see a categorical parameter for the link pattern and four for the operations, as `ehvi` does. They
may propose a cell again, in the same or another spelling, which is answered from memory, or four skips, which are no
cell and fail. Neither is an evaluation; after 20 of them in a row (5 for the Gaussian process, whose every proposal
takes a second) a cell drawn at random takes its turn.

`run` appends one JSON line a run to ROWS and leaves out the runs that are there, so it can be stopped and started
again. `table` prints means and standard deviations over seeds in Markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from graph_cells import DATA_SETS, DEVELOPMENT, LINKS, OPERATIONS, Cell, Share, Table, read_table

from engines.history import History
from engines.objectives import Objective
from engines.search.base import Searcher
from engines.search.catalogue import create_searcher
from engines.trial import Outcome, Trial

CHECKPOINTS = (25, 50, 100, 150, 200, 300)
ACCURACY = Objective("accuracy", "1", "maximise")
LOG_LATENCY = Objective("log_latency", "log s")
NUM_INITIAL = 8
"""Quasi-random cells before the model of `ehvi` is used. The product's default is 16, of which nine are classics."""
MOST_REPEATS, MOST_REPEATS_OF_GP = 20, 5
POPULATION = 20


def searched(searcher: Searcher[Cell], table: Table) -> Iterator[int]:
    """Rows of the space that a searcher of the project evaluates, one after another."""
    history: History[Cell] = History()
    objectives = (ACCURACY, LOG_LATENCY)
    while suggestions := searcher.ask(history):
        row = table.space.index(suggestions[0].design)
        yield row
        values = {"accuracy": float(table.accuracy[row]), "log_latency": float(table.log_latency[row])}
        trial = Trial(len(history), suggestions[0].design)
        history = history.with_trial(trial.complete(Outcome(values), objectives, 0.0))


def sampled(sampler: Any, table: Table, seed: int, most_repeats: int = MOST_REPEATS) -> Iterator[int]:
    """Rows of the space that a sampler of Optuna evaluates; repeats are answered and not handed on."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    rows = {table.space.design(row).key(): row for row in range(len(table.space))}
    at_random = iter(np.random.default_rng([seed, 2]).permutation(len(table.space)))
    seen: set[int] = set()
    repeats = 0
    while len(seen) < len(rows):
        if repeats >= most_repeats:
            cell = table.space.design(int(next(row for row in at_random if row not in seen)))
            study.enqueue_trial({"link": cell.link, **{f"operation_{i}": o for i, o in enumerate(cell.operations)}})
        trial = study.ask()
        link = trial.suggest_categorical("link", LINKS)
        first, second, third, fourth = (trial.suggest_categorical(f"operation_{i}", OPERATIONS) for i in range(4))
        row = rows.get(Cell(str(link), (str(first), str(second), str(third), str(fourth))).key())
        if row is None:  # four skips are no cell: nothing is learnt, so a sampler may well propose them again
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            repeats += 1
            continue
        if row not in seen:
            seen.add(row)
            repeats = 0
            yield row
        else:
            repeats += 1
        study.tell(trial, [float(table.accuracy[row]), float(table.log_latency[row])])


def own(name: str) -> Callable[[Table, int], Iterator[int]]:
    """A searcher of the project, by its name in the catalogue."""

    def rows(table: Table, seed: int) -> Iterator[int]:
        searcher = create_searcher(
            name, table.space, (ACCURACY, LOG_LATENCY), known={}, seed=seed, num_initial=NUM_INITIAL
        )
        return searched(searcher, table)

    return rows


def optunas(make: Callable[[Any, int], Any], most_repeats: int = MOST_REPEATS) -> Callable[[Table, int], Iterator[int]]:
    """A sampler of Optuna, made from its module of samplers and a seed."""

    def rows(table: Table, seed: int) -> Iterator[int]:
        import optuna

        return sampled(make(optuna.samplers, seed), table, seed, most_repeats)

    return rows


SEARCHERS: dict[str, tuple[int, Callable[[Table, int], Iterator[int]]]] = {
    "ehvi": (300, own("ehvi")),
    "random": (300, own("random")),
    "nsga2": (300, optunas(lambda samplers, seed: samplers.NSGAIISampler(population_size=POPULATION, seed=seed))),
    "tpe": (300, optunas(lambda samplers, seed: samplers.TPESampler(seed=seed))),
    "gp": (150, optunas(lambda samplers, seed: samplers.GPSampler(seed=seed), MOST_REPEATS_OF_GP)),
}
"""Evaluations, and how a table and a seed lead to rows."""


def measure(name: str, table: Table, share: Share, seed: int, clock: Callable[[], float] = time.perf_counter) -> Any:
    """Shares at the checkpoints, and the seconds of the run a evaluation."""
    evaluations, rows = SEARCHERS[name]
    started, found, shares = clock(), [], {}
    for row in rows(table, seed):
        found.append(row)
        if len(found) in CHECKPOINTS:
            shares[str(len(found))] = round(share.of(found), 5)
        if len(found) == evaluations:
            break
    return {"shares": shares, "seconds_each": round((clock() - started) / len(found), 4)}


def run(arguments: argparse.Namespace) -> None:
    """Do the runs that are missing, seed by seed, so that every data set and searcher has as many."""
    rows = read_rows(arguments.rows)
    done = {(row["data"], row["searcher"], row["seed"]) for row in rows}
    tables = {name: read_table(name) for name in arguments.data}
    shares = {name: Share(table) for name, table in tables.items()}
    for seed in range(arguments.first_seed, arguments.seeds):
        for data, table in tables.items():
            for name in arguments.searchers:
                if (data, name, seed) in done:
                    continue
                row = {"data": data, "searcher": name, "seed": seed, **measure(name, table, shares[data], seed)}
                with arguments.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), file=sys.stderr, flush=True)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """What is recorded so far."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def tabulate(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of a Markdown table for each data set, then the comparisons, means over data sets apart for both kinds."""
    found: dict[tuple[str, str], dict[int, dict[str, float]]] = {}
    for row in rows:
        found.setdefault((row["data"], row["searcher"]), {})[row["seed"]] = row["shares"]
    data_sets = [name for name in DATA_SETS if any(data == name for data, _ in found)]
    lines = [
        "| data | searcher | seeds | " + " | ".join(map(str, CHECKPOINTS)) + " |",
        "| --- | --- | --- |" + " --- |" * len(CHECKPOINTS),
    ]
    for data in data_sets:
        for name in SEARCHERS:
            if (data, name) in found:
                of_seeds = found[data, name]
                cells = [_spread([s[str(n)] for s in of_seeds.values() if str(n) in s]) for n in CHECKPOINTS]
                lines.append(f"| {data} | {name} | {len(of_seeds)} | " + " | ".join(cells) + " |")
    for label, members in (
        ("cora, photo, cs", DEVELOPMENT),
        ("the other five", [name for name in data_sets if name not in DEVELOPMENT]),
        ("all", data_sets),
    ):
        for name in SEARCHERS:
            if members and all((data, name) in found for data in members):
                cells = []
                for n in CHECKPOINTS:
                    means = [
                        statistics.fmean(s[str(n)] for s in found[data, name].values())
                        for data in members
                        if all(str(n) in s for s in found[data, name].values())
                    ]
                    cells.append(f"{statistics.fmean(means):.3f}" if len(means) == len(members) else "")
                lines.append(f"| {label} | {name} | | " + " | ".join(cells) + " |")
    return lines + [line for data in data_sets for line in _paired(data, found)]


def _paired(data: str, found: dict[tuple[str, str], dict[int, dict[str, float]]]) -> Iterator[str]:
    """Differences of the same seeds, each with its standard error."""
    for other, checkpoints in (("gp", (50, 100, 150)), ("nsga2", (300,))):
        ours, theirs = found.get((data, "ehvi"), {}), found.get((data, other), {})
        seeds = sorted(ours.keys() & theirs.keys())
        if len(seeds) > 1:
            parts = []
            for n in checkpoints:
                gaps = [ours[seed][str(n)] - theirs[seed][str(n)] for seed in seeds]
                error = statistics.stdev(gaps) / math.sqrt(len(gaps))
                parts.append(f"{statistics.fmean(gaps):+.3f} ± {error:.3f} at {n}")
            yield f"{data}: ehvi - {other}: " + ", ".join(parts)


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean = f"{statistics.fmean(values):.3f}"
    return f"{mean} ± {statistics.stdev(values):.3f}" if len(values) > 1 else mean


def main() -> None:
    """Run what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run")
    running.add_argument("rows", type=Path)
    running.add_argument("--data", nargs="+", choices=DATA_SETS, default=DEVELOPMENT)
    running.add_argument("--searchers", nargs="+", choices=SEARCHERS, default=list(SEARCHERS))
    running.add_argument("--first-seed", type=int, default=0)
    running.add_argument("--seeds", type=int, default=10, help="seeds FIRST to SEEDS - 1 are run")
    running.set_defaults(do=run)
    showing = commands.add_parser("table")
    showing.add_argument("rows", type=Path)
    showing.set_defaults(do=lambda arguments: print("\n".join(tabulate(read_rows(arguments.rows)))))
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
