"""A model that comes back: from its folder to class probabilities of any graph with the same features."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engines.evaluation.normalise import Normaliser
from engines.evaluation.recipe import Recipe
from engines.graph import Features, Graph
from pasca.runtime import DESCRIPTION_FILE, WEIGHTS_FILE, match_columns, read_description
from search_space.architecture import Architecture
from search_space.errors import InputError, ModelError

if TYPE_CHECKING:
    from search_space.assembly import Network


_ROWS_WRITTEN = 8192
"""Rows of a CSV that are text in memory at a time."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of n nodes; row i of every part belongs to one node.

    Attributes:
        node_ids: (n,) original ids as the source spells them; node numbers where it has none.
        labels: (n,) the most probable class as text, ties to the class listed first.
        probabilities: (n, C) float32; rows sum to one.
        class_names: the C classes, in the order of the columns.
    """

    node_ids: NDArray[np.str_]
    labels: NDArray[np.str_]
    probabilities: NDArray[np.float32]
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)


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
    directed: bool
    weighted: bool
    network: Network
    description: Mapping[str, Any] = field(default_factory=dict)

    def predict(self, graph: Graph) -> Predictions:
        """Classify the nodes of a graph: that of the training, one that grew, or another with the same features.

        Nothing is fitted anew; degrees and triangle counts are those of the graph given. Its labels and split are not
        read and need not exist. Feature columns are matched by name, in any order, when both sides have names;
        otherwise they are counted.

        Raises:
            ModelError: features do not fit, or edges are of another kind (directed, weighted) than in training.
        """
        from engines.evaluation.inference import classify

        self._check_edges(graph)
        features = self.normaliser.apply(self._columns(graph))
        return self._predictions(classify(self.design, self.network, graph.adjacency, features), graph.original_ids())

    def _check_edges(self, graph: Graph) -> None:
        for what, trained, given in (
            ("directed", self.directed, graph.directed),
            ("weighted", self.weighted, graph.weighted),
        ):
            if trained != given:
                kinds = (what, f"un{what}")
                raise ModelError(
                    f"the model was trained on {kinds[not trained]} edges, but those of {graph.name} are "
                    f"{kinds[not given]}; read the graph the same way (--{kinds[not trained]})"
                )

    def _columns(self, graph: Graph) -> Features:
        columns = match_columns(
            self.num_features, self.feature_names, graph.num_features, graph.feature_names, graph.name
        )
        return graph.features if columns is None else graph.features[:, columns]

    def _predictions(self, repeats: NDArray[np.float32], node_ids: NDArray[np.str_]) -> Predictions:
        """From (S, n, C) probabilities."""
        probabilities = repeats[0] if len(repeats) == 1 else repeats.mean(axis=0, dtype=np.float64).astype(np.float32)
        labels = np.asarray(self.class_names, dtype=np.str_)[probabilities.argmax(axis=1)]
        return Predictions(node_ids, labels, probabilities, self.class_names)


def load_model(folder: str | Path) -> Model:
    """Read a model folder that `export_design` wrote.

    Raises:
        ModelError: it holds no model, a newer pasca wrote it, a file is missing, or one was changed.
    """
    folder = Path(folder)
    description = read_description(folder)
    try:
        return _assemble(description, (folder / WEIGHTS_FILE).read_bytes())
    except (KeyError, TypeError, ValueError, InputError) as error:
        raise ModelError(f"{folder / DESCRIPTION_FILE} lacks what a model needs ({error!r})") from None


def _assemble(description: Mapping[str, Any], weights: bytes) -> Model:
    import torch
    from safetensors.torch import load

    from search_space.assembly import Network

    design, recipe = Architecture.parse(description["design"]), Recipe.from_mapping(description["recipe"])
    names, num_features = description["features"]["names"], int(description["features"]["count"])
    class_names = tuple(description["classes"])
    # starting weights are drawn and then replaced
    generators = [torch.Generator().manual_seed(0) for _ in range(description["repeats"]["count"])]
    network = Network(design, num_features, len(class_names), recipe.hidden_width, generators)
    try:
        network.load_state_dict(load(weights))
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return Model(
        design=design,
        class_names=class_names,
        num_features=num_features,
        feature_names=None if names is None else tuple(names),
        normaliser=Normaliser.from_mapping(description["normalisation"]),
        recipe=recipe,
        directed=bool(description["adjacency"]["directed"]),
        weighted=bool(description["adjacency"]["weighted"]),
        network=network.eval(),
        description=description,
    )


def write_predictions(predictions: Predictions, path: str | Path, *, probabilities: bool = True) -> Path:
    """Write predictions as CSV: `id`, `label`, and unless left out one column `p_CLASS` for each class.

    Ids and labels stand as the source spells them, quoted where they hold a comma, a quote or a line break.
    Probabilities have the fewest digits that give back the same float32.

    Raises:
        StorageError: it could not be written; an earlier file of that name is untouched.
    """
    import pyarrow as pa

    from pasca.atomic import new_file

    header = ["id", "label", *(f"p_{name}" for name in predictions.class_names if probabilities)]
    target = Path(path)
    with new_file(target) as file, io.StringIO() as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        for first in range(0, len(predictions), _ROWS_WRITTEN):
            rows = slice(first, first + _ROWS_WRITTEN)
            columns = [predictions.node_ids[rows].tolist(), predictions.labels[rows].tolist()]
            if probabilities:
                columns += [pa.array(c).cast(pa.string()).to_pylist() for c in predictions.probabilities[rows].T.copy()]
            writer.writerows(zip(*columns, strict=True))
            file.write(text.getvalue().encode())
            text.seek(0)
            text.truncate()
    return target
