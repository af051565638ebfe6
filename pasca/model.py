"""A model that comes back: from its folder to class probabilities of any graph with the same features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engines.evaluation.normalise import Normaliser
from engines.evaluation.recipe import Recipe, recipe_of
from engines.graph import Features, Graph, Nodes
from pasca.model_folder import (
    DESCRIPTION_FILE,
    WEIGHTS_FILE,
    check_graph,
    known_labels,
    match_columns,
    read_description,
    structure_statistics,
)
from pasca.predictions import Predictions, write_predictions
from pasca.quantities import parse_bytes
from search_space.architecture import Architecture
from search_space.errors import InputError, ModelError

if TYPE_CHECKING:
    from engines.evaluation.inference import TrainingLabels
    from search_space.assembly import Network

FITTED_FEATURES = ("svd",)
"""Features made from the structure whose columns mean something in the one graph that they were fitted to."""


@dataclass(frozen=True, eq=False)
class Model:
    """An exported design with its weights, on the CPU.

    Attributes:
        design: what the network is.
        class_names: the C classes.
        num_features: F.
        feature_names: the F columns it was trained on, or None when they are known by position only.
        normaliser: with the statistics of the training graph.
        recipe: how it was trained.
        made_features: how its features were made from the structure, or None when they were given.
        known: labels of the training nodes, for a design that needs them; else None.
        structure: how local structure is standardised, for a design that takes it; else None.
        directed, weighted: what kind of edges it was trained on.
        network: S repeats; probabilities are the mean of theirs.
        description: all of `model.json`, with `metrics`, their `protocol` and versions.
    """

    design: Architecture
    class_names: tuple[str, ...]
    num_features: int
    feature_names: tuple[str, ...] | None
    normaliser: Normaliser
    recipe: Recipe
    made_features: str | None
    known: TrainingLabels | None
    structure: Normaliser | None
    directed: bool
    weighted: bool
    network: Network
    description: Mapping[str, Any] = field(default_factory=dict)

    @property
    def load_options(self) -> dict[str, Any]:
        """How `pasca.load` reads a graph as the training graph was read: `pasca.load(data, **model.load_options)`."""
        options = {"directed": self.directed, "weighted": self.weighted, "for_training": False}
        return options if self.made_features is None else {**options, "features": self.made_features}

    def predict(
        self, graph: Graph, nodes: Nodes | Sequence[int] | None = None, *, memory: int | str | None = None
    ) -> Predictions:
        """Classify nodes of a graph: that of the training, one that grew, or another with the same features.

        A design with labels of the training nodes or a weight for each node classifies the graph of the training only.

        Nothing is fitted anew; degrees and triangle counts are those of the graph given. Its labels and split are not
        read and need not exist. Feature columns are matched by name, in any order, when both sides have names;
        otherwise they are counted.

        Args:
            nodes: (n,) node numbers in the order wanted, or None for all. With numbers, features are read only where
                the design's steps reach, and probabilities are the same up to rounding (1e-6).
            memory: bytes that classifying may take besides the graph, or a text such as `4GB`; None for half of what is
                free. Hops that do not fit are put into temporary files; the probabilities are the same.
        Raises:
            ConfigError: the memory is not enough for one column of the features at a time.
            ModelError: features do not fit, edges are of another kind (directed, weighted) than in training, a model
                that belongs to one graph is given another, or a node number is not in the graph.
        """
        from engines.evaluation.bounded_inference import classify_within
        from engines.evaluation.local import free_memory_bytes
        from engines.evaluation.neighbourhood import classify_nodes

        self._check_kind(graph)
        columns = match_columns(
            self.num_features, self.feature_names, graph.num_features, graph.feature_names, graph.name
        )

        def features(rows: Nodes | slice) -> NDArray[np.float32]:
            read: Features = graph.features[rows]
            return self.normaliser.apply(read if columns is None else read[:, columns])

        ids = graph.original_ids()
        budget = free_memory_bytes() // 2 if memory is None else parse_bytes(memory, "memory")
        chosen = np.arange(graph.num_nodes) if nodes is None else _node_numbers(nodes, graph)
        if nodes is None or self.design.needs_its_graph:
            repeats = classify_within(
                self.design,
                self.network,
                graph.adjacency,
                self.num_features,
                features,
                budget,
                known=self.known,
                structure=self.structure,
                at_any_cost=memory is None,
            )
            return self._predictions(repeats if nodes is None else repeats[:, chosen], ids[chosen])
        repeats = classify_nodes(
            self.design,
            self.network,
            graph.adjacency,
            features,
            chosen,
            self.num_features,
            budget,
            self.structure,
        )
        return self._predictions(repeats, ids[chosen])

    def _check_kind(self, graph: Graph) -> None:
        """Refuse edges and features that mean something else than those of the training graph."""
        for what, trained, given in (
            ("directed", self.directed, graph.directed),
            ("weighted", self.weighted, graph.weighted),
        ):
            if trained != given:
                kinds = (what, f"un{what}")
                raise ModelError(
                    f"the model was trained on {kinds[not trained]} edges, but those of {graph.name} are "
                    f"{kinds[not given]}; read the graph with {what}={trained}"
                )
        named = self.feature_names is not None and graph.feature_names is not None
        if graph.made_features != self.made_features and not named:
            raise ModelError(
                f"the model was trained on {_origin(self.made_features)}, but {graph.name} has "
                f"{_origin(graph.made_features)}; read the graph with features={self.made_features or 'FILE'!r}"
            )
        check_graph(self.description, graph.adjacency, graph.name)

    def _predictions(self, repeats: NDArray[np.float32], node_ids: NDArray[np.str_]) -> Predictions:
        """From (S, n, C) probabilities."""
        probabilities = repeats[0] if len(repeats) == 1 else repeats.mean(axis=0, dtype=np.float64).astype(np.float32)
        labels = np.asarray(self.class_names, dtype=np.str_)[probabilities.argmax(axis=1)]
        return Predictions(node_ids, labels, probabilities, self.class_names)


def _origin(made: str | None) -> str:
    return "given features" if made is None else f"{made} features made from the structure"


def load_model(folder: str | Path) -> Model:
    """Read a model folder that `export_design` wrote.

    Raises:
        ModelError: it holds no model, a newer pasca wrote it, a file is missing, or one was changed.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    folder = Path(folder)
    description = read_description(folder)
    try:
        return assemble(description, load((folder / WEIGHTS_FILE).read_bytes()))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, InputError, SafetensorError) as error:
        raise ModelError(f"{folder / DESCRIPTION_FILE} lacks what a model needs ({error!r})") from None


def assemble(description: Mapping[str, Any], weights: Mapping[str, NDArray[np.float32]]) -> Model:
    """A model from what `model.json` says and the network's weights.

    Raises:
        KeyError, TypeError, ValueError, InputError: the two do not describe one model.
    """
    import torch

    from engines.evaluation.inference import TrainingLabels
    from search_space.assembly import Network
    from search_space.hops import hop_width

    design, recipe = Architecture.parse(description["design"]), Recipe.from_mapping(description["recipe"])
    names, num_features = description["features"]["names"], int(description["features"]["count"])
    class_names = tuple(description["classes"])
    hidden_width = recipe_of(design, recipe).hidden_width
    sizes = {"repeats": description["repeats"]["count"], "features": num_features, "classes": len(class_names)}
    sizes |= {"hidden_width": hidden_width} if design.k_trans > 1 else {}
    largest = max((length for array in weights.values() for length in array.shape), default=0)
    for name, size in sizes.items():
        if size > largest:  # before anything of that size is made
            raise ValueError(f"{name} is {size}, but no weight has more than {largest} on a side")
    # starting weights are drawn and then replaced
    generators = [torch.Generator().manual_seed(0) for _ in range(description["repeats"]["count"])]
    known, counted = known_labels(description), structure_statistics(description)
    num_nodes = None
    if design.adjacency is not None:
        num_nodes = int(description["trained_on"]["num_nodes"])
        if num_nodes > largest:
            raise ValueError(f"trained_on has {num_nodes} nodes, but no weight has more than {largest} on a side")
    network = Network(design, hop_width(design, num_features), len(class_names), hidden_width, generators, num_nodes)
    try:
        network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return Model(
        design=design,
        class_names=class_names,
        num_features=num_features,
        feature_names=None if names is None else tuple(names),
        normaliser=Normaliser.from_mapping(description["normalisation"]),
        recipe=recipe,
        made_features=description["features"]["made"],
        known=None if known is None else TrainingLabels(*known),
        structure=None if counted is None else Normaliser.from_mapping(counted),
        directed=bool(description["adjacency"]["directed"]),
        weighted=bool(description["adjacency"]["weighted"]),
        network=network.eval(),
        description=description,
    )


def _node_numbers(nodes: Nodes | Sequence[int], graph: Graph) -> Nodes:
    """Check node numbers; returns (n,) int64."""
    numbers = np.asarray(nodes)
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "iu":
        raise ModelError(f"nodes are a list of at least one node number, got {numbers.dtype} of shape {numbers.shape}")
    wrong = numbers[(numbers < 0) | (numbers >= graph.num_nodes)]
    if wrong.size:
        raise ModelError(f"{graph.name} has nodes 0 to {graph.num_nodes - 1}, got {wrong[0]}")
    return numbers.astype(np.int64)


__all__ = ["Model", "Predictions", "load_model", "write_predictions"]
