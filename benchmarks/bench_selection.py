"""What choosing by validation costs on the public splits, and what other honest ways of choosing would have got.

    python benchmarks/bench_selection.py run ROWS --searches SEARCHES --runs RUNS --graphs FOLDER
    python benchmarks/bench_selection.py table ROWS

For each search on a public split that `bench_accuracy.py run` has put into SEARCHES and RUNS, and a JSON line each:

- `by_test`: every design that the search evaluated is trained again with the search's own seeds and tested, and the
  best test score is told beside that of the smallest validation error. **For comparison only**: it is what choosing by
  test labels would have shown, as some published searches do; no search of pasca does it.
- `cross_fitted`: the designs with the smallest validation errors are compared once more on training and validation
  nodes alone, which are shared out anew several times with as many training nodes of each class as before; the best on
  average is trained with fresh seeds on the usual training nodes and tested. It has seen other training nodes than the
  published split allows while it was chosen, so its figure stands apart.
- `ensemble`: the choice of `bench_accuracy.py`, ten networks one by one and their mean probabilities.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_data import DATA
from json_rows import append, read

import pasca
from engines.evaluation.hop_store import HopStore
from engines.evaluation.local import HopStorage, LocalEvaluator
from engines.evaluation.metrics import score
from engines.evaluation.recipe import Recipe
from engines.graph import Graph, Split
from pasca.results import Study
from search_space.architecture import Architecture

MOST_COMPARED = 20
"""Designs that are cross-fitted, those with the smallest validation errors."""
NUM_SHARINGS = 5


class Comparison:
    """One search and its graph, to look at again.

    Args:
        search: a row of `bench_accuracy.py`.
    """

    def __init__(self, search: dict[str, Any], arguments: argparse.Namespace) -> None:
        data = DATA[search["data"]]
        self.study = Study.open(arguments.runs / f"{search['data']}-{search['split']}-{search['space']}")
        self.recipe = Recipe.from_mapping(self.study.manifest["identity"]["recipe"])
        self.graph = pasca.load(arguments.graphs / data.path, **data.splits[search["split"]])
        self._threads, self._storage = arguments.threads, HopStorage(store=HopStore.temporary(arguments.hops))
        self.evaluator = self._evaluator(self.graph)
        self.choice = self.study.retrained()[search["chosen"]["fresh"]["design"]]

    def by_test(self) -> dict[str, Any]:
        """Test scores of all designs that the search evaluated to the end."""
        tested = []
        for trial in self.study.history.complete:
            if trial.repeats_of is None:
                score = self._test(str(trial.design), trial.seeds)
                tested.append((score, trial.values["val_error"], str(trial.design)))
        best, honest = max(tested), min(tested, key=lambda one: one[1])
        return {
            "designs": len(tested),
            "best": {"design": best[2], "test": best[0]},
            "smallest_val_error": {"design": honest[2], "test": honest[0]},
        }

    def cross_fitted(self) -> dict[str, Any]:
        """Test score of the best over several ways of sharing out training and validation nodes."""
        firsts = [trial for trial in self.study.history.complete if trial.repeats_of is None]
        designs = [str(trial.design) for trial in sorted(firsts, key=lambda trial: trial.values["val_error"])]
        errors: dict[str, list[float]] = {design: [] for design in designs[:MOST_COMPARED]}
        for number in range(NUM_SHARINGS):
            evaluator = self._evaluator(self.graph.with_split(_shared_out(self.graph, number)))
            for design in errors:
                errors[design] += evaluator.train(Architecture.parse(design), [number]).val_errors.tolist()
        design = min(errors, key=lambda design: statistics.fmean(errors[design]))
        error = statistics.fmean(errors[design])
        return {"design": design, "error": error, "test": self._test(design, self.choice.seeds)}

    def ensemble(self) -> dict[str, Any]:
        """Test score of the choice's networks one by one, and of their mean probabilities."""
        trained = self.evaluator.train(Architecture.parse(self.choice.design), self.choice.seeds)
        test = self.graph.split.test
        probabilities = self.evaluator.probabilities(trained).mean(axis=0)[test]
        return {
            "design": self.choice.design,
            "alone": float(self.evaluator.test_scores(trained).mean()),
            "together": score(self.recipe.metric, probabilities, self.graph.labels[test]),
        }

    def _evaluator(self, graph: Graph) -> LocalEvaluator:
        return LocalEvaluator(graph, recipe=self.recipe, threads=self._threads, hop_storage=self._storage)

    def _test(self, design: str, seeds: tuple[int, ...]) -> float:
        trained = self.evaluator.train(Architecture.parse(design), seeds)
        return float(self.evaluator.test_scores(trained).mean())


def _shared_out(graph: Graph, number: int) -> Split:
    """Training and validation nodes drawn anew from both, with as many training nodes of each class as before."""
    generator = np.random.default_rng(number)
    pool = np.concatenate((graph.split.train, graph.split.validation))
    train = []
    for c, count in enumerate(np.bincount(graph.labels[graph.split.train], minlength=graph.num_classes)):
        train.append(generator.permutation(pool[graph.labels[pool] == c])[:count])
    taken = np.concatenate(train)
    return Split(taken, np.setdiff1d(pool, taken), np.zeros(0, dtype=np.int64), f"sharing {number}")


def run(arguments: argparse.Namespace) -> None:
    """Look again at the searches that have no row yet."""
    done = {(row["data"], row["space"]) for row in read(arguments.rows)}
    for search in read(arguments.searches):
        name, space = search["data"], search["space"]
        if (name, space) in done or len(DATA[name].splits) > 1:
            continue
        comparison = Comparison(search, arguments)
        row = {
            "data": name,
            "space": space,
            "fresh": search["chosen"]["fresh"]["test"],
            "by_test": comparison.by_test(),
            "cross_fitted": comparison.cross_fitted(),
            "ensemble": comparison.ensemble(),
        }
        append(arguments.rows, row)


def table(arguments: argparse.Namespace) -> None:
    """Print a Markdown table."""
    print(
        "| data | space | the search's choice | its ten networks together | cross-fitted | designs | smallest "
        "validation error | best by test labels, for comparison only |\n" + "| --- " * 8 + "|"
    )
    for row in read(arguments.rows):
        by_test = row["by_test"]
        scores = (
            row["fresh"],
            row["ensemble"]["together"],
            row["cross_fitted"]["test"],
            by_test["smallest_val_error"]["test"],
            by_test["best"]["test"],
        )
        fresh, together, fitted, honest, best = (f"{100 * one:.1f}" for one in scores)
        print(
            f"| {row['data']} | {row['space']} | {fresh} | {together} | {fitted} | {by_test['designs']} | {honest} | "
            f"{best} `{by_test['best']['design']}` |"
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("rows", type=Path)
    one.add_argument("--searches", type=Path, required=True, help="rows of bench_accuracy.py")
    one.add_argument("--runs", type=Path, required=True, help="where it kept the searches")
    one.add_argument("--graphs", type=Path, required=True, help="folder with the graphs")
    one.add_argument("--hops", type=Path, help="folder for some GB of propagated features, removed at the end")
    one.add_argument("--threads", type=int, default=1)
    one.set_defaults(do=run)
    shown = commands.add_parser("table")
    shown.add_argument("rows", type=Path)
    shown.set_defaults(do=table)
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
