"""A trained design leaves pasca as a folder that predicts without the search.

model.json           design, classes, features, normalisation, recipe, metrics with their protocol, checksums
weights.safetensors  the network's weights, one repeat or an ensemble
model.onnx           the same network for any ONNX runtime
README.md            a card for people; the one file that may be edited
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import pasca
from engines.evaluation.recipe import Recipe
from engines.graph import Graph
from pasca.atomic import new_folder, write_json
from pasca.card import card
from pasca.model import FITTED_FEATURES, Model, assemble
from pasca.model_folder import (
    CARD_FILE,
    DESCRIPTION_FILE,
    FORMAT,
    FORMAT_VERSION,
    ONNX_FILE,
    WEIGHTS_FILE,
    adjacency_checksum,
    description_checksum,
    file_checksum,
)
from pasca.plain import plain
from search_space.architecture import Architecture
from search_space.errors import ConfigError, DesignError

if TYPE_CHECKING:
    from engines.evaluation.inference import TrainingLabels
    from engines.evaluation.local import TrainedDesign

_DESIGN_FORMAT, _DESIGN_FORMAT_VERSION = "pasca-design", 1
_PACKAGES = ("torch", "numpy", "scipy", "onnx", "safetensors")


def export_design(
    trained: TrainedDesign,
    graph: Graph,
    recipe: Recipe,
    folder: str | Path,
    *,
    metrics: Mapping[str, Any],
    protocol: Mapping[str, Any],
    repeat: int | None = None,
    ensemble: bool = False,
) -> Path:
    """Write a trained design as a model folder, whole or not at all.

    Args:
        trained: on any device; what is written names none.
        graph: what it was trained on.
        recipe: how it was trained.
        folder: must not exist; its parents are made.
        metrics: figures for the record (JSON types), such as `val_error` or `{"test_accuracy": {"mean": ..}}`.
        protocol: how those figures came about: split, seeds, which labels were read when.
        repeat: which of the S repeats to export; the one with the lowest validation error when None, ties to the
            lowest validation loss and then to the earliest.
        ensemble: export all repeats; the model's probabilities are the mean of theirs.
    Returns:
        The folder.
    Raises:
        RunError: the folder exists.
        ConfigError: there is no such repeat, or a repeat and an ensemble are both asked for.
        StorageError: it could not be written; nothing is left behind.
    """
    from safetensors.numpy import save

    from pasca.onnx_export import onnx_model
    from search_space.hops import hop_width

    target = Path(folder)
    repeats = _repeats(trained, repeat, ensemble)
    weights = _weights(trained, repeats)
    description = _description(trained, graph, recipe, repeats)
    description |= {"metrics": plain(metrics), "protocol": plain(protocol)}
    contents = {
        WEIGHTS_FILE: save(weights),
        ONNX_FILE: onnx_model(
            trained.design, hop_width(trained.design, graph.num_features), graph.num_classes, weights
        ),
        CARD_FILE: card(description).encode(),
    }
    with new_folder(target) as temporary:
        for name, content in contents.items():
            (temporary / name).write_bytes(content)
        description["files"] = {name: file_checksum(temporary / name) for name in (WEIGHTS_FILE, ONNX_FILE)}
        description["checksum"] = description_checksum(description)
        text = json.dumps(description, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        (temporary / DESCRIPTION_FILE).write_text(text, encoding="utf-8")
    return target


def as_model(
    trained: TrainedDesign, graph: Graph, recipe: Recipe, *, repeat: int | None = None, ensemble: bool = False
) -> Model:
    """The model that `export_design` would write and `load_model` read, without the folder; arguments as there.

    Raises:
        ConfigError: there is no such repeat, or a repeat and an ensemble are both asked for.
    """
    repeats = _repeats(trained, repeat, ensemble)
    return assemble(_description(trained, graph, recipe, repeats), _weights(trained, repeats))


def ensemble_errors(trained: TrainedDesign, graph: Graph, recipe: Recipe) -> tuple[float, float]:
    """Validation error of the mean probabilities of all repeats, and that of the one that would leave alone."""
    alone = int(_repeats(trained, None, False)[0])
    return _val_error(trained, graph, recipe, np.arange(len(trained.seeds))), float(trained.val_errors[alone])


def write_design(design: Architecture, path: str | Path) -> Path:
    """Write a design alone as JSON, which `read_design` reads; it can be evaluated on any graph.

    Raises:
        StorageError: it could not be written; an earlier file of that name is untouched.
    """
    target = Path(path)
    write_json(target, {"format": _DESIGN_FORMAT, "format_version": _DESIGN_FORMAT_VERSION, "design": str(design)})
    return target


def read_design(path: str | Path) -> Architecture:
    """Read the design that `write_design` wrote, or that of a `model.json`.

    Raises:
        DesignError: the file does not hold one, or a newer pasca wrote it.
    """
    source = Path(path)
    try:
        content = json.loads(source.read_bytes())
    except OSError as error:
        raise DesignError(f"cannot read {source}: {error.strerror or error}") from None
    except ValueError as error:
        raise DesignError(f"{source} is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") not in (_DESIGN_FORMAT, FORMAT):
        raise DesignError(f"{source} holds no design; `pasca export --architecture` writes one")
    newest = FORMAT_VERSION if content["format"] == FORMAT else _DESIGN_FORMAT_VERSION
    if not isinstance(content.get("format_version"), int) or content["format_version"] > newest:
        raise DesignError(
            f"{source} has format version {content.get('format_version')!r}, this pasca reads up to {newest}; "
            "use a newer pasca"
        )
    return Architecture.parse(str(content.get("design")))


def _repeats(trained: TrainedDesign, repeat: int | None, ensemble: bool) -> NDArray[np.int64]:
    """Which repeats leave."""
    S = len(trained.seeds)
    if ensemble:
        if repeat is not None:
            raise ConfigError(f"an ensemble holds all repeats, but repeat {repeat} was asked for too; choose one")
        return np.arange(S)
    if repeat is None:
        repeat = int(np.lexsort((trained.trained.validation_losses, trained.val_errors))[0])
    if not 0 <= repeat < S:
        raise ConfigError(f"the design was trained {S} time(s), so a repeat is 0 to {S - 1}, got {repeat}")
    return np.asarray([repeat])


def _weights(trained: TrainedDesign, repeats: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
    """The network's weights, each with its leading repeat dimension cut to the chosen ones."""
    state = trained.trained.network.state_dict()
    return {name: np.ascontiguousarray(tensor.detach().cpu().numpy()[repeats]) for name, tensor in state.items()}


def _description(
    trained: TrainedDesign,
    graph: Graph,
    recipe: Recipe,
    repeats: NDArray[np.int64],
) -> dict[str, Any]:
    from search_space.hops import hop_width, required_hops

    design, names, known = trained.design, graph.feature_names, training_labels(graph)
    description = {
        "format": FORMAT,
        "format_version": _format_version(design),
        "design": str(design),
        "pre": _stage(design.pre_aggregator, design.k_pre),
        "message": design.message,
        "hop_stack": {
            "hops": design.k_pre + 1,
            "columns": hop_width(design, graph.num_features),
            "read": required_hops(design),
        },
        "layers": design.k_trans,
        "post": _stage(design.post_aggregator, design.k_post),
        "classes": graph.class_names,
        "features": {
            "count": graph.num_features,
            "names": names,
            "made": graph.made_features,
            "belong_to": adjacency_checksum(graph.adjacency) if graph.made_features in FITTED_FEATURES else None,
        },
        "normalisation": trained.normaliser.as_mapping(),
        "adjacency": {"directed": graph.directed, "weighted": graph.weighted},
        "repeats": {
            "count": repeats.size,
            "seeds": [trained.seeds[repeat] for repeat in repeats],
            "val_errors": trained.val_errors[repeats],
            "best_epochs": trained.trained.best_epochs[repeats],
            "val_error": _val_error(trained, graph, recipe, repeats),
        },
        "recipe": recipe.as_mapping(),
        "trained_on": {
            "name": graph.name,
            "checksum": graph.checksum,
            "num_nodes": graph.num_nodes,
            "num_edges": graph.num_edges,
            "split": graph.split.name,
        },
        "versions": {
            "pasca": pasca.__version__,
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
        },
    }
    if design.needs_its_graph:
        description |= {
            "belongs_to": adjacency_checksum(graph.adjacency),
            "known": {"nodes": known.nodes, "classes": known.classes} if design.needs_labels else None,
            "label_steps": design.label_steps,
            "adjacency_rows": design.adjacency is not None,
        }
    if trained.structure is not None:
        description["structure"] = trained.structure.as_mapping()
    plain_description: dict[str, Any] = plain(description)
    return plain_description


def _format_version(design: Architecture) -> int:
    """The oldest form that says all there is to say, for readers that know no newer one."""
    if design.structure is not None:
        return FORMAT_VERSION
    return 2 if design.needs_its_graph else 1


def _val_error(trained: TrainedDesign, graph: Graph, recipe: Recipe, repeats: NDArray[np.int64]) -> float:
    """Validation error of what leaves: the repeat's own, or that of the ensemble's mean probabilities."""
    if repeats.size == 1:
        return float(trained.val_errors[repeats[0]])
    from engines.evaluation.inference import classify
    from engines.evaluation.metrics import score

    validation, features = graph.split.validation, trained.normaliser.apply(graph.features)
    members = classify(
        trained.design,
        trained.trained.network,
        graph.adjacency,
        features,
        training_labels(graph),
        trained.structure,
    )
    return 1.0 - score(recipe.metric, members[:, validation].mean(axis=0), graph.labels[validation])


def training_labels(graph: Graph) -> TrainingLabels:
    """What designs that need labels know."""
    from engines.evaluation.inference import TrainingLabels

    return TrainingLabels(graph.split.train, graph.labels[graph.split.train])


def _stage(aggregator: str | None, steps: int) -> dict[str, Any] | None:
    return None if aggregator is None else {"aggregator": aggregator, "steps": steps}
