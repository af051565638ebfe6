"""CPU seconds and memory of a suggestion on the paper's 153,510 designs, refits of the surrogate included.

    python benchmarks/bench_suggestion.py --observations 20 --suggestions 2980 --windows 900 2900

Starts from that many designs drawn at random, with an error that a formula gives, and asks that many times for one
more. Prints one JSON line, with the mean of the hundred suggestions from each window's start on; to compare with, the
seconds of Optuna's GPSampler at 150 observations, which looks at a sample of the space, with `--baseline`.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from engines.history import History
from engines.objectives import parse_objectives
from engines.search.ehvi import EHVISearcher
from engines.trial import Outcome, Trial
from search_space.architecture import Architecture
from search_space.space import SearchSpace

OBJECTIVES = parse_objectives("val_error,inference_seconds")
WINDOW = 100


class Problem:
    """The paper's space, with a cost and a noisy error for each design."""

    def __init__(self, seed: int) -> None:
        self.space = SearchSpace.paper()
        codes = self.space.codes().astype(np.float64)
        steps, layers, post = codes[:, 0], codes[:, 3], np.maximum(codes[:, 4], 0.0)
        self.seconds = 1e-3 * (1.0 + steps * (1.0 + 0.3 * np.maximum(codes[:, 1], 0.0)) + 0.5 * layers + 0.7 * post)
        smooth = 0.2 + 0.05 * np.abs(np.log1p(steps) - 1.4) + 0.05 * (codes[:, 1] == 4) + 0.005 * (layers - 2.0) ** 2
        self.errors = smooth + 0.01 * np.random.default_rng([seed, 0]).standard_normal(len(self.space))

    def trial(self, number: int, design: Architecture) -> Trial[Architecture]:
        """A finished trial of a design."""
        row = self.space.index(design)
        values = {"val_error": float(self.errors[row]), "inference_seconds": float(self.seconds[row])}
        trial = Trial(number, design, seeds=(0, 1, 2))
        return trial.complete(Outcome(values, {"val_error": 1e-5}), OBJECTIVES, 0.0)


def measure(observations: int, suggestions: int, seed: int) -> list[float]:
    """CPU seconds of each suggestion but the first, which has the work of all before it to do."""
    problem = Problem(seed)
    rows = np.random.default_rng([seed, 1]).choice(len(problem.space), observations, replace=False)
    history = History(problem.trial(i, problem.space.design(int(row))) for i, row in enumerate(rows))
    searcher = EHVISearcher(problem.space, OBJECTIVES, known={"inference_seconds": problem.seconds}, seed=seed)
    seconds = []
    for number in range(observations, observations + suggestions + 1):
        started = time.process_time()
        (suggestion,) = searcher.ask(history)
        seconds.append(time.process_time() - started)
        history = history.with_trial(problem.trial(number, suggestion.design))
    return seconds[1:]


def baseline(observations: int, suggestions: int, seed: int) -> list[float]:
    """The same for Optuna's GPSampler."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def values(params: Mapping[str, Any]) -> list[float]:
        return [0.2 + 0.01 * (params["k_trans"] - 2) ** 2 + 0.05 * params["k_post"], 1.0 + params["k_pre"]]

    space: dict[str, optuna.distributions.BaseDistribution] = {
        choice.name: optuna.distributions.CategoricalDistribution(choice.values)
        if choice.kind == "categorical"
        else optuna.distributions.IntDistribution(0, len(choice.values) - 1)
        for choice in SearchSpace.paper().choices
    }
    study = optuna.create_study(directions=["minimize"] * 2, sampler=optuna.samplers.RandomSampler(seed=seed))
    seconds = []
    for number in range(observations + suggestions):
        if number == observations:
            study.sampler = optuna.samplers.GPSampler(seed=seed)
        started = time.process_time()
        trial = study.ask(space)
        seconds.append(time.process_time() - started)
        study.tell(trial, values(trial.params))
    return seconds[observations:]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", type=int, default=900)
    parser.add_argument("--suggestions", type=int, default=100)
    parser.add_argument("--windows", type=int, nargs="*", default=[], help="numbers of designs known before")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--baseline", action="store_true")
    arguments = parser.parse_args()
    ours = measure(arguments.observations, arguments.suggestions, arguments.seed)
    found: dict[str, Any] = {
        "name": f"CPU seconds a suggestion, {arguments.observations} observations and more",
        "ours": statistics.fmean(ours),
        "longest": max(ours),
        "unit": "s",
        "suggestions": len(ours),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if arguments.windows:
        # the first of `ours` was asked for with one more observation than there were at the start
        firsts = {start: start - arguments.observations - 1 for start in arguments.windows}
        found["windows"] = {start: statistics.fmean(ours[at : at + WINDOW]) for start, at in firsts.items()}
    if arguments.baseline:
        theirs = baseline(150, 10, arguments.seed)
        found |= {"baseline": statistics.fmean(theirs), "ratio": found["ours"] / statistics.fmean(theirs)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
