"""Hypervolume of the front at equal evaluations: expected hypervolume improvement against random search.

    python benchmarks/bench_front.py DATA --out results/reference/search --evaluations 60 --seeds 10

Both searchers see the same graph, recipe, repeat seeds and table of stage times, and are measured against one
reference point for each seed, that of the EHVI run. Training is a pure function of design and seeds, so a design that
several runs ask for is trained once; every training is a row in a JSON-lines file, and what is there is not done again.
Prints one JSON line: mean hypervolume of both, and in how many seeds EHVI is ahead.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pasca
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.stage_times import StageTimes
from engines.history import History, gains
from engines.loop import Plan, run_loop
from engines.objectives import parse_objectives
from engines.search.catalogue import create_searcher
from engines.search.pareto import hypervolume
from engines.search.reference import extents, reference_point
from engines.trial import Outcome, Trial
from search_space.architecture import Architecture
from search_space.space import SearchSpace

OBJECTIVES = parse_objectives("val_error,inference_seconds")
REPEATS = (0, 1, 2)
NUM_INITIAL = 16


class Trainings:
    """An evaluator that keeps what it trained in a file."""

    def __init__(self, evaluator: LocalEvaluator, path: Path) -> None:
        self._evaluator, self._path = evaluator, path
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self._known = {row["design"]: row["val_errors"] for row in rows}

    def evaluate(self, design: Architecture, seeds: Sequence[int]) -> Outcome:
        """Train, or look up."""
        if str(design) not in self._known:
            errors = self._evaluator.train(design, seeds).val_errors.tolist()
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"design": str(design), "val_errors": errors}) + "\n")
            self._known[str(design)] = errors
        errors = np.asarray(self._known[str(design)])
        return Outcome(
            values={"val_error": float(errors.mean()), **self._evaluator.known_of(design)},
            variances={"val_error": float(errors.var(ddof=1) / errors.size)},
        )


class Memory:
    """A record that lasts as long as the process."""

    def __init__(self) -> None:
        self._trials: dict[int, Trial[Architecture]] = {}

    def history(self) -> History[Architecture]:
        """Every trial so far."""
        return History(self._trials.values())

    def start(
        self, design: Architecture, seeds: Sequence[int], details: Any, repeats_of: int | None = None
    ) -> Trial[Architecture]:
        """Number a running trial."""
        trial = Trial(len(self._trials), design, tuple(seeds), details=details, repeats_of=repeats_of)
        self._trials[trial.number] = trial
        return trial

    def finish(self, trial: Trial[Architecture]) -> None:
        """Keep a finished trial."""
        self._trials[trial.number] = trial


def volumes(
    trials: Sequence[Trial[Architecture]], reference: dict[str, float], checkpoints: Sequence[int]
) -> list[float]:
    """Hypervolume of the first n trials, for each n."""
    Y, _ = gains(trials, OBJECTIVES)
    worst = np.array([o.gains(np.asarray([reference[o.name]]))[0] for o in OBJECTIVES])
    return [hypervolume(Y[:n], worst) for n in checkpoints]


def main() -> None:
    """Run what is missing, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--evaluations", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=None)
    arguments = parser.parse_args()
    graph, space = pasca.load(arguments.data), SearchSpace.paper()
    arguments.out.mkdir(parents=True, exist_ok=True)
    times_path = arguments.out / f"stage-times-{graph.name}.json"
    times = StageTimes.from_mapping(json.loads(times_path.read_text())) if times_path.exists() else None
    local = LocalEvaluator(graph, threads=arguments.threads, stage_times=times)
    known = local.known(space)
    if times is None:
        times_path.write_text(json.dumps(local.stage_times.as_mapping()))
    evaluator = Trainings(local, arguments.out / f"trainings-{graph.name}.jsonl")
    ranges = extents({o.name: known[o.name] for o in OBJECTIVES if o.name in known}, ())
    checkpoints = sorted({math.ceil(arguments.evaluations * share) for share in (1 / 3, 2 / 3, 1.0)})
    found: dict[str, list[list[float]]] = {"ehvi": [], "random": []}
    for seed in range(arguments.seeds):
        reference = None
        for name, volumes_of_seeds in found.items():
            searcher = create_searcher(name, space, OBJECTIVES, known=known, seed=seed, num_initial=NUM_INITIAL)
            memory = Memory()
            run_loop(searcher, [evaluator], memory, Plan(OBJECTIVES, arguments.evaluations, REPEATS))
            if reference is None:
                reference = reference_point(memory.history(), OBJECTIVES, ranges, NUM_INITIAL)
            assert reference is not None
            volumes_of_seeds.append(volumes(memory.history().complete, reference, checkpoints))
        print(f"seed {seed}: " + ", ".join(f"{name} {of[-1][-1]:.5f}" for name, of in found.items()), file=sys.stderr)
    ehvi, random = np.asarray(found["ehvi"]), np.asarray(found["random"])
    print(
        json.dumps(
            {
                "name": f"hypervolume after {arguments.evaluations} evaluations on {graph.name}",
                "ours": float(ehvi[:, -1].mean()),
                "baseline": float(random[:, -1].mean()),
                "ratio": float((ehvi[:, -1] / random[:, -1]).mean()),
                "unit": "val_error x s",
                "seeds": arguments.seeds,
                "seeds_ahead": {str(n): int((ehvi[:, i] > random[:, i]).sum()) for i, n in enumerate(checkpoints)},
                "by_seed": {name: [of[-1] for of in volumes_of] for name, volumes_of in found.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
