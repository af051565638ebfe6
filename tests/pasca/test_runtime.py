"""The reader without torch gives the same probabilities, and really does without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from engines.graph import Graph
from pasca.model import load_model
from pasca.runtime import RuntimeModel
from search_space.architecture import MESSAGES
from search_space.errors import ModelError

DESIGN = "ppr0.1^2/weighted/mlp-2/augmented^2"
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "design",
    [
        *(f"augmented^2/{message}/mlp-3/ppr0.2^2" for message in (*MESSAGES, "decay0.1")),
        "twochannel^2/concat/mlp-2/heat0.5^2",
        "augmented^2/mean/mlp-4/-@hidden=5,norm=layer,residual=off",
        "-/-/mlp-3/ppr0.1^2@dropout=0.1,lr=0.1,norm=layer",
        "augmented^2/adaptive/mlp-3/-@hidden=5,norm=batch",
        "twochannel_r0.25^1/none/mlp-1/-",
        "highpass_loops0^2/weighted/mlp-2/ppr0.1_r0.75^2",
        "-/-/mlp-2/-",
        "triangle^2/mean/mlp-1/triangle^1",
        "ppr0.1^3/none/mlp-2/-",
        "-/-/mlp-2/ppr0.1^2",
        "augmented^1/none/mlp-2/cs0.8^3",
        "-/-/mlp-1/-@labels=2",
        "heat0.5^1/concat/mlp-2/augmented^1@labels=1",
        "-/-/mlp-3/-@adjacency=rows",
        "ppr0.1^2/mean/mlp-1/cs0.5_loops0^2@labels=1,adjacency=rows",
        "augmented^2/concat/mlp-2/ppr0.1^1@structure=counts",
        "-/-/mlp-1/-@labels=1,adjacency=rows,structure=counts",
    ],
)
@pytest.mark.parametrize("normalise", ["row", "standard"])
def test_every_design_gives_the_probabilities_of_the_model(
    export: Callable[..., Path], named_graph: Graph, design: str, normalise: str
) -> None:
    folder = export(design, named_graph, normalise=normalise, ensemble=True)
    expected = load_model(folder).predict(named_graph)
    model = RuntimeModel.load(folder)
    found = model.predict_proba(named_graph.adjacency, named_graph.features)
    np.testing.assert_allclose(found, expected.probabilities, atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    assert model.predict(named_graph.adjacency, named_graph.features).tolist() == expected.labels.tolist()


@pytest.mark.parametrize("normalise", ["l2", "none"])
def test_features_are_normalised_as_in_training(
    export: Callable[..., Path], named_graph: Graph, normalise: str
) -> None:
    features = named_graph.features.copy()
    features[3] = 0.0
    graph = replace(named_graph, features=features)
    folder = export(DESIGN, graph, normalise=normalise)
    expected = load_model(folder).predict(graph).probabilities
    for given in (features, sparse.csr_array(features), features.astype(np.float64)):
        found = RuntimeModel.load(folder).predict_proba(graph.adjacency, given)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_more_nodes_than_a_block_of_rows_change_nothing(
    export: Callable[..., Path], named_graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = RuntimeModel.load(export(DESIGN, named_graph))
    expected = model.predict_proba(named_graph.adjacency, named_graph.features)
    for rows in (1, 7):
        monkeypatch.setattr("pasca.runtime.BLOCK_ROWS", rows)
        found = model.predict_proba(named_graph.adjacency, named_graph.features)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_it_works_where_neither_torch_nor_the_engines_can_be_imported(
    export: Callable[..., Path], named_graph: Graph, tmp_path: Path
) -> None:
    folder = export("ppr0.1^2/adaptive/mlp-3/triangle^1", named_graph)
    np.savez(
        tmp_path / "given.npz",
        features=named_graph.features,
        indptr=named_graph.adjacency.indptr,
        indices=named_graph.adjacency.indices,
    )
    code = """
import sys
closed = {"torch", "numba", "sklearn", "engines", "onnx", "safetensors", "pyarrow", "optuna", "botorch", "mpi4py"}
class Closed:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in closed:
            raise ImportError(name)
sys.meta_path.insert(0, Closed())
import numpy as np
from scipy import sparse
from pasca.runtime import RuntimeModel
given = np.load(sys.argv[2])
ones = np.ones(given["indices"].size, dtype=np.float32)
N = given["features"].shape[0]
adjacency = sparse.csr_array((ones, given["indices"], given["indptr"]), shape=(N, N))
np.save(sys.argv[3], RuntimeModel.load(sys.argv[1]).predict_proba(adjacency, given["features"]))
assert not closed & {name.split(".")[0] for name in sys.modules}
"""
    command = [sys.executable, "-c", code, str(folder), str(tmp_path / "given.npz"), str(tmp_path / "found.npy")]
    subprocess.run(command, check=True, timeout=120, cwd=ROOT)
    expected = load_model(folder).predict(named_graph).probabilities
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), expected, atol=1e-5)


def test_an_adjacency_is_read_as_the_training_graph_was(export: Callable[..., Path], named_graph: Graph) -> None:
    """One arc for an edge, repeated entries, values other than one and self-loops mean the same undirected graph."""
    model = RuntimeModel.load(export("triangle^1/mean/mlp-2/augmented^2", named_graph))
    expected = model.predict_proba(named_graph.adjacency, named_graph.features)
    half = sparse.coo_array(sparse.triu(named_graph.adjacency, 1))
    row, col = np.concatenate((half.row, half.row[:9], [4])), np.concatenate((half.col, half.col[:9], [4]))
    for kind in (sparse.coo_array, sparse.coo_matrix):
        loose = kind((np.full(row.size, 7), (row, col)), shape=half.shape)
        np.testing.assert_array_equal(model.predict_proba(loose, named_graph.features), expected)
    assert loose.data.tolist() == [7] * row.size, "what is given is not modified"


def test_directed_and_weighted_edges_keep_their_direction_and_weight(
    export: Callable[..., Path], named_graph: Graph
) -> None:
    adjacency = sparse.csr_array(sparse.triu(named_graph.adjacency, 1))
    adjacency.data = np.linspace(0.5, 2.0, adjacency.nnz, dtype=np.float32)
    adjacency.sort_indices()
    graph = replace(named_graph, adjacency=adjacency, directed=True, weighted=True)
    folder = export(DESIGN, graph)
    found = RuntimeModel.load(folder).predict_proba(adjacency, graph.features)
    np.testing.assert_allclose(found, load_model(folder).predict(graph).probabilities, atol=1e-5)


def test_columns_are_matched_by_name(export: Callable[..., Path], named_graph: Graph) -> None:
    model = RuntimeModel.load(export(DESIGN, named_graph, normalise="standard"))
    expected = model.predict_proba(named_graph.adjacency, named_graph.features)
    order = [3, 0, 1, 2]
    found = model.predict_proba(
        named_graph.adjacency, named_graph.features[:, order], feature_names=[f"f{column + 1}" for column in order]
    )
    np.testing.assert_array_equal(found, expected)


def wrong(**changes: Any) -> dict[str, Any]:
    return changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (wrong(features=np.ones((60, 2))), "expected 4 features, found 2"),
        (wrong(features=np.ones((59, 4))), "expected 60 rows, found shape"),
        (wrong(features=np.ones(60)), r"found shape \(60,\)"),
        (wrong(features=np.full((60, 4), np.nan)), "NaN, infinite or past float32"),
        (wrong(features=np.full((60, 4), 1e300)), "NaN, infinite or past float32"),
        (wrong(feature_names=["f1", "f2", "f3"]), "4 columns but 3 names"),
        (wrong(feature_names=["f1", "f2", "f3", "g"]), "feature 'f4' is missing"),
        (wrong(adjacency=sparse.csr_array((60, 59))), r"square sparse matrix .* got shape \(60, 59\)"),
        (wrong(adjacency=np.eye(60)), "square sparse matrix"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    export: Callable[..., Path], named_graph: Graph, changes: dict[str, Any], message: str
) -> None:
    model = RuntimeModel.load(export(DESIGN, named_graph))
    given = {"adjacency": named_graph.adjacency, "features": named_graph.features, **changes}
    with pytest.raises(ModelError, match=message):
        model.predict_proba(**given)


@pytest.mark.parametrize(("values", "message"), [([1.0, 2.0], "not symmetric"), ([-1.0, -1.0], "positive and finite")])
def test_weights_that_do_not_fit_are_refused(
    export: Callable[..., Path], named_graph: Graph, values: list[float], message: str
) -> None:
    model = RuntimeModel.load(export(DESIGN, replace(named_graph, weighted=True)))
    adjacency = sparse.coo_array((values, ([0, 1], [1, 0])), shape=(60, 60))
    with pytest.raises(ModelError, match=message):
        model.predict_proba(adjacency, named_graph.features)


def test_an_edited_folder_is_refused(export: Callable[..., Path], named_graph: Graph) -> None:
    folder = export(DESIGN, named_graph)
    with (folder / "model.onnx").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(ModelError, match=r"model.onnx was changed after the export"):
        RuntimeModel.load(folder)
