"""A reader of exported models that needs only numpy, scipy and onnxruntime.

    from pasca.runtime import RuntimeModel
    model = RuntimeModel.load("my-model")
    probabilities = model.predict_proba(adjacency, features)   # (N, C)

It imports neither torch nor the engines, so a machine that only predicts can do without them. `pasca.model` gives the
same probabilities from a Graph.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from search_space.errors import InputError, ModelError
from search_space.graph_operators import CorrectAndSmooth, GraphOperator, channels
from search_space.graph_operators.correct_and_smooth import correct_and_smooth

FORMAT, FORMAT_VERSION = "pasca-model", 2
"""The version goes up whenever a reader of the old form would misunderstand the new one.

1: features and edges are enough. 2: the model belongs to one graph, and may hold labels of its nodes.
"""

DESCRIPTION_FILE, WEIGHTS_FILE, ONNX_FILE, CARD_FILE = "model.json", "weights.safetensors", "model.onnx", "README.md"

BLOCK_ROWS = 4096
"""Rows that go through the network together; bounds memory, not the result."""


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
    reason = "features" if description["features"]["belong_to"] is not None else "model"
    belongs_to = description["features"]["belong_to"] or description.get("belongs_to")
    if belongs_to is None or belongs_to == adjacency_checksum(adjacency):
        return
    if reason == "features":
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


@dataclass(frozen=True, eq=False)
class _Stage:
    """One graph stage: its operators, side by side, and how often they are applied."""

    operators: tuple[GraphOperator, ...]
    steps: int

    @classmethod
    def read(cls, values: Mapping[str, Any] | None) -> _Stage | None:
        return None if values is None else cls(channels(values["aggregator"]), int(values["steps"]))


def _step(
    operator: GraphOperator, matrix: sparse.csr_array, current: NDArray[np.float32], start: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(1-α) M X(k-1) + α X(0)."""
    restart = np.float32(operator.restart)
    moved: NDArray[np.float32] = matrix @ current
    return moved if restart == 0 else (1 - restart) * moved + restart * start


class RuntimeModel:
    """An exported model, ready to predict.

    Attributes:
        class_names: the C labels as text.
        feature_names: the F columns it was trained on, or None when they are known by position only.
        num_features: F.
        directed, weighted: how it reads an adjacency.
        description: all of `model.json`.
    """

    def __init__(self, description: Mapping[str, Any], network: bytes) -> None:
        import onnxruntime

        self.description = description
        self.class_names = tuple(description["classes"])
        self.num_features = int(description["features"]["count"])
        names = description["features"]["names"]
        self.feature_names: tuple[str, ...] | None = None if names is None else tuple(names)
        self.directed = bool(description["adjacency"]["directed"])
        self.weighted = bool(description["adjacency"]["weighted"])
        self._known = known_labels(description)
        self._label_steps = None if description.get("label_steps") is None else int(description["label_steps"])
        self._rows = bool(description.get("adjacency_rows", False))
        self._pre = _Stage.read(description["pre"])
        self._post = _Stage.read(description["post"])
        self._num_hops = int(description["hop_stack"]["hops"])
        self._read_hops = frozenset(description["hop_stack"]["read"])
        try:
            self._session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
        except Exception as error:  # of many classes, whose only common base is this one
            raise ValueError(f"{ONNX_FILE}: {str(error).splitlines()[0]}") from None

    @classmethod
    def load(cls, folder: str | Path) -> RuntimeModel:
        """Read a model folder.

        Raises:
            ModelError: it holds no model, a newer pasca wrote it, a file is missing, or one was changed.
        """
        folder = Path(folder)
        description = read_description(folder)
        try:
            return cls(description, (folder / ONNX_FILE).read_bytes())
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, InputError) as error:
            raise ModelError(f"{folder / DESCRIPTION_FILE} lacks what a model needs ({error!r})") from None

    def predict_proba(
        self,
        adjacency: sparse.sparray | sparse.spmatrix,
        features: NDArray[Any] | sparse.sparray | sparse.spmatrix,
        feature_names: Sequence[str] | None = None,
    ) -> NDArray[np.float32]:
        """Class probabilities of all nodes.

        Args:
            adjacency: (N, N); an entry (i, j) means that node i gathers from node j. Self-loops are dropped. Unless
                the model is weighted, entries count as one; unless it is directed, each counts in both directions.
            features: (N, F) raw features, as before the training's normalisation.
            feature_names: the F column names; without them columns are taken in order.
        Returns:
            (N, C) float32, rows summing to one; column c belongs to `class_names[c]`.
        Raises:
            ModelError: the arrays do not fit the model or one another, or a model that belongs to one graph is given
                another.
        """
        matrix = self._adjacency(adjacency)
        check_graph(self.description, matrix, "the adjacency")
        N = matrix.shape[0]
        if features.ndim != 2 or features.shape[0] != N:
            raise ModelError(f"features have one row a node: expected {N} rows, found shape {features.shape}")
        names = None if feature_names is None else tuple(feature_names)
        if names is not None and len(names) != features.shape[1]:
            raise ModelError(f"features have {features.shape[1]} columns but {len(names)} names")
        columns = match_columns(self.num_features, self.feature_names, features.shape[1], names, "features")
        dense = features if isinstance(features, np.ndarray) else features.toarray()
        with np.errstate(over="ignore"):  # what is past float32 becomes infinite and is refused below
            dense = np.array(dense if columns is None else dense[:, columns], dtype=np.float32, order="C")
        if not np.isfinite(dense).all():
            raise ModelError("features hold values that are NaN, infinite or past float32; clean or fill them")
        _normalise(dense, self.description["normalisation"])
        built: dict[str, sparse.csr_array] = {}
        hops = self._hops(dense, matrix, built)
        probabilities = self._transform(hops, self._shown(matrix, built), matrix if self._rows else None)
        if self._post is None:
            return probabilities
        (operator,) = self._post.operators
        step_matrix = _matrix(operator, matrix, built)
        if isinstance(operator, CorrectAndSmooth):
            return self._corrected(probabilities, operator, step_matrix)
        current = probabilities
        for _ in range(self._post.steps):
            current = _step(operator, step_matrix, current, probabilities)
        divided: NDArray[np.float32] = current / current.sum(axis=1, keepdims=True)
        return divided

    def predict(
        self,
        adjacency: sparse.sparray | sparse.spmatrix,
        features: NDArray[Any] | sparse.sparray | sparse.spmatrix,
        feature_names: Sequence[str] | None = None,
    ) -> NDArray[np.str_]:
        """The most probable label of every node, (N,) text; otherwise as `predict_proba`."""
        probabilities = self.predict_proba(adjacency, features, feature_names)
        labels: NDArray[np.str_] = np.asarray(self.class_names, dtype=np.str_)[probabilities.argmax(axis=1)]
        return labels

    def _adjacency(self, given: sparse.sparray | sparse.spmatrix) -> sparse.csr_array:
        if not sparse.issparse(given) or given.shape[0] != given.shape[1] or given.shape[0] == 0:
            shape = getattr(given, "shape", None)
            raise ModelError(f"the adjacency is a square sparse matrix of at least one node, got shape {shape}")
        matrix = sparse.csr_array(given, dtype=np.float32)
        matrix.sum_duplicates()
        entries = matrix.tocoo()
        kept = (entries.row != entries.col) & (entries.data != 0)
        values = entries.data[kept] if self.weighted else np.ones(int(kept.sum()), dtype=np.float32)
        matrix = sparse.csr_array((values, (entries.row[kept], entries.col[kept])), shape=matrix.shape)
        if self.weighted and not (np.isfinite(values).all() and (values > 0).all()):
            raise ModelError("edge weights are positive and finite; mend the adjacency")
        if not self.directed and (matrix != matrix.T).nnz:
            if self.weighted:
                raise ModelError(
                    "the model reads undirected weighted edges, but the adjacency is not symmetric; "
                    "give each edge both ways with one weight"
                )
            matrix = sparse.csr_array(matrix + matrix.T)
            matrix.data[:] = 1
        matrix.sort_indices()
        return matrix

    def _hops(
        self, start: NDArray[np.float32], adjacency: sparse.csr_array, built: dict[str, sparse.csr_array]
    ) -> dict[int, NDArray[np.float32]]:
        """The hops that the network reads, each (N, width), by number; the others are dropped on the way."""
        if self._pre is None:
            return {0: start}
        tiles: dict[int, list[NDArray[np.float32]]] = {k: [] for k in sorted(self._read_hops)}
        for operator in self._pre.operators:
            matrix, current = _matrix(operator, adjacency, built), start
            for k in range(self._pre.steps + 1):
                current = _step(operator, matrix, current, start) if k else start
                if k in self._read_hops:
                    tiles[k].append(current)
        return {k: of_hop[0] if len(of_hop) == 1 else np.concatenate(of_hop, axis=1) for k, of_hop in tiles.items()}

    def _shown(self, adjacency: sparse.csr_array, built: dict[str, sparse.csr_array]) -> NDArray[np.float32] | None:
        """What label reuse adds to the inputs, (N, C): the training labels after some steps; None without it."""
        if self._label_steps is None:
            return None
        assert self._known is not None
        shown = np.zeros((adjacency.shape[0], len(self.class_names)), dtype=np.float32)
        shown[self._known] = 1.0
        (operator,) = channels("augmented")
        for _ in range(self._label_steps):
            shown = _step(operator, _matrix(operator, adjacency, built), shown, shown)
        return shown

    def _corrected(
        self, probabilities: NDArray[np.float32], operator: CorrectAndSmooth, matrix: sparse.csr_array
    ) -> NDArray[np.float32]:
        """Correct & Smooth for each of the repeats (S, N, C), then their mean (N, C)."""
        assert self._known is not None
        assert self._post is not None
        by_node = np.ascontiguousarray(probabilities.transpose(1, 0, 2))
        spread = correct_and_smooth(
            by_node,
            *self._known,
            self._post.steps,
            lambda before, start: _step(operator, matrix, before, start),
        )
        spread[spread.sum(axis=2) == 0.0] = 1.0
        mean: NDArray[np.float32] = (spread / spread.sum(axis=2, keepdims=True)).mean(axis=1)
        return mean

    def _transform(
        self,
        hops: Mapping[int, NDArray[np.float32]],
        shown: NDArray[np.float32] | None,
        adjacency: sparse.csr_array | None,
    ) -> NDArray[np.float32]:
        """Softmax output, block by block of rows; hops that the network does not read are fed as zeros.

        Returns:
            (N, C), or that of each repeat (S, N, C) for a design that corrects and smooths.
        """
        N, width = next(iter(hops.values())).shape
        blocks = []
        for first in range(0, N, BLOCK_ROWS):
            rows = slice(first, min(first + BLOCK_ROWS, N))
            stack = np.zeros((self._num_hops, rows.stop - first, width), dtype=np.float32)
            for k, hop in hops.items():
                stack[k] = hop[rows]
            inputs = {"hops": stack}
            if shown is not None:
                inputs["labels"] = shown[rows]
            if adjacency is not None:
                near = adjacency[rows].tocoo()
                inputs |= {
                    "neighbour_rows": near.row.astype(np.int64)[:, None],
                    "neighbours": near.col.astype(np.int64),
                    "neighbour_weights": near.data[:, None],
                }
            blocks.append(self._session.run(None, inputs)[0])
        joined: NDArray[np.float32] = np.concatenate(blocks, axis=-2)
        return joined


def _matrix(
    operator: GraphOperator, adjacency: sparse.csr_array, built: dict[str, sparse.csr_array]
) -> sparse.csr_array:
    key = operator.matrix_key
    if key not in built:
        built[key] = operator.matrix(adjacency)
    return built[key]


def _normalise(features: NDArray[np.float32], how: Mapping[str, Any]) -> None:
    """Normalise (N, F) features in place, with statistics from the training graph; row sums in float64."""
    kind = how["kind"]
    if kind == "standard":
        features -= np.asarray(how["mean"], dtype=np.float64).astype(np.float32)
        features /= np.asarray(how["scale"], dtype=np.float64).astype(np.float32)
    elif kind == "symmetric":
        _divide_rows(features, np.sqrt(np.abs(features).sum(axis=1, dtype=np.float64)))
        features /= np.asarray(how["scale"], dtype=np.float64).astype(np.float32)
    elif kind == "row":
        _divide_rows(features, np.abs(features).sum(axis=1, dtype=np.float64))
    elif kind == "l2":
        _divide_rows(features, np.sqrt(np.einsum("nf,nf->n", features, features, dtype=np.float64)))
    elif kind != "none":
        raise ModelError(f"unknown normalisation {kind!r}; this pasca knows row, symmetric, l2, standard and none")


def _divide_rows(features: NDArray[np.float32], divisor: NDArray[np.float64]) -> None:
    features /= np.where(divisor > 0.0, divisor, 1.0).astype(np.float32)[:, None]


def _repeats(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _and_more(names: Sequence[str]) -> str:
    return f", and {len(names) - 1} more" if len(names) > 1 else ""
