"""What a model folder says of itself, read and verified; the part that the readers with and without torch share.

Needs numpy and scipy, and of pasca the search space alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from search_space.architecture import Architecture
from search_space.errors import ModelError
from search_space.graph_operators import CorrectAndSmooth, channels
from search_space.local_structure import STRUCTURE_WIDTH

FORMAT, FORMAT_VERSION = "pasca-model", 3
"""The version goes up whenever a reader of the old form would misunderstand the new one.

1: features and edges are enough. 2: the model belongs to one graph, and may hold labels of its nodes. 3: it counts
degrees and triangles, which it standardises.
"""

DESCRIPTION_FILE, WEIGHTS_FILE, ONNX_FILE, CARD_FILE = "model.json", "weights.safetensors", "model.onnx", "README.md"


def description_checksum(description: Mapping[str, Any]) -> str:
    """SHA-256 of a model's description without its field `checksum`; spacing and the order of keys do not matter."""
    content = {key: value for key, value in description.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def adjacency_checksum(adjacency: sparse.csr_array) -> str:
    """SHA-256 of an adjacency as a Graph holds it: CSR with sorted columns, float32."""
    digest = hashlib.sha256(str(adjacency.shape[0]).encode())
    for part in (adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)):
        digest.update(part.data)
    digest.update(np.ascontiguousarray(adjacency.data).data)
    return digest.hexdigest()


def check_graph(description: Mapping[str, Any], adjacency: sparse.csr_array, source: str) -> None:
    """Make sure that a model which belongs to one graph is given that graph.

    Raises:
        ModelError: the edges are others.
    """
    of_features = description["features"]["belong_to"]
    belongs_to = of_features or description.get("belongs_to")
    if belongs_to is None or belongs_to == adjacency_checksum(adjacency):
        return
    if of_features is not None:
        raise ModelError(
            f"the model was trained on {description['features']['made']} features, which belong to the graph that they "
            f"were fitted to, and {source} has other edges; train on degree features to predict on other graphs"
        )
    what = "labels of training nodes" if description.get("known") else "a weight for each node"
    raise ModelError(
        f"{description['design']} has {what}, so it classifies the graph that it was trained on, and {source} has "
        "other edges; export a design without labels, cs and adjacency rows to predict on other graphs"
    )


def known_labels(description: Mapping[str, Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Numbers of the training nodes and their classes, each (n,); None for a model that holds no labels.

    Raises:
        KeyError, TypeError, ValueError, OverflowError: they are not those of nodes of its graph.
    """
    held, post = description.get("known"), description.get("post")
    if held is None:
        corrects = post is not None and any(isinstance(o, CorrectAndSmooth) for o in channels(post["aggregator"]))
        if corrects or description.get("label_steps") is not None:
            raise ValueError(f"{description['design']} needs labels of training nodes, and there are none")
        return None
    nodes, classes = (np.asarray(held[name], dtype=np.int64) for name in ("nodes", "classes"))
    for what, numbers, end in (
        ("nodes", nodes, int(description["trained_on"]["num_nodes"])),
        ("classes", classes, len(description["classes"])),
    ):
        if numbers.shape != nodes.shape or nodes.ndim != 1 or ((numbers < 0) | (numbers >= end)).any():
            raise ValueError(f"known.{what} are not numbers from 0 to {end - 1}, one for each node")
    return nodes, classes


def structure_statistics(description: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """How local structure is standardised: `kind`, `mean` and `scale`; None for a model that takes none.

    Raises:
        KeyError, TypeError, ValueError, InputError: the design takes it and there are no such numbers.
    """
    if Architecture.parse(description["design"]).structure is None:
        return None
    values: Mapping[str, Any] = description["structure"]
    for name in ("mean", "scale"):
        numbers = np.asarray(values[name], dtype=np.float64)
        if numbers.shape != (STRUCTURE_WIDTH,) or not np.isfinite(numbers).all():
            raise ValueError(f"structure.{name} is one number for each of {STRUCTURE_WIDTH} columns")
    return values


def file_checksum(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        ModelError: it is missing or cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except FileNotFoundError:
        raise ModelError(f"{path} is missing; export the model again") from None
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    return digest.hexdigest()


def read_description(folder: Path) -> dict[str, Any]:
    """Read `model.json` of a model folder, and verify it and the files that it lists.

    Raises:
        ModelError: the folder holds no model, a newer pasca wrote it, a file is missing, or one was changed.
    """
    path = folder / DESCRIPTION_FILE
    if not path.is_file():
        raise ModelError(f"{folder} is not a model folder: it has no {DESCRIPTION_FILE}; `pasca export` writes one")
    try:
        description = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ModelError(f"{path} is damaged, it is not JSON ({error}); export the model again") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ModelError(f"{path} does not describe a model of pasca: its format is not {FORMAT!r}")
    version = description.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelError(
            f"{path} has format version {version!r}, this pasca reads up to {FORMAT_VERSION}; use a newer pasca"
        )
    if description.get("checksum") != description_checksum(description):
        raise ModelError(f"{path} was changed after the export: its checksum does not match; export the model again")
    files = description.get("files", {})
    for name in (WEIGHTS_FILE, ONNX_FILE):
        if file_checksum(folder / name) != files.get(name):
            raise ModelError(
                f"{folder / name} was changed after the export: its checksum does not match; export the model again"
            )
    return description


def match_columns(
    expected_count: int,
    expected_names: Sequence[str] | None,
    count: int,
    names: Sequence[str] | None,
    source: str,
) -> NDArray[np.int64] | None:
    """Which column of the given features is each column that the model was trained on.

    Columns are matched by name when both sides have names, whatever their order; otherwise they are counted and taken
    in order. Nothing is padded or cut: a column too many is refused as one too few, since a model cannot know whether
    it was meant.

    Args:
        count, names: of the given features.
        source: what has them, for messages.
    Returns:
        (F,) column numbers, or None when the columns fit as they are.
    Raises:
        ModelError: a column is missing, unknown or named twice, or the counts differ.
    """
    if expected_names is None or names is None:
        if count != expected_count:
            raise ModelError(f"{source}: expected {expected_count} features, found {count}")
        return None
    if list(names) == list(expected_names):
        return None
    place = {name: column for column, name in enumerate(names)}
    for side, listed in ((source, names), ("the model", expected_names)):
        twice = next((name for name in listed if list(listed).count(name) > 1), None) if _repeats(listed) else None
        if twice is not None:
            raise ModelError(f"{source}: features are matched by name, but {side} has the name {twice!r} twice")
    missing = [name for name in expected_names if name not in place]
    if missing:
        raise ModelError(
            f"{source}: feature {missing[0]!r} is missing{_and_more(missing)}; the model was trained on "
            f"{expected_count} features and found {count}"
        )
    known = set(expected_names)
    extra = [name for name in names if name not in known]
    if extra:
        raise ModelError(
            f"{source}: feature {extra[0]!r} was not among the {expected_count} that the model was trained on"
            f"{_and_more(extra)}; remove it"
        )
    return np.asarray([place[name] for name in expected_names], dtype=np.int64)


def _repeats(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _and_more(names: Sequence[str]) -> str:
    return f", and {len(names) - 1} more" if len(names) > 1 else ""
