"""Trains one design outside any search."""

from __future__ import annotations

from typing import Any

from engines.graph import Graph
from pasca.config import RunConfig
from pasca.fronts import Spread
from pasca.plain import plain
from pasca.problems import keep_times, make_local_evaluator
from pasca.progress import Progress, Silence
from pasca.seeds import trial_seeds
from search_space.architecture import Architecture
from search_space.classics import find_design


def evaluate_design(
    design: str | Architecture,
    config: RunConfig,
    *,
    graph: Graph | None = None,
    test: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train a design once per repeat of the configuration and report its figures, JSON types.

    Args:
        design: a design, its text form, or a classic's name.
        graph: in place of the configuration's data.
        test: whether to read the test labels as well.
    Raises:
        InputError: the design, the data or a setting cannot be used.
        TrialFailure: it could not be trained.
    """
    from engines.evaluation.recipe import Recipe
    from pasca.datasets import load

    watch = progress or Silence()
    architecture = find_design(design) if isinstance(design, str) else design
    recipe = Recipe.from_mapping(config.recipe)
    graph = load(config.data, **config.load) if graph is None else graph
    evaluator = make_local_evaluator(config, graph, recipe, None, watch)
    trained = evaluator.train(architecture, trial_seeds(config.seed, config.repeats))
    known = evaluator.known_of(architecture)
    keep_times(evaluator, watch)
    scores = evaluator.test_scores(trained) if test else ()
    errors, score = Spread.of(trained.val_errors), Spread.of(scores)
    assert errors is not None
    found: dict[str, Any] = plain(
        {
            "design": str(architecture),
            "data": graph.name,
            "metric": recipe.metric,
            "seeds": list(trained.seeds),
            "val_error": {"mean": errors.mean, "std": errors.std},
            "val_errors": trained.val_errors,
            **known,
            "test_score": None if score is None else {"mean": score.mean, "std": score.std},
            "test_scores": scores if test else None,
            "recipe": recipe.as_mapping(),
            "details": trained.details,
        }
    )
    return found
