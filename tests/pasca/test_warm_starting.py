from pathlib import Path
from typing import Any

import pytest

import pasca
from engines.graph import Graph
from engines.trial import Outcome
from pasca.manifest import data_statement
from pasca.warm_starting import similarity, spread_out, warm_designs
from search_space.architecture import Architecture
from search_space.errors import RunError
from search_space.space import SearchSpace

SMALL = {"k_pre": [0, 1, 2, 3], "pre_aggregator": ["augmented"], "message": ["mean"], "k_trans": [1, 2], "k_post": [0]}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASCA_CACHE", str(tmp_path / "cache"))


def statement(**changes: Any) -> dict[str, Any]:
    stated = {"num_nodes": 2708, "adjacency_entries": 10556, "num_features": 1433, "num_classes": 7}
    return {**stated, "split": {"train": 140}, "source": "cora", **changes}


def search(graph: Graph, run: str, least: int = 0) -> None:
    """Every design with at least so many steps is on the front; the others are worse and slower."""

    def evaluate(design: Architecture) -> Outcome:
        good = design.k_pre >= least
        seconds = 1.0 + design.k_pre + 10 * design.k_trans + (0 if good else 100)
        return Outcome({"val_error": 1.0 / seconds if good else 1.0, "inference_seconds": seconds})

    pasca.search(graph, evaluator=evaluate, space=SMALL, searcher="random", retrain=0, run=run, evaluations=20)


def test_a_graph_is_most_similar_to_itself_and_size_makes_a_difference() -> None:
    assert similarity(statement(), statement()) == 1.0
    twice = similarity(statement(), statement(num_nodes=5416, adjacency_entries=21112))
    # By hand: one of five logarithms differs by log 2, and the mean degree hardly.
    assert twice == pytest.approx(0.733, abs=2e-3)
    assert similarity(statement(), statement(num_nodes=10**6)) < twice
    assert similarity(statement(num_classes=2), statement()) == similarity(statement(), statement(num_classes=2))


def test_places_are_spread_from_the_ends() -> None:
    assert spread_out(0) == []
    assert spread_out(1) == [0]
    assert spread_out(5) == [0, 4, 2, 1, 3]


def test_designs_come_from_the_front_in_turns(named_graph: Graph) -> None:
    search(named_graph, "one", least=2)
    search(named_graph, "two", least=3)
    found = warm_designs(["one", "two"], data_statement(named_graph, "g"), SearchSpace.paper(), 10)
    assert [(str(warm.design), warm.run) for warm in found] == [
        ("augmented^3/mean/mlp-2/-", "one"),
        ("augmented^2/mean/mlp-1/-", "one"),
        ("augmented^3/mean/mlp-1/-", "two"),
        ("augmented^2/mean/mlp-2/-", "one"),
    ]
    assert {warm.similarity for warm in found} == {1.0}
    assert warm_designs(["one", "two"], data_statement(named_graph, "g"), SearchSpace.paper(), 1) == found[:1]


def test_designs_outside_the_space_are_passed_over(named_graph: Graph) -> None:
    search(named_graph, "one")
    found = warm_designs(["one"], data_statement(named_graph, "g"), SearchSpace.paper(k_pre=[1], k_trans=[2]), 5)
    assert [str(warm.design) for warm in found] == ["augmented^1/mean/mlp-2/-"]


def test_a_run_on_a_graph_that_is_too_different_is_refused_with_its_similarity(named_graph: Graph) -> None:
    search(named_graph, "one")
    with pytest.raises(RunError, match=r"similarity 0.3 or more, got one 0\.\d\d; name other runs, or none"):
        warm_designs(["one"], statement(num_nodes=10**8), SearchSpace.paper(), 5)


def test_a_search_tries_them_after_the_classics_and_a_resumed_one_keeps_them(named_graph: Graph) -> None:
    search(named_graph, "one")

    def evaluate(design: Architecture) -> Outcome:
        return Outcome({"val_error": 0.5, "inference_seconds": 1.0 + design.k_pre})

    settings: dict[str, Any] = {"evaluator": evaluate, "retrain": 0, "run": "two", "num_initial": 12}
    study = pasca.search(named_graph, warm_start="one", evaluations=10, **settings)
    wanted = [str(warm.design) for warm in warm_designs(["one"], study.manifest["data"], SearchSpace.paper(), 3)]
    assert [one["design"] for one in study.manifest["warm_start"]] == wanted
    (tmp_run := Path("results/one")).rename(tmp_run.with_name("gone"))
    study = pasca.search(named_graph, evaluations=12, resume=True, **settings)
    tried = [str(trial.design) for trial in study.history]
    first = tried.index(wanted[0])
    assert tried[first : first + len(wanted)] == wanted
    with pytest.raises(RunError, match="decided when a run begins"):
        pasca.search(named_graph, evaluations=13, resume=True, warm_start="gone", **settings)


def test_a_run_without_a_graph_is_refused() -> None:
    pasca.search(
        evaluator=lambda design: Outcome({"val_error": 0.5, "inference_seconds": 1.0}),
        space=SMALL,
        searcher="random",
        retrain=0,
        run="own",
        evaluations=3,
    )
    with pytest.raises(RunError, match="the data 'custom' has none; name runs of a search on a graph"):
        warm_designs(["own"], statement(), SearchSpace.paper(), 5)
