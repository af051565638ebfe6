"""Test accuracy over the number of propagation steps, beside the published fall of GCN with its layers.

    python benchmarks/bench_depth.py run ROWS --graphs FOLDER --data cora citeseer pubmed
    python benchmarks/bench_depth.py table ROWS

`run` trains one design a line for K = 1..10 with the default recipe and ten fresh seeds on the public split and
appends a JSON line a point. Nothing is chosen, so every test score is reported. K steps before training are to a
decoupled network what K layers are to GCN, as far as the nodes are concerned that it sees.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from accuracy_data import DATA
from json_rows import append, read

import pasca
from engines.evaluation.local import LocalEvaluator
from search_space.architecture import Architecture

STEPS = range(1, 11)
LINES = ("augmented^{}/none/mlp-1/-", "augmented^{}/mean/mlp-2/-", "ppr0.1^{}/none/mlp-2/-")
SEEDS = tuple(range(1000, 1010))

# Test accuracy in percent by layers: Chen et al. 2020 (GCNII), table of depths, public splits; quoted from memory.
GCN = {
    "cora": {2: 81.1, 4: 80.4, 8: 69.5},
    "citeseer": {2: 70.8, 4: 67.6, 8: 30.2},
    "pubmed": {2: 79.0, 4: 76.5, 8: 61.2},
}


def run(arguments: argparse.Namespace) -> None:
    """Measure the points that are missing."""
    done = {(row["data"], row["design"]) for row in read(arguments.rows)}
    for name in arguments.data:
        evaluator = LocalEvaluator(
            pasca.load(arguments.graphs / DATA[name].path, **DATA[name].splits[0]), threads=arguments.threads
        )
        for line in LINES:
            for steps in STEPS:
                design = Architecture.parse(line.format(steps))
                if (name, str(design)) in done:
                    continue
                trained = evaluator.train(design, SEEDS)
                scores = evaluator.test_scores(trained).tolist()
                row = {
                    "data": name,
                    "line": line,
                    "steps": steps,
                    "design": str(design),
                    "val_accuracy": 1.0 - float(trained.val_errors.mean()),
                    "test_accuracy": {"mean": statistics.fmean(scores), "std": statistics.stdev(scores)},
                }
                append(arguments.rows, row)


def table(arguments: argparse.Namespace) -> None:
    """Print a Markdown table, a row a line of designs and a column a number of steps."""
    found = {(row["data"], row["design"]): row for row in read(arguments.rows)}
    print("| | K = " + " | ".join(map(str, STEPS)) + " |\n| --- |" + " --- |" * len(STEPS))
    for name in dict.fromkeys(data for data, _ in found):
        for line in LINES:
            points = (found.get((name, str(Architecture.parse(line.format(steps))))) for steps in STEPS)
            print(f"| {name} `{line.format('K')}` | " + " | ".join(map(_percent, points)) + " |")
        layers = GCN.get(str(name), {})
        print(f"| {name} GCN, K layers | " + " | ".join(str(layers.get(steps, "")) for steps in STEPS) + " |")


def _percent(row: dict[str, object] | None) -> str:
    if row is None:
        return ""
    accuracy = row["test_accuracy"]
    assert isinstance(accuracy, dict)
    return f"{100 * accuracy['mean']:.1f}"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("rows", type=Path)
    one.add_argument("--graphs", type=Path, required=True, help="folder with the graphs")
    one.add_argument("--data", nargs="+", choices=DATA, required=True)
    one.add_argument("--threads", type=int, default=1)
    one.set_defaults(do=run)
    shown = commands.add_parser("table")
    shown.add_argument("rows", type=Path)
    shown.set_defaults(do=table)
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
