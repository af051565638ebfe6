"""Do the default recipe's few repeats rank designs as many full ones do? Spearman's rank correlation of `val_error`.

    python benchmarks/bench_ranking.py DATA --out FOLDER [--designs 100]

Designs are drawn uniformly from the paper's space with a stated seed. Each is trained by the default recipe (3 repeats,
at most 200 epochs, patience 30, validation every 5 epochs) and, with other seeds, by 10 repeats of 200 epochs without
patience. Rows are kept in FOLDER as they come, and a row that is there is not trained again. As a yardstick the same
is computed between the two halves of the ten repeats: what a rank correlation can reach with five repeats on each side.
Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import pasca
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.recipe import Recipe
from search_space.space import SearchSpace

FEW, MANY = range(3), range(100, 110)
SEED = 20


def main() -> None:
    """Train what is missing, then correlate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--designs", type=int, default=100)
    parser.add_argument("--threads", type=int, default=None)
    arguments = parser.parse_args()
    graph, space = pasca.load(arguments.data), SearchSpace.paper()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"ranking-{graph.name}.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {row["design"]: row for row in rows}
    drawn = np.random.default_rng(SEED).choice(len(space), arguments.designs, replace=False)
    evaluator = LocalEvaluator(graph, threads=arguments.threads)
    default = evaluator.recipe
    full = replace(default, patience=default.max_epochs)
    chosen = [space.design(int(row)) for row in drawn]
    for design in chosen:
        if str(design) in known:
            continue
        found = {}
        for name, recipe, seeds in (("few", default, FEW), ("many", full, MANY)):
            evaluator.use_recipe(recipe)
            found[name] = evaluator.train(design, seeds).val_errors.tolist()
        known[str(design)] = {"design": str(design), **found}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known[str(design)]) + "\n")
    few = np.array([known[str(design)]["few"] for design in chosen])
    many = np.array([known[str(design)]["many"] for design in chosen])
    halves = float(spearmanr(many[:, :5].mean(axis=1), many[:, 5:].mean(axis=1)).statistic)
    correlation = float(spearmanr(few.mean(axis=1), many.mean(axis=1)).statistic)
    print(
        json.dumps(
            {
                "name": f"val_error ranks of {len(chosen)} designs on {graph.name}, default recipe and 10 x 200 epochs",
                "ours": correlation,
                "baseline": halves,
                "ratio": correlation / halves,
                "unit": "Spearman's rho; baseline: five of the ten repeats with the other five",
                "recipe": Recipe().as_mapping(),
                "seed": SEED,
            }
        )
    )


if __name__ == "__main__":
    main()
