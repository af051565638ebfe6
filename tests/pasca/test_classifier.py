"""PascaClassifier keeps scikit-learn's manner, and what it predicts is the exported model's answer."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

import pasca
from engines.graph import Graph, Split, undirected
from pasca.classifier import PascaClassifier
from pasca.model import load_model
from search_space.errors import ConfigError, DesignError, GraphError, ModelError

FAST = {"hidden_width": 8, "max_epochs": 60, "learning_rate": 0.1, "normalise": "none"}


@pytest.fixture
def communities() -> Graph:
    """Three communities with noisy features."""
    rng = np.random.default_rng(0)
    N = 90
    labels = np.arange(N) % 3
    one, other = rng.integers(N, size=(2, 12 * N))
    kept = (labels[one] == labels[other]) | (rng.random(one.size) < 0.1)
    adjacency, _, _ = undirected(one[kept], other[kept], N)
    features = (rng.normal(size=(N, 5)) + np.eye(5)[labels]).astype(np.float32)
    order = rng.permutation(N)
    split = Split(order[:15], order[15:45], order[45:])
    return Graph("communities", adjacency, features, labels.astype(np.int64), ("a", "b", "c"), split)


def classifier(**parameters: Any) -> PascaClassifier:
    return PascaClassifier(**{"design": "SGC", "recipe": FAST, "threads": 1, **parameters})


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_estimators_unfitted,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_mixin_order,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_set_params,
        estimator_checks.check_valid_tag_types,
    ],
)
def test_the_parts_of_check_estimator_that_need_no_table_pass(check: Callable[[str, Any], None]) -> None:
    check("PascaClassifier", PascaClassifier())


def test_parameters_have_defaults_of_plain_types() -> None:
    estimator_checks.check_parameters_default_constructible("PascaClassifier", PascaClassifier())
    assert is_classifier(PascaClassifier())


def test_fitting_returns_the_estimator_and_changes_no_parameter(communities: Graph) -> None:
    estimator = classifier()
    before = estimator.get_params()
    assert estimator.fit(communities) is estimator
    assert estimator.get_params() == before
    assert estimator.classes_.tolist() == ["a", "b", "c"]
    assert estimator.n_features_in_ == 5
    assert not hasattr(estimator, "feature_names_in_")


def test_it_learns_and_scores_on_test_nodes(communities: Graph) -> None:
    estimator = classifier().fit(communities)
    assert estimator.score(communities) > 0.8, "neighbours of a node share its class"
    predicted, test = estimator.predict(communities), communities.split.test
    truth = np.asarray(communities.class_names)[communities.labels]
    assert estimator.score(communities) == pytest.approx((predicted == truth)[test].mean())
    assert estimator.score(communities, nodes=np.arange(9)) == pytest.approx((predicted == truth)[:9].mean())


def test_predictions_are_those_of_the_model(communities: Graph) -> None:
    estimator = classifier().fit(communities)
    found = estimator.model_.predict(communities)
    np.testing.assert_array_equal(estimator.predict_proba(communities), found.probabilities)
    np.testing.assert_array_equal(estimator.predict(communities), found.labels)
    np.testing.assert_allclose(estimator.predict_proba(communities, [7, 3]), found.probabilities[[7, 3]], atol=1e-6)


def test_an_exported_classifier_predicts_the_same(communities: Graph, tmp_path: Path) -> None:
    estimator = classifier(ensemble=True).fit(communities)
    model = load_model(estimator.export(tmp_path / "model"))
    np.testing.assert_array_equal(model.predict(communities).probabilities, estimator.predict_proba(communities))
    assert model.description["protocol"]["test labels"] == "not read"


def test_a_pickled_classifier_predicts_the_same(communities: Graph) -> None:
    estimator = classifier().fit(communities)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict_proba(communities), estimator.predict_proba(communities))


def test_the_same_random_state_gives_the_same_model(communities: Graph) -> None:
    def probabilities(random_state: Any) -> Any:
        return classifier(random_state=random_state).fit(communities).predict_proba(communities)

    np.testing.assert_array_equal(probabilities(3), probabilities(3))
    assert (probabilities(3) != probabilities(4)).any()
    first, second = (probabilities(np.random.RandomState(5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    state = np.random.RandomState(5)
    assert (probabilities(state) != probabilities(state)).any(), "a state moves on between two fits"


def test_a_clone_fits_alike(communities: Graph) -> None:
    estimator = classifier().fit(communities)
    again = clone(estimator).fit(communities)
    np.testing.assert_array_equal(again.predict_proba(communities), estimator.predict_proba(communities))


def test_test_labels_have_no_part_in_fitting(communities: Graph) -> None:
    labels = communities.labels.copy()
    labels[communities.split.test] = (labels[communities.split.test] + 1) % 3
    other = replace(communities, labels=labels)
    np.testing.assert_array_equal(
        classifier().fit(other).predict_proba(communities), classifier().fit(communities).predict_proba(communities)
    )


@pytest.mark.slow
def test_a_search_finds_a_design_and_leaves_no_files(
    communities: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("PASCA_CACHE", str(tmp_path / "cache"))
    estimator = classifier(design="search", evaluations=3, num_repeats=1).fit(communities)
    assert estimator.score(communities) > 0.5
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "cache"] == []


def test_classes_are_compared_by_name_when_scoring(communities: Graph) -> None:
    """The other graph numbers its classes the other way round."""
    estimator = classifier().fit(communities)
    renamed = replace(communities, labels=2 - communities.labels, class_names=("c", "b", "a"))
    assert estimator.score(renamed) == estimator.score(communities)


def test_the_metric_of_the_recipe_scores(communities: Graph) -> None:
    estimator = classifier(recipe={**FAST, "metric": "macro-f1"}).fit(communities)
    truth, predicted = (
        communities.labels[communities.split.test],
        estimator.predict(communities)[communities.split.test],
    )
    from sklearn.metrics import f1_score

    expected = f1_score(np.asarray(["a", "b", "c"])[truth], predicted, average="macro")
    assert estimator.score(communities) == pytest.approx(expected)


def test_a_later_fit_forgets_the_names_of_an_earlier_one(communities: Graph) -> None:
    named = replace(communities, feature_names=("v", "w", "x", "y", "z"))
    estimator = classifier().fit(named)
    assert estimator.feature_names_in_.tolist() == ["v", "w", "x", "y", "z"]
    assert not hasattr(estimator.fit(communities), "feature_names_in_")


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score", "export"])
def test_nothing_works_before_fitting(communities: Graph, method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(classifier(), method)(communities)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"design": "SGG"}, DesignError, "unknown design 'SGG'"),
        ({"recipe": {"epochs": 3}}, ConfigError, "unknown field 'epochs'"),
        ({"num_repeats": 0}, ConfigError, "num_repeats must be a whole number of at least 1, got 0"),
        ({"device": "tpu"}, ConfigError, "device"),
    ],
)
def test_a_parameter_without_a_legal_value_is_refused_by_fit(
    communities: Graph, parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        classifier(**parameters).fit(communities)


def test_what_is_not_a_graph_is_refused(communities: Graph) -> None:
    with pytest.raises(GraphError, match=r"takes a pasca Graph, .* got ndarray"):
        classifier().fit(communities.features)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="y must be None"):
        classifier().fit(communities, communities.labels)  # type: ignore[arg-type]


def test_nodes_that_cannot_be_scored_are_refused(communities: Graph) -> None:
    estimator = classifier().fit(communities)
    nothing = np.zeros(0, np.int64)
    untested = communities.with_split(Split(communities.split.train, communities.split.validation, nothing))
    with pytest.raises(GraphError, match=r"test part .* is empty; give nodes="):
        estimator.score(untested)
    labels = communities.labels.copy()
    labels[4] = -1
    unlabelled = replace(communities, labels=labels, split=Split(nothing, nothing, nothing))
    with pytest.raises(GraphError, match="node 4 of communities has no label"):
        estimator.score(unlabelled, nodes=np.asarray([3, 4]))
    other = replace(communities, class_names=("a", "b", "new"))
    with pytest.raises(GraphError, match=r"knows \(a, b, c\), but node 2 of communities has the label 'new'"):
        estimator.score(other, nodes=np.asarray([0, 2]))
    with pytest.raises(ModelError, match="expected 5 features, found 3"):
        estimator.predict(replace(communities, features=np.ones((90, 3), np.float32)))


def test_it_is_a_public_name() -> None:
    assert pasca.PascaClassifier is PascaClassifier
