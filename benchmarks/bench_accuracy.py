"""Test accuracy of what a search chooses by validation, in the paper's space and in the extended one, at equal time.

    python benchmarks/bench_accuracy.py run ROWS --graphs FOLDER --data cora citeseer pubmed --minutes 20
    python benchmarks/bench_accuracy.py best ROWS --graphs FOLDER --data cora citeseer pubmed
    python benchmarks/bench_accuracy.py ensembles ROWS --graphs FOLDER --data cora citeseer pubmed
    python benchmarks/bench_accuracy.py table ROWS

`run` searches each graph in both spaces, each time for `--minutes` with the retraining of the front and the classics,
and appends a JSON line a search to ROWS. Designs that cannot win after their first repeat are stopped there, and some
trainings go into further seeds for designs whose place on the front is in doubt. Where a graph has several splits, a
design is searched, chosen and tested within each of them, and `table` averages over the splits. Searches that have a
row are left out and interrupted ones are continued, so it can be stopped and started again.

A row has the test scores of what four ways of choosing choose from the front, all by validation nodes alone:
`observed`, the smallest error that the search measured; `posterior`, the smallest that its model believes in, over all
that it measured; `fresh`, the smallest mean error of the retraining's fresh seeds; `loss`, the smallest mean loss of
these. `fresh` is the one whose figures are reported.

`best` trains every design that a search on a public split had evaluated once more, with the search's own seeds, and
reads its test labels: what choosing by test labels would have shown. It is for comparison only; no search does it.

`ensembles` trains the choice of each search on a public split with the ten fresh seeds again and tests the mean of
their probabilities, as an exported ensemble would give them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from accuracy_data import DATA

import pasca
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.metrics import score
from engines.evaluation.recipe import Recipe
from pasca.results import Study
from pasca.studies import Retrained
from search_space.architecture import Architecture

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
    done = {(row["data"], row["split"], row["space"]) for row in _rows(arguments.rows, "search")}
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
            "kind": "search",
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
        _append(arguments.rows, row)


def best(arguments: argparse.Namespace) -> None:
    """Test every design that the searches on public splits had evaluated."""
    done = {(row["data"], row["space"]) for row in _rows(arguments.rows, "best")}
    for name, split, space in _searches(arguments):
        if (name, space) in done or len(DATA[name].splits) > 1:
            continue
        study = Study.open(arguments.runs / f"{name}-{split}-{space}")
        graph = pasca.load(arguments.graphs / DATA[name].path, **DATA[name].splits[split])
        evaluator = LocalEvaluator(
            graph, recipe=Recipe.from_mapping(study.manifest["identity"]["recipe"]), threads=arguments.threads
        )
        tested = []
        for trial in study.history.complete:
            design = Architecture.parse(str(trial.design))
            scores = evaluator.test_scores(evaluator.train(design, trial.seeds))
            tested.append((float(scores.mean()), trial.values["val_error"], str(design)))
        by_test = max(tested)
        row = {
            "kind": "best",
            "data": name,
            "space": space,
            "designs": len(tested),
            "by_test": {"design": by_test[2], "test": by_test[0]},
            "by_validation": {"design": (first := min(tested, key=lambda one: one[1]))[2], "test": first[0]},
        }
        _append(arguments.rows, row)


def ensembles(arguments: argparse.Namespace) -> None:
    """Test the ten fresh seeds of each choice together."""
    done = {(row["data"], row["space"]) for row in _rows(arguments.rows, "ensemble")}
    for search in list(_rows(arguments.rows, "search")):
        name, space = search["data"], search["space"]
        if (name, space) in done or name not in arguments.data or len(DATA[name].splits) > 1:
            continue
        study = Study.open(arguments.runs / f"{name}-{search['split']}-{space}")
        graph = pasca.load(arguments.graphs / DATA[name].path, **DATA[name].splits[search["split"]])
        recipe = Recipe.from_mapping(study.manifest["identity"]["recipe"])
        evaluator = LocalEvaluator(graph, recipe=recipe, threads=arguments.threads)
        again = study.retrained()[search["chosen"]["fresh"]["design"]]
        trained = evaluator.train(Architecture.parse(again.design), again.seeds)
        test = graph.split.test
        together = score(recipe.metric, evaluator.probabilities(trained).mean(axis=0)[test], graph.labels[test])
        row = {
            "kind": "ensemble",
            "data": name,
            "space": space,
            "design": again.design,
            "alone": float(evaluator.test_scores(trained).mean()),
            "together": together,
        }
        _append(arguments.rows, row)


def table(arguments: argparse.Namespace) -> None:
    """Print Markdown tables."""
    searches = list(_rows(arguments.rows, "search"))
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
    compared = list(_rows(arguments.rows, "best"))
    if compared:
        print("\nFor comparison only: test scores of all evaluated designs, three seeds each.\n")
        print(
            "| data | space | designs | chosen by validation | chosen by test labels |\n| --- | --- | --- | --- | --- |"
        )
    for row in compared:
        honest, other = row["by_validation"], row["by_test"]
        print(
            f"| {row['data']} | {row['space']} | {row['designs']} | {100 * honest['test']:.1f} `{honest['design']}` | "
            f"{100 * other['test']:.1f} `{other['design']}` |"
        )
    for row in _rows(arguments.rows, "ensemble"):
        print(
            f"\n{row['data']}, {row['space']}: `{row['design']}`, ten networks one by one {100 * row['alone']:.1f}, "
            f"together {100 * row['together']:.1f}"
        )


def _searches(arguments: argparse.Namespace) -> Iterator[tuple[str, int, str]]:
    """Split by split, so that every graph has as many and both spaces see the machine at the same time of day."""
    for split in range(max(len(DATA[name].splits) for name in arguments.data)):
        for name in arguments.data:
            if split < min(len(DATA[name].splits), arguments.splits):
                yield from ((name, split, space) for space in arguments.spaces)


def _rows(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            if (row := json.loads(line))["kind"] == kind:
                yield row


def _append(path: Path, row: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row), flush=True)


def _commit() -> str:
    here = Path(__file__).parent
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, do in (("run", run), ("best", best), ("ensembles", ensembles)):
        one = commands.add_parser(name)
        one.add_argument("rows", type=Path)
        one.add_argument("--graphs", type=Path, required=True, help="folder with the graphs")
        one.add_argument("--data", nargs="+", choices=DATA, required=True)
        one.add_argument("--spaces", nargs="+", choices=SPACES, default=list(SPACES))
        one.add_argument("--splits", type=int, default=10, help="splits at most")
        one.add_argument("--runs", type=Path, default=Path("results/accuracy"), help="where the searches are kept")
        one.add_argument("--threads", type=int, default=1)
        one.set_defaults(do=do)
        if do is run:
            one.add_argument("--minutes", type=float, default=20.0, help="of a search, retraining included")
            one.add_argument("--seed", type=int, default=0)
    shown = commands.add_parser("table")
    shown.add_argument("rows", type=Path)
    shown.set_defaults(do=table)
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
