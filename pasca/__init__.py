"""pasca: searches scalable graph neural network designs for the best trade-offs between accuracy and cost.

    import pasca
    study = pasca.search("digits", evaluations=30)
    print(study.front())

Importing this package starts nothing and is fast: what is named here is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engines.evaluation.recipe import Recipe
    from engines.graph import Graph, Split
    from engines.objectives import Bound, Objective, parse_bound, register_objective
    from engines.trial import Outcome, Status, Trial
    from pasca.classifier import PascaClassifier
    from pasca.config import RunConfig
    from pasca.datasets import load
    from pasca.fronts import Front
    from pasca.model import Model, load_model
    from pasca.predictions import Predictions
    from pasca.results import Study
    from pasca.searching import search
    from search_space.architecture import Architecture
    from search_space.classics import CLASSICS
    from search_space.errors import InputError, PascaError, StorageError, TrialFailure
    from search_space.product import ProductSpace
    from search_space.space import SearchSpace

__version__ = "0.1.0"

_HOMES = {
    "Architecture": "search_space.architecture",
    "Bound": "engines.objectives",
    "CLASSICS": "search_space.classics",
    "Front": "pasca.fronts",
    "Graph": "engines.graph",
    "InputError": "search_space.errors",
    "Model": "pasca.model",
    "Objective": "engines.objectives",
    "Outcome": "engines.trial",
    "PascaClassifier": "pasca.classifier",
    "PascaError": "search_space.errors",
    "ProductSpace": "search_space.product",
    "Predictions": "pasca.predictions",
    "Recipe": "engines.evaluation.recipe",
    "RunConfig": "pasca.config",
    "ExtendedSpace": "search_space.extended",
    "SearchSpace": "search_space.space",
    "Split": "engines.graph",
    "Status": "engines.trial",
    "StorageError": "search_space.errors",
    "Study": "pasca.results",
    "Trial": "engines.trial",
    "TrialFailure": "search_space.errors",
    "load": "pasca.datasets",
    "load_model": "pasca.model",
    "parse_bound": "engines.objectives",
    "register_objective": "engines.objectives",
    "search": "pasca.searching",
}

__all__ = [
    "CLASSICS",
    "Architecture",
    "Bound",
    "ExtendedSpace",
    "Front",
    "Graph",
    "InputError",
    "Model",
    "Objective",
    "Outcome",
    "PascaClassifier",
    "PascaError",
    "Predictions",
    "ProductSpace",
    "Recipe",
    "RunConfig",
    "SearchSpace",
    "Split",
    "Status",
    "StorageError",
    "Study",
    "Trial",
    "TrialFailure",
    "load",
    "load_model",
    "parse_bound",
    "register_objective",
    "search",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
