"""A reader of exported models that needs only numpy, scipy and onnxruntime.

    from pasca.runtime import RuntimeModel
    model = RuntimeModel.load("my-model")
    probabilities = model.predict_proba(adjacency, features)   # (N, C)

It imports neither torch nor the engines, so a machine that only predicts can do without them. `pasca.model` gives the
same probabilities from a Graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pasca.model_folder import (
    DESCRIPTION_FILE,
    ONNX_FILE,
    check_graph,
    known_labels,
    match_columns,
    read_description,
    structure_statistics,
)
from search_space.errors import InputError, ModelError
from search_space.graph_operators import CorrectAndSmooth, GraphOperator, channels
from search_space.graph_operators.correct_and_smooth import correct_and_smooth
from search_space.local_structure import local_structure

BLOCK_ROWS = 4096
"""Rows that go through the network together; bounds memory, not the result."""


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
        self._structure = structure_statistics(description)
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
        probabilities = self._transform(
            hops, self._shown(matrix, built), matrix if self._rows else None, self._counted(matrix)
        )
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

    def _counted(self, adjacency: sparse.csr_array) -> NDArray[np.float32] | None:
        """Local structure of all nodes, standardised as in the training, (N, 6); None for a design without."""
        if self._structure is None:
            return None
        columns = local_structure(adjacency)
        _normalise(columns, self._structure)
        return columns

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
        structure: NDArray[np.float32] | None,
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
            if structure is not None:
                inputs["structure"] = structure[rows]
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
