"""Test accuracy of what a search chooses by validation, in the paper's space and in the extended one, at equal time.

    python benchmarks/bench_accuracy.py run ROWS --graphs FOLDER --data cora citeseer pubmed --minutes 20
    python benchmarks/bench_accuracy.py table ROWS

`run` searches each graph in both spaces, each time for `--minutes` with the retraining of the front and the classics,
and appends a JSON line a search to ROWS. Designs that cannot win after their first repeat are stopped there, and some
trainings go into further seeds for designs whose place on the front is in doubt. Where a graph has several splits, a
design is searched, chosen and tested within each of them, and `table` averages over the splits. Searches that have a
row are left out and interrupted ones are continued, so it can be stopped and started again.

A row has the test scores of what four ways of choosing choose from the front, all by validation nodes alone:
`observed`, the smallest error that the search measured; `posterior`, the smallest that its model believes in, over all
that it measured; `fresh`, the smallest mean error of the retraining's fresh seeds; `loss`, the smallest mean loss of
these. `fresh` is the one whose figures are reported. benchmarks/bench_selection.py goes further with
searches on public splits.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from accuracy_data import DATA
from json_rows import append, read

import pasca
from pasca.results import Study
from pasca.studies import Retrained

SPACES: Mapping[str, Mapping[str, Any]] = {"paper": {}, "extended": {"base": "extended"}}


REPLICATIONS = 15
"""Trainings a search may spend on further seeds for designs whose place on the front is in doubt."""

FEW_SEEDS = 2
"""Fresh seeds within each of ten splits; a single split has ten."""


def chosen(study: Study) -> dict[str, str]:
    """Text form of the design of the front that each way of choosing takes."""
    rows = [row for row in study.front().rows if row.retrained_val_error is not None]
    retrained = study.retrained()

    def loss(design: str) -> float:
        return statistics.fmean(retrained[design].details["val_losses"])

    ways: dict[str, Callable[[Any], float]] = {
        "observed": lambda row: row.values["val_error"],
        "posterior": lambda row: row.posterior["val_error"].mean if row.posterior else row.values["val_error"],
        "fresh": lambda row: row.retrained_val_error.mean,
        "loss": lambda row: loss(row.design),
    }
    return {name: min(rows, key=key).design for name, key in ways.items()} if rows else {}


def figures(retrained: Retrained) -> dict[str, Any]:
    """What the retraining measured, as fractions."""
    return {
        "design": retrained.design,
        "val_error": statistics.fmean(retrained.val_errors),
        "test": statistics.fmean(retrained.test_scores),
        "test_std": statistics.stdev(retrained.test_scores),
        "inference_seconds": retrained.known.get("inference_seconds"),
    }


def quick_one(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Of the front, what has the smallest validation error with a fifth of the choice's inference time at most."""
    limit = row["chosen"]["fresh"]["inference_seconds"] / 5
    quick = [one for one in row["front"] if one["inference_seconds"] <= limit]
    return min(quick, key=lambda one: one["val_error"]) if quick else None


def run(arguments: argparse.Namespace) -> None:
    """Do the searches that are missing."""
    done = {(row["data"], row["split"], row["space"]) for row in read(arguments.rows)}
    for name, split, space in _searches(arguments):
        if (name, split, space) in done:
            continue
        data = DATA[name]
        folder = arguments.runs / f"{name}-{split}-{space}"
        study = pasca.search(
            str(arguments.graphs / data.path),
            load=data.splits[split],
            evaluations=100_000,
            time_budget=60.0 * arguments.minutes,
            seed=arguments.seed,
            early_stopping=True,
            replications=REPLICATIONS,
            threads=arguments.threads,
            out=str(folder),
            resume=folder.exists(),
            space=SPACES[space],
            recipe={"metric": data.metric},
            retrain=10 if len(data.splits) == 1 else FEW_SEEDS,
        )
        retrained = study.retrained()
        row = {
            "data": name,
            "split": split,
            "space": space,
            "minutes": arguments.minutes,
            "seed": arguments.seed,
            "threads": arguments.threads,
            "commit": _commit(),
            "evaluations": study.history.num_evaluations,
            "chosen": {way: figures(retrained[design]) for way, design in chosen(study).items()},
            "front": [figures(retrained[r.design]) for r in study.front().rows if r.test_score is not None],
            "classics": {
                str(r.id): figures(retrained[r.design]) for r in study.front().classics if r.test_score is not None
            },
        }
        append(arguments.rows, row)


def table(arguments: argparse.Namespace) -> None:
    """Print Markdown tables."""
    searches = read(arguments.rows)
    pairs = dict.fromkeys((row["data"], row["space"]) for row in searches)
    print(
        "| data | space | searches | designs | test of the choice | bar | observed | posterior | loss | best classic |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for data, space in pairs:
        rows = [row for row in searches if (row["data"], row["space"]) == (data, space) and row["chosen"]]
        by_way = {
            way: [row["chosen"][way]["test"] for row in rows] for way in ("fresh", "observed", "posterior", "loss")
        }
        classics = [min(row["classics"].values(), key=lambda one: one["val_error"])["test"] for row in rows]
        spread = rows[0]["chosen"]["fresh"]["test_std"] if len(rows) == 1 else statistics.stdev(by_way["fresh"])
        mean = {way: f"{100 * statistics.fmean(values):.1f}" for way, values in by_way.items()}
        designs = statistics.fmean(row["evaluations"] for row in rows)
        bar = DATA[data].bar
        print(
            f"| {data} | {space} | {len(rows)} | {designs:.0f} | {mean['fresh']} ± {100 * spread:.1f} | "
            f"{'' if bar is None else bar} | {mean['observed']} | {mean['posterior']} | {mean['loss']} | "
            f"{100 * statistics.fmean(classics):.1f} |"
        )
    print("\nBeside the choice: the best by validation among designs of the front that need a fifth of its time.\n")
    print("| data | space | test of the choice | test of the quick one | share of the inference time |")
    print("| --- | --- | --- | --- | --- |")
    for data, space in pairs:
        rows = [row for row in searches if (row["data"], row["space"]) == (data, space) and row["chosen"]]
        both = [(row["chosen"]["fresh"], quick) for row in rows if (quick := quick_one(row)) is not None]
        if both:
            best, fast, share = (
                statistics.fmean(values)
                for values in zip(
                    *((b["test"], q["test"], q["inference_seconds"] / b["inference_seconds"]) for b, q in both),
                    strict=True,
                )
            )
            print(f"| {data} | {space} | {100 * best:.1f} | {100 * fast:.1f} | {share:.2f} ({len(both)} searches) |")


def _searches(arguments: argparse.Namespace) -> Iterator[tuple[str, int, str]]:
    """Split by split, so that every graph has as many and both spaces see the machine at the same time of day."""
    for split in range(max(len(DATA[name].splits) for name in arguments.data)):
        for name in arguments.data:
            if split < min(len(DATA[name].splits), arguments.splits):
                yield from ((name, split, space) for space in arguments.spaces)


def _commit() -> str:
    here = Path(__file__).parent
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("rows", type=Path)
    one.add_argument("--graphs", type=Path, required=True, help="folder with the graphs")
    one.add_argument("--data", nargs="+", choices=DATA, required=True)
    one.add_argument("--spaces", nargs="+", choices=SPACES, default=list(SPACES))
    one.add_argument("--splits", type=int, default=10, help="splits at most")
    one.add_argument("--runs", type=Path, default=Path("results/accuracy"), help="where the searches are kept")
    one.add_argument("--threads", type=int, default=1)
    one.add_argument("--minutes", type=float, default=20.0, help="of a search, retraining included")
    one.add_argument("--seed", type=int, default=0)
    one.set_defaults(do=run)
    shown = commands.add_parser("table")
    shown.add_argument("rows", type=Path)
    shown.set_defaults(do=table)
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
