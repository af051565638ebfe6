"""PascaClassifier: train, search, predict and score in the manner of a scikit-learn estimator, on a Graph."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from engines.evaluation.recipe import Recipe
from engines.graph import UNLABELLED, Graph, Nodes
from pasca.export import as_model, export_design
from pasca.seeds import trial_seeds
from search_space.architecture import Architecture
from search_space.classics import find_design
from search_space.errors import ConfigError, GraphError

if TYPE_CHECKING:
    from engines.evaluation.local import TrainedDesign
    from pasca.model import Model

SEARCH = "search"


class PascaClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifies the nodes of a graph.

    A Graph holds adjacency, features, labels and split together, so it stands where scikit-learn has `X, y`: training
    labels train, validation labels stop the training and choose, test labels are read by `score` alone.

    Args:
        design: a text form or a classic's name; `search` searches for one.
        evaluations: how many designs a search tries.
        pick: which design of a search is taken: `best:val_error`, `knee`, as for `pasca export --pick`.
        recipe: fields of the training recipe that differ from its defaults.
        num_repeats: how often the design is trained, with different seeds.
        ensemble: average the probabilities of all repeats instead of taking the best by validation.
        random_state: an int gives the same model every time; None draws from numpy's global state.
        device, threads: where to train, and with how many threads (None: the cores there are).

    Attributes:
        model_: the trained Model.
        design_: the Architecture that was trained.
        classes_: (C,) class names.
        n_features_in_: F.
        feature_names_in_: (F,) column names; only where the graph has them.
    """

    def __init__(
        self,
        design: str = "PaSca-V3",
        *,
        evaluations: int = 60,
        pick: str = "best:val_error",
        recipe: Mapping[str, Any] | None = None,
        num_repeats: int = 3,
        ensemble: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        self.design = design
        self.evaluations = evaluations
        self.pick = pick
        self.recipe = recipe
        self.num_repeats = num_repeats
        self.ensemble = ensemble
        self.random_state = random_state
        self.device = device
        self.threads = threads

    def fit(self, graph: Graph, y: None = None) -> PascaClassifier:
        """Train on the labels of the split's training part.

        Args:
            y: labels belong to the graph; anything but None is refused.
        Raises:
            InputError: the graph cannot train a model, or a parameter has no legal value.
            TrialFailure: training diverged, or memory ran out.
        """
        from engines.evaluation.local import LocalEvaluator

        _check_graph(graph, y)
        if isinstance(self.num_repeats, bool) or not isinstance(self.num_repeats, int) or self.num_repeats < 1:
            raise ConfigError(f"num_repeats must be a whole number of at least 1, got {self.num_repeats!r}")
        recipe = Recipe.from_mapping(self.recipe or {})
        seed = self._seed()
        design = self._search(graph, seed) if self.design == SEARCH else find_design(self.design)
        evaluator = LocalEvaluator(graph, recipe=recipe, device=self.device, threads=self.threads)
        try:
            trained = evaluator.train(design, trial_seeds(seed, self.num_repeats))
        finally:
            evaluator.close()
        self.design_: Architecture = design
        self.model_: Model = as_model(trained, graph, recipe, ensemble=self.ensemble)
        self.classes_ = np.asarray(graph.class_names, dtype=np.str_)
        self.n_features_in_ = graph.num_features
        if graph.feature_names is not None:
            self.feature_names_in_ = np.asarray(graph.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit
        self._trained: tuple[TrainedDesign, Graph] = (trained, graph)
        return self

    def predict(self, graph: Graph, nodes: Nodes | None = None) -> NDArray[np.str_]:
        """The most probable class of each node, (n,) text; nodes as for `predict_proba`."""
        check_is_fitted(self)
        return self.model_.predict(graph, nodes).labels

    def predict_proba(self, graph: Graph, nodes: Nodes | None = None) -> NDArray[np.float32]:
        """Class probabilities, (n, C); column c belongs to `classes_[c]`.

        Args:
            graph: that of the training, one that grew, or another with the same features.
            nodes: (n,) node numbers, or None for all.
        Raises:
            NotFittedError: `fit` was not called.
            ModelError: the graph does not fit the model.
        """
        check_is_fitted(self)
        return self.model_.predict(graph, nodes).probabilities

    def score(self, graph: Graph, y: None = None, *, nodes: Nodes | None = None) -> float:
        """The recipe's metric (accuracy unless it says otherwise), larger is better.

        Classes are compared by name, so the graph may number them in another way.

        Args:
            nodes: labelled node numbers; the test part of the graph's split when None.
        Raises:
            NotFittedError: `fit` was not called.
            GraphError: there is no test part, or a node has no label or one that the model does not know.
        """
        from engines.evaluation.metrics import score

        check_is_fitted(self)
        _check_graph(graph, y)
        chosen = graph.split.test if nodes is None else np.asarray(nodes, dtype=np.int64)
        if chosen.size == 0:
            raise GraphError(f"the test part of split {graph.split.name!r} of {graph.name} is empty; give nodes=")
        probabilities = self.predict_proba(graph, chosen)
        return score(self.model_.recipe.metric, probabilities, self._truth(graph, chosen))

    def export(self, folder: str | Path) -> Path:
        """Write the trained model as a folder, which `pasca.load_model` reads; returns the folder.

        Raises:
            NotFittedError: `fit` was not called.
            RunError: the folder exists.
            StorageError: it could not be written; nothing is left behind.
        """
        check_is_fitted(self)
        trained, graph = self._trained
        recipe = self.model_.recipe
        return export_design(
            trained,
            graph,
            recipe,
            folder,
            metrics={"val_error": trained.val_errors.mean()},
            protocol={
                "val_error": f"mean over {len(trained.seeds)} seeds, 1 - {recipe.metric} on the validation nodes",
                "split": graph.split.name,
                "test labels": "not read",
            },
            ensemble=self.ensemble,
        )

    def _seed(self) -> int:
        """The seed of one fit."""
        state = self.random_state
        if isinstance(state, (int, np.integer)) and not isinstance(state, bool):
            return int(state)
        return int(check_random_state(state).randint(2**31 - 1))

    def _search(self, graph: Graph, seed: int) -> Architecture:
        from pasca.searching import search

        with tempfile.TemporaryDirectory() as folder:
            study = search(
                graph,
                evaluations=self.evaluations,
                seed=seed,
                repeats=self.num_repeats,
                recipe=dict(self.recipe or {}),
                retrain=0,
                device=self.device,
                threads=self.threads,
                out=Path(folder) / "run",
            )
            design: Architecture = study.pick(self.pick).design
            return design

    def _truth(self, graph: Graph, nodes: Nodes) -> NDArray[np.int64]:
        """(n,) labels of the nodes as numbers of the model's classes."""
        place = {name: number for number, name in enumerate(self.model_.class_names)}
        number_of = np.asarray([place.get(name, UNLABELLED) for name in graph.class_names] + [UNLABELLED])
        truth: NDArray[np.int64] = number_of[graph.labels[nodes]]  # -1 takes the last entry
        wrong = nodes[truth == UNLABELLED]
        if wrong.size:
            label = graph.labels[wrong[0]]
            has = "no label" if label == UNLABELLED else f"the label {graph.class_names[label]!r}"
            raise GraphError(
                f"scoring needs labels that the model knows ({', '.join(self.model_.class_names)}), but node "
                f"{wrong[0]} of {graph.name} has {has}"
            )
        return truth


def _check_graph(graph: Graph, y: Any) -> None:
    if not isinstance(graph, Graph):
        raise GraphError(f"PascaClassifier takes a pasca Graph, as pasca.load gives it, got {type(graph).__name__}")
    if y is not None:
        raise GraphError("labels belong to the Graph, so y must be None; make a Graph with these labels")
