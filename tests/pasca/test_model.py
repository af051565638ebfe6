"""A model that comes back gives the same answer from every door, on every graph with the same features."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from engines.evaluation.inference import classify
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.recipe import Recipe
from engines.graph import Graph, Split, undirected
from pasca.export import export_design
from pasca.model import load_model
from pasca.model_folder import description_checksum, file_checksum
from pasca.runtime import RuntimeModel
from search_space.architecture import MESSAGES, Architecture
from search_space.errors import ConfigError, ModelError

DESIGN = "ppr0.1^2/weighted/mlp-2/augmented^2"
DESIGNS = (
    *(f"augmented^2/{message}/mlp-3/ppr0.2^2" for message in (*MESSAGES, "decay0.1")),
    "twochannel^2/concat/mlp-2/heat0.5^2",
    "augmented^2/mean/mlp-4/-@hidden=5,norm=layer,residual=off",
    "-/-/mlp-3/ppr0.1^2@dropout=0.1,lr=0.1,norm=layer",
    "augmented^2/adaptive/mlp-3/-@hidden=5,norm=batch",
    "twochannel_r0.25^1/none/mlp-1/-",
    "highpass_loops0^2/weighted/mlp-2/ppr0.1_r0.75^2",
    "-/-/mlp-2/-",
    "triangle^2/mean/mlp-1/triangle^1",
    "triangle^1/adaptive/mlp-2/augmented^3",
    "ppr0.1^3/none/mlp-2/-",
    "-/-/mlp-2/ppr0.1^2",
    "augmented^2/concat/mlp-2/ppr0.1^1@structure=counts",
)
BOUND = (
    "augmented^1/none/mlp-2/cs0.8^3",
    "heat0.5^1/concat/mlp-2/augmented^1@labels=1",
    "-/-/mlp-3/-@adjacency=rows",
    "ppr0.1^2/mean/mlp-1/cs0.5_loops0^2@labels=1,adjacency=rows",
    "-/-/mlp-2/-@adjacency=rows,structure=counts",
)
"""Designs that classify the graph that they were trained on and no other."""
NOTHING = np.zeros(0, np.int64)
NO_SPLIT = Split(NOTHING, NOTHING, NOTHING)


def without_labels(graph: Graph, **changes: Any) -> Graph:
    """The graph as somebody gives it to predict on."""
    N = changes.get("adjacency", graph.adjacency).shape[0]
    unknown = np.full(N, -1, dtype=np.int64)
    return replace(graph, **{"labels": unknown, "class_names": (), "split": NO_SPLIT, "node_ids": None, **changes})


def tables(N: int, edges: list[tuple[int, int]], features: list[tuple[float, ...]], labels: str = "") -> Graph:
    """A graph from written-out rows; columns are named f1, f2, ..."""
    sources, targets = np.asarray(edges).T
    adjacency, _, _ = undirected(sources, targets, N)
    matrix = np.asarray(features, dtype=np.float32)
    numbers = np.asarray([ord(label) - ord("a") for label in labels] or [-1] * N, dtype=np.int64)
    names = tuple(f"f{column + 1}" for column in range(matrix.shape[1]))
    return Graph("table", adjacency, matrix, numbers, ("a", "b"), NO_SPLIT, feature_names=names)


@pytest.mark.parametrize("normalise", ["row", "standard", "l2", "none"])
def test_a_trained_design_predicts_after_the_export_as_before(
    tmp_path: Path, named_graph: Graph, normalise: str
) -> None:
    """Dropout 0.8 while training must be off afterwards."""
    recipe = Recipe(hidden_width=8, dropout=0.8, input_dropout=0.2, max_epochs=6, normalise=normalise)
    evaluator = LocalEvaluator(named_graph, recipe=recipe, threads=1, memory_bytes=1 << 30)
    trained = evaluator.train(Architecture.parse("augmented^2/adaptive/mlp-3/ppr0.1^2"), [1, 2])
    before = evaluator.probabilities(trained)
    for repeat in (0, 1):
        folder = export_design(
            trained, named_graph, recipe, tmp_path / str(repeat), metrics={}, protocol={}, repeat=repeat
        )
        after = load_model(folder).predict(named_graph).probabilities
        np.testing.assert_allclose(after, before[repeat], atol=1e-6)


@pytest.mark.parametrize("design", BOUND)
def test_a_design_that_knows_its_graph_predicts_after_the_export_as_before(
    tmp_path: Path, named_graph: Graph, design: str
) -> None:
    recipe = Recipe(hidden_width=8, max_epochs=6)
    evaluator = LocalEvaluator(named_graph, recipe=recipe, threads=1, memory_bytes=1 << 30)
    trained = evaluator.train(Architecture.parse(design), [1, 2])
    before = evaluator.probabilities(trained)
    folder = export_design(trained, named_graph, recipe, tmp_path / "m", metrics={}, protocol={}, ensemble=True)
    model = load_model(folder)
    after = model.predict(without_labels(named_graph)).probabilities
    np.testing.assert_allclose(after, before.mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(model.predict(named_graph, memory="1MB").probabilities, after)
    known = json.loads((folder / "model.json").read_text())["known"]
    if model.design.needs_labels:
        assert known["nodes"] == named_graph.split.train.tolist(), "of no other nodes"
        assert f"the labels of its {len(known['nodes'])} training nodes" in (folder / "README.md").read_text()
    else:
        assert known is None


@pytest.mark.parametrize("design", BOUND)
def test_a_design_that_knows_its_graph_refuses_another(
    export: Callable[..., Path], named_graph: Graph, design: str
) -> None:
    folder = export(design, named_graph)
    fewer = named_graph.adjacency.tolil()
    fewer[0, 1] = fewer[1, 0] = 0
    other = sparse.csr_array(fewer)
    with pytest.raises(ModelError, match=r"the graph that it was trained on, and small has other edges; export a"):
        load_model(folder).predict(replace(named_graph, adjacency=other))
    with pytest.raises(ModelError, match=r"and the adjacency has other edges"):
        RuntimeModel.load(folder).predict_proba(other, named_graph.features)


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (None, r"KeyError\('structure'\)"),
        ({"kind": "standard", "mean": [0.0] * 6}, r"KeyError\('scale'\)"),
        ({"kind": "standard", "mean": [0.0] * 5, "scale": [1.0] * 6}, "structure.mean is one number for each of 6"),
        ({"kind": "standard", "mean": [0.0] * 6, "scale": [None] * 6}, "structure.scale is one number for each of 6"),
    ],
)
def test_a_model_without_the_figures_of_its_structure_is_refused(
    export: Callable[..., Path], named_graph: Graph, structure: Any, message: str
) -> None:
    folder = export("-/-/mlp-2/-@structure=counts", named_graph)
    edit(folder, True, structure=structure)
    for read in (load_model, RuntimeModel.load):
        with pytest.raises(ModelError, match=message):
            read(folder)


@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_comes_back_as_it_left(
    export: Callable[..., Path], make_trained: Callable[..., Any], named_graph: Graph, design: str
) -> None:
    trained = make_trained(design, named_graph)
    features = trained.normaliser.apply(named_graph.features)
    expected = classify(
        trained.design, trained.trained.network, named_graph.adjacency, features, structure=trained.structure
    )
    found = load_model(export(design, named_graph)).predict(named_graph)
    np.testing.assert_allclose(found.probabilities, expected[0], atol=1e-6)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0, atol=1e-6)
    assert found.probabilities.dtype == np.float32
    assert found.class_names == ("red", "green", "blue")
    assert found.labels.tolist() == [found.class_names[c] for c in found.probabilities.argmax(axis=1)]
    assert found.node_ids.tolist() == named_graph.original_ids().tolist()


def test_an_ensemble_is_the_mean_of_its_members(
    export: Callable[..., Path], make_trained: Callable[..., Any], named_graph: Graph
) -> None:
    trained = make_trained(DESIGN, named_graph)
    features = trained.normaliser.apply(named_graph.features)
    members = classify(trained.design, trained.trained.network, named_graph.adjacency, features)
    found = load_model(export(DESIGN, named_graph, ensemble=True)).predict(named_graph)
    np.testing.assert_allclose(found.probabilities, members.mean(axis=0), atol=1e-6)


def test_two_predictions_are_equal_to_the_byte(export: Callable[..., Path], named_graph: Graph) -> None:
    folder = export(DESIGN, named_graph)
    first, second, third = load_model(folder), load_model(folder), load_model(folder)
    expected = first.predict(named_graph).probabilities.tobytes()
    assert first.predict(named_graph).probabilities.tobytes() == expected
    assert second.predict(named_graph).probabilities.tobytes() == expected
    assert third.predict(without_labels(named_graph)).probabilities.tobytes() == expected


def test_a_memory_budget_changes_no_byte_and_is_refused_where_it_cannot_be_kept(
    export: Callable[..., Path], named_graph: Graph
) -> None:
    model = load_model(export(DESIGN, named_graph))
    expected = model.predict(named_graph).probabilities.tobytes()
    assert model.predict(named_graph, memory="1MB").probabilities.tobytes() == expected
    with pytest.raises(ConfigError, match=r"classifying 60 nodes .* but the memory budget is 0\.0 MB; raise it"):
        model.predict(named_graph, memory=1000)
    with pytest.raises(ConfigError, match="memory is a number of bytes"):
        model.predict(named_graph, memory="lots")


def test_a_model_moved_elsewhere_still_loads(export: Callable[..., Path], named_graph: Graph, tmp_path: Path) -> None:
    folder = export(DESIGN, named_graph)
    expected = load_model(folder).predict(named_graph).probabilities
    moved = shutil.move(folder, tmp_path / "elsewhere")
    np.testing.assert_array_equal(load_model(str(moved)).predict(named_graph).probabilities, expected)


def test_the_card_may_be_edited(export: Callable[..., Path], named_graph: Graph) -> None:
    folder = export(DESIGN, named_graph)
    (folder / "README.md").write_text("ours")
    load_model(folder)


# A grown graph


@pytest.mark.parametrize("normalise", ["row", "standard"])
@pytest.mark.parametrize("design", ["augmented^2/concat/mlp-2/ppr0.1^2", "triangle^1/mean/mlp-1/-"])
def test_nodes_keep_their_scores_when_the_graph_grows_elsewhere(
    export: Callable[..., Path], design: str, normalise: str
) -> None:
    path = [(i, i + 1) for i in range(5)]
    rows = [(1.0, 0.0), (1.0, 1.0), (2.0, 0.0), (0.0, 2.0), (0.0, 1.0), (1.0, 3.0)]
    model = load_model(export(design, tables(6, path, rows, "aaabbb"), normalise=normalise))
    before = model.predict(tables(6, path, rows)).probabilities
    grown = model.predict(tables(9, [*path, (6, 7)], [*rows, (5.0, 5.0), (4.0, 4.0), (9.0, 9.0)]))
    assert len(grown) == 9
    assert np.isfinite(grown.probabilities).all()
    np.testing.assert_allclose(grown.probabilities[:6], before, atol=1e-6)


@pytest.mark.parametrize(("design", "reach"), [("augmented^1/mean/mlp-2/ppr0.1^1", 2), ("ppr0.1^2/none/mlp-1/-", 2)])
def test_a_new_edge_changes_only_what_lies_within_the_steps_of_its_ends(
    export: Callable[..., Path], design: str, reach: int
) -> None:
    path = [(i, i + 1) for i in range(9)]
    rows = [(float(i), 1.0, float(i % 3)) for i in range(12)]
    model = load_model(export(design, tables(12, path, rows)))
    before = model.predict(tables(12, path, rows)).probabilities
    after = model.predict(tables(12, [*path, (0, 10)], rows)).probabilities
    changed = np.abs(after - before).max(axis=1) > 1e-6
    # distances from node 0 along the path, node 10 was isolated, node 11 still is
    near = np.asarray([*range(10), 0, 99]) <= reach
    assert (changed <= near).all()
    assert changed[[0, 10]].all()


def test_predictions_follow_renumbered_nodes(export: Callable[..., Path], named_graph: Graph) -> None:
    model = load_model(export(DESIGN, named_graph))
    order = np.random.default_rng(1).permutation(named_graph.num_nodes)
    adjacency = sparse.csr_array(named_graph.adjacency[order][:, order])
    adjacency.sort_indices()
    renumbered = without_labels(
        named_graph,
        adjacency=adjacency,
        features=np.ascontiguousarray(named_graph.features[order]),
        node_ids=named_graph.original_ids()[order],
    )
    before, after = model.predict(named_graph), model.predict(renumbered)
    assert after.node_ids.tolist() == before.node_ids[order].tolist()
    np.testing.assert_allclose(after.probabilities, before.probabilities[order], atol=1e-6)


# Feature columns


def test_moved_columns_are_found_by_name(export: Callable[..., Path], named_graph: Graph) -> None:
    model = load_model(export(DESIGN, named_graph, normalise="standard"))
    expected = model.predict(named_graph).probabilities
    order = [2, 0, 3, 1]
    moved = np.ascontiguousarray(named_graph.features[:, order])
    names = tuple(f"f{column + 1}" for column in order)
    for features in (moved, sparse.csr_array(moved)):
        graph = without_labels(named_graph, features=features, feature_names=names)
        np.testing.assert_array_equal(model.predict(graph).probabilities, expected)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("f1", "f3", "f4"), "small: feature 'f2' is missing; the model was trained on 4 features and found 3"),
        (("f1", "g", "f3", "h"), "small: feature 'f2' is missing, and 1 more"),
        (("f1", "f2", "f3", "f4", "g"), "small: feature 'g' was not among the 4 that .* trained on; remove it"),
        (("f1", "f2", "f3", "f1"), "features are matched by name, but small has the name 'f1' twice"),
        (None, "small: expected 4 features, found 2"),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_name(
    export: Callable[..., Path], named_graph: Graph, names: tuple[str, ...] | None, message: str
) -> None:
    model = load_model(export(DESIGN, named_graph))
    width = 2 if names is None else len(names)
    features = np.ones((named_graph.num_nodes, width), dtype=np.float32)
    for nodes in (None, [0]):
        with pytest.raises(ModelError, match=message):
            model.predict(without_labels(named_graph, features=features, feature_names=names), nodes)


def test_columns_are_taken_in_order_where_one_side_has_no_names(
    export: Callable[..., Path], named_graph: Graph
) -> None:
    model = load_model(export(DESIGN, named_graph))
    nameless = replace(named_graph, feature_names=None)
    expected = model.predict(named_graph).probabilities
    np.testing.assert_array_equal(model.predict(nameless).probabilities, expected)
    other = load_model(export(DESIGN, nameless, name="nameless"))
    assert other.feature_names is None
    np.testing.assert_array_equal(other.predict(named_graph).probabilities, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"directed": True}, "trained on undirected edges, but those of small are directed; .* directed=False"),
        ({"weighted": True}, "trained on unweighted edges, but those of small are weighted; .* weighted=False"),
    ],
)
def test_edges_of_another_kind_are_refused(
    export: Callable[..., Path], named_graph: Graph, change: dict[str, bool], message: str
) -> None:
    model = load_model(export(DESIGN, named_graph))
    with pytest.raises(ModelError, match=message):
        model.predict(replace(named_graph, **change))


@pytest.mark.parametrize(
    ("trained", "given", "message"),
    [
        (None, "degree", "trained on given features, but small has degree features made .*; .*features='FILE'"),
        ("identity", None, "trained on identity features made .*, but small has given features; .*features='identity'"),
    ],
)
def test_features_of_another_origin_are_refused_unless_names_match(
    export: Callable[..., Path], named_graph: Graph, trained: str | None, given: str | None, message: str
) -> None:
    nameless = replace(named_graph, feature_names=None)
    model = load_model(export(DESIGN, replace(nameless, made_features=trained)))
    with pytest.raises(ModelError, match=message):
        model.predict(replace(nameless, made_features=given))
    named = load_model(export(DESIGN, replace(named_graph, made_features=trained), name="named"))
    named.predict(replace(named_graph, made_features=given))


def test_features_fitted_to_one_graph_are_refused_on_another(export: Callable[..., Path], named_graph: Graph) -> None:
    graph = replace(named_graph, feature_names=None, made_features="svd")
    model = load_model(export(DESIGN, graph))
    model.predict(graph)
    fewer = graph.adjacency.tolil()
    fewer[0, 1] = fewer[1, 0] = 0
    with pytest.raises(ModelError, match=r"svd features, which belong to the graph .* small has other edges"):
        model.predict(replace(graph, adjacency=sparse.csr_array(fewer)))


def test_a_model_says_how_its_graphs_are_read(export: Callable[..., Path], named_graph: Graph) -> None:
    options = load_model(export(DESIGN, named_graph)).load_options
    assert options == {"directed": False, "weighted": False, "for_training": False}
    made = replace(named_graph, directed=True, weighted=True, made_features="degree")
    options = load_model(export(DESIGN, made, name="made")).load_options
    assert options == {"directed": True, "weighted": True, "for_training": False, "features": "degree"}


# Some nodes only


@pytest.mark.parametrize("design", [*DESIGNS, *BOUND])
def test_some_nodes_get_the_answer_of_the_whole_graph(
    export: Callable[..., Path], named_graph: Graph, design: str
) -> None:
    model = load_model(export(design, named_graph, ensemble=True))
    whole = model.predict(named_graph)
    for nodes in ([59, 3, 3, 20], [58], list(range(60))):
        some = model.predict(named_graph, nodes)
        assert some.node_ids.tolist() == whole.node_ids[nodes].tolist()
        np.testing.assert_allclose(some.probabilities, whole.probabilities[nodes], atol=1e-6)
        assert some.labels.tolist() == whole.labels[nodes].tolist()


def test_directed_edges_reach_in_their_direction(export: Callable[..., Path], named_graph: Graph) -> None:
    adjacency = sparse.csr_array(sparse.triu(named_graph.adjacency, 1))
    adjacency.sort_indices()
    graph = replace(named_graph, adjacency=adjacency, directed=True)
    model = load_model(export("augmented^2/mean/mlp-2/triangle^1", graph))
    whole = model.predict(graph).probabilities
    for node in range(0, 60, 7):
        np.testing.assert_allclose(model.predict(graph, [node]).probabilities, whole[[node]], atol=1e-6)


class Watched(np.ndarray[Any, np.dtype[np.float32]]):
    """Features that remember which rows were read."""

    def __getitem__(self, key: Any) -> Any:
        rows_read.append(key)
        return np.asarray(self)[key]


rows_read: list[Any] = []


def test_features_are_read_only_in_the_neighbourhood(export: Callable[..., Path]) -> None:
    """On a path, three steps from node 10 reach nodes 7 to 13."""
    path = [(i, i + 1) for i in range(19)]
    graph = tables(20, path, [(float(i), 1.0) for i in range(20)])
    model = load_model(export("augmented^2/mean/mlp-2/ppr0.1^1", graph))
    expected = model.predict(graph).probabilities[10]
    rows_read.clear()
    watched = replace(graph, features=graph.features.view(Watched))
    found = model.predict(watched, [10]).probabilities[0]
    assert [np.asarray(rows).tolist() for rows in rows_read] == [list(range(7, 14))]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], "at least one node number"),
        ([[0]], r"got int64 of shape \(1, 1\)"),
        ([0.5], "got float64"),
        (["a"], "got <U1"),
        ([60], "has nodes 0 to 59, got 60"),
        ([0, -1], "got -1"),
    ],
)
def test_nodes_that_do_not_exist_are_refused(
    export: Callable[..., Path], named_graph: Graph, nodes: list[Any], message: str
) -> None:
    model = load_model(export(DESIGN, named_graph))
    with pytest.raises(ModelError, match=message):
        model.predict(named_graph, nodes)


# Folders that are not, or no longer, a model


def edit(folder: Path, checksum: bool, **changes: Any) -> None:
    """Change fields of model.json; None removes one."""
    description = {**json.loads((folder / "model.json").read_text()), **changes}
    description = {key: value for key, value in description.items() if value is not None}
    if checksum:
        description["checksum"] = description_checksum(description)
    (folder / "model.json").write_text(json.dumps(description))


def forge(folder: Path, name: str, content: bytes) -> None:
    """Exchange a file for another one, with the checksums that it would have had."""
    (folder / name).write_bytes(content)
    files = json.loads((folder / "model.json").read_text())["files"]
    edit(folder, True, files={**files, name: file_checksum(folder / name)})


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: flip(folder / "weights.safetensors"), "weights.safetensors was changed after the export"),
        (lambda folder: flip(folder / "model.onnx"), "model.onnx was changed after the export"),
        (lambda folder: edit(folder, False, classes=["x", "y", "z"]), "model.json was changed after the export"),
        (lambda folder: (folder / "weights.safetensors").unlink(), "weights.safetensors is missing"),
        (lambda folder: (folder / "model.onnx").unlink(), "model.onnx is missing"),
        (lambda folder: (folder / "model.json").unlink(), "is not a model folder: it has no model.json"),
        (lambda folder: (folder / "model.json").write_text('{"format": '), "is damaged, it is not JSON"),
        (lambda folder: (folder / "model.json").write_bytes(b"\xff\xfe\x00"), "is damaged, it is not JSON"),
        (lambda folder: (folder / "model.json").write_text("[]"), "does not describe a model of pasca"),
        (lambda folder: edit(folder, True, format="other"), "its format is not 'pasca-model'"),
        (lambda folder: edit(folder, True, format_version=4), "version 4, this pasca reads up to 3; use a newer pasca"),
        (lambda folder: edit(folder, True, format_version=None), "version None"),
        (lambda folder: edit(folder, True, recipe=None), r"lacks what a model needs \(KeyError\('recipe'\)\)"),
        (lambda folder: edit(folder, True, design="x"), "lacks what a model needs .*a design has four parts"),
        (lambda folder: edit(folder, True, classes=["only"]), "lacks what a model needs .*size mismatch"),
        (lambda folder: edit(folder, True, files={}), "weights.safetensors was changed"),
        (
            lambda folder: edit(folder, True, repeats={"count": 10**12}),
            "repeats is 1000000000000, but no weight has more than",
        ),
        (lambda folder: edit(folder, True, classes=["x"] * 10**6), "classes is 1000000, but no weight has more than"),
        (lambda folder: edit(folder, True, features=[]), "lacks what a model needs"),
        (lambda folder: forge(folder, "weights.safetensors", b"\x08" + bytes(40)), "SafetensorError"),
    ],
)
def test_a_folder_that_is_not_as_it_was_exported_is_refused_in_one_line(
    export: Callable[..., Path], named_graph: Graph, damage: Callable[[Path], None], message: str
) -> None:
    folder = export(DESIGN, named_graph)
    damage(folder)
    with pytest.raises(ModelError, match=message) as caught:
        load_model(folder)
    assert re.match(r"[^\n]*\Z", str(caught.value))
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"nodes": [60], "classes": [0]}, "known.nodes are not numbers from 0 to 59, one for each node"),
        ({"nodes": [1, 2], "classes": [0, 3]}, "known.classes are not numbers from 0 to 2"),
        ({"nodes": [1, 2], "classes": [0]}, "known.classes are not"),
        ({"nodes": [[1]], "classes": [[0]]}, "known.nodes are not"),
        ({"nodes": ["a"], "classes": [0]}, "invalid literal"),
        ({"classes": [0]}, "KeyError"),
    ],
)
def test_labels_that_are_not_those_of_nodes_are_refused_by_both_readers(
    export: Callable[..., Path], named_graph: Graph, known: Any, message: str
) -> None:
    folder = export(BOUND[0], named_graph)
    edit(folder, True, known=known)
    for read in (load_model, RuntimeModel.load):
        with pytest.raises(ModelError, match=message):
            read(folder)


def test_a_model_whose_labels_are_gone_is_refused(export: Callable[..., Path], named_graph: Graph) -> None:
    folder = export(BOUND[1], named_graph)
    edit(folder, True, known=None)
    with pytest.raises(ModelError, match="needs labels of training nodes, and there are none"):
        load_model(folder)
    with pytest.raises(ModelError, match="needs labels of training nodes, and there are none"):
        RuntimeModel.load(folder)


def test_the_runtime_refuses_a_network_that_onnx_runtime_does_not_take(
    export: Callable[..., Path], named_graph: Graph
) -> None:
    folder = export(DESIGN, named_graph)
    forge(folder, "model.onnx", b"no network")
    with pytest.raises(ModelError, match=r"lacks what a model needs .*model\.onnx"):
        RuntimeModel.load(folder)


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_folder_without_a_model_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=f"{name} is not a model folder"):
        load_model(tmp_path / name)
