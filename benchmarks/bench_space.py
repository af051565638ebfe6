"""How much of the front a search of PaSca's own space finds, on 2,000 designs of it that were all trained.

    python benchmarks/bench_space.py train DATA TABLE.csv --designs 2000 --seed 0
    python benchmarks/bench_space.py search TABLE.csv --evaluations 100 --seeds 10

`train` draws designs of the paper's space uniformly, adds the classics, trains each with the default recipe and its
three repeats, and appends a line a design to TABLE.csv: mean and variance of the validation error, and the seconds of
an inference from the table of stage times. What is there is not done again. Several processes may share the work with
`--part I/N`, each with a table of its own; `cat` joins them (one line of titles is enough, more do no harm).

`search` looks designs up. Validation error and the logarithm of inference seconds are minimised; each is scaled so that
0 is the best and 1 the worst of the table, and the score is the share of the whole table's hypervolume, with (1, 1) as
the reference point. Searchers know the seconds, as in a search of the product, and start with the classics. Prints a
Markdown table of means and standard deviations over seeds.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.history import History
from engines.objectives import parse_objectives
from engines.search.catalogue import create_searcher
from engines.search.pareto import hypervolume
from engines.trial import Outcome, Trial
from search_space.architecture import Architecture
from search_space.classics import CLASSICS
from search_space.errors import SpaceError
from search_space.space import Codes, SearchSpace

OBJECTIVES = parse_objectives("val_error,inference_seconds")
TITLES = ("design", "val_error", "variance", "inference_seconds")
REPEATS = (0, 1, 2)
CHECKPOINTS = (25, 50, 75, 100, 150, 200, 300)

Floats = NDArray[np.float64]


class Listed:
    """Some designs of a space, as a space of their own.

    Args:
        whole: the space they are from.
        designs: distinct designs of it.
    """

    def __init__(self, whole: SearchSpace, designs: Sequence[Architecture]) -> None:
        self._whole, self._designs = whole, tuple(sorted(designs, key=whole.index))
        self._rows = {design: row for row, design in enumerate(self._designs)}
        self.choices = whole.choices

    def __len__(self) -> int:
        return len(self._designs)

    def __contains__(self, design: object) -> bool:
        return design in self._rows

    def codes(self) -> Codes:
        """Codes of all of them, in order."""
        return self.encode(self._designs)

    def design(self, index: int) -> Architecture:
        """The design in row `index`."""
        return self._designs[index]

    def index(self, design: Architecture) -> int:
        """Row of a design. Raises SpaceError when it is not listed."""
        if design not in self._rows:
            raise SpaceError(f"the table has no design {design}")
        return self._rows[design]

    def encode(self, designs: Sequence[Architecture]) -> Codes:
        """Codes in the whole space."""
        return self._whole.encode(designs)

    def sample(self, count: int, rng: np.random.Generator) -> list[Architecture]:
        """Distinct designs drawn uniformly."""
        rows = rng.choice(len(self), size=min(count, len(self)), replace=False)
        return [self._designs[int(row)] for row in rows]

    def neighbours(self, design: Architecture) -> list[Architecture]:
        """Those of the design's neighbours in the whole space that are listed."""
        return [other for other in self._whole.neighbours(design) if other in self._rows]

    def starting_designs(self) -> list[Architecture]:
        """The whole space's, which are all listed."""
        return [design for design in self._whole.starting_designs() if design in self._rows]


def drawn(count: int, seed: int) -> list[Architecture]:
    """Designs of the paper's space, uniformly and without repetition, after the classics that are in it."""
    space = SearchSpace.paper()
    classics = [design for design in CLASSICS.values() if design in space]
    return list(dict.fromkeys((*classics, *space.sample(count, np.random.default_rng(seed)))))


def train(arguments: argparse.Namespace) -> None:
    """Train what the table lacks."""
    import pasca
    from engines.evaluation.local import LocalEvaluator

    part, _, parts = arguments.part.partition("/")
    known = {row["design"] for row in read(arguments.table)} if arguments.table.exists() else set()
    evaluator = LocalEvaluator(pasca.load(arguments.data), threads=arguments.threads)
    with arguments.table.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not known:
            writer.writerow(TITLES)
        for design in drawn(arguments.designs, arguments.seed)[int(part) :: int(parts)]:
            if str(design) in known:
                continue
            found = evaluator.evaluate(design, REPEATS)
            error, variance = found.values["val_error"], found.variances["val_error"]
            writer.writerow([design, error, variance, found.values["inference_seconds"]])
            file.flush()


def read(path: Path) -> list[dict[str, str]]:
    """Lines of a table; further lines of titles, as from joined files, are left out."""
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["design"] != "design"]


def search(arguments: argparse.Namespace) -> None:
    """Run every searcher with every seed, and print how far they came."""
    rows = {Architecture.parse(row["design"]): row for row in read(arguments.table)}
    space = Listed(SearchSpace.paper(), list(rows))
    columns = {name: np.array([float(rows[space.design(i)][name]) for i in range(len(space))]) for name in TITLES[1:]}
    losses = np.column_stack((scaled(columns["val_error"]), scaled(np.log(columns["inference_seconds"]))))
    whole = hypervolume(-losses, np.array([-1.0, -1.0]))
    checkpoints = [n for n in CHECKPOINTS if n < arguments.evaluations] + [arguments.evaluations]
    print(f"{len(space)} designs; share of the hypervolume, {arguments.seeds} seeds\n")
    print("| searcher | " + " | ".join(map(str, checkpoints)) + " |\n| --- |" + " --- |" * len(checkpoints))
    for name in arguments.searchers:
        shares = []
        for seed in range(arguments.seeds):
            found = searched(name, space, columns, arguments.evaluations, seed)
            shares.append([hypervolume(-losses[found[:n]], np.array([-1.0, -1.0])) / whole for n in checkpoints])
            print(f"{name}, seed {seed}: {shares[-1][-1]:.4f}", file=sys.stderr)
        cells = [f"{statistics.fmean(of):.3f} ± {statistics.stdev(of):.3f}" for of in zip(*shares, strict=True)]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def scaled(values: Floats) -> Floats:
    """0 for the smallest, 1 for the largest."""
    found: Floats = (values - values.min()) / (values.max() - values.min())
    return found


def searched(name: str, space: Listed, columns: dict[str, Floats], evaluations: int, seed: int) -> list[int]:
    """Rows that a searcher evaluates, in order."""
    known = {"inference_seconds": columns["inference_seconds"]}
    searcher: Any = create_searcher(name, space, OBJECTIVES, known=known, seed=seed)
    history: History[Architecture] = History()
    found: list[int] = []
    while len(found) < evaluations and (suggestions := searcher.ask(history)):
        row = space.index(suggestions[0].design)
        found.append(row)
        values = {o.name: float(columns[o.name][row]) for o in OBJECTIVES}
        outcome = Outcome(values, {"val_error": float(columns["variance"][row])})
        trial = Trial(len(history), suggestions[0].design, REPEATS)
        history = history.with_trial(trial.complete(outcome, OBJECTIVES, 0.0))
    return found


def main() -> None:
    """Train what is missing, or search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("train")
    one.add_argument("data")
    one.add_argument("table", type=Path)
    one.add_argument("--designs", type=int, default=2000)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--part", default="0/1", help="I/N: every N-th design from number I on")
    one.add_argument("--threads", type=int, default=1)
    one.set_defaults(do=train)
    one = commands.add_parser("search")
    one.add_argument("table", type=Path)
    one.add_argument("--evaluations", type=int, default=100)
    one.add_argument("--seeds", type=int, default=10)
    one.add_argument("--searchers", nargs="+", default=["ehvi", "random", "nsga2"])
    one.set_defaults(do=search)
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
