"""`--space extended` from end to end: settings, record, resumption, front, and what is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pasca
from engines.graph import Graph
from engines.trial import Outcome
from pasca.config import RunConfig
from pasca.effects import recorded_space
from pasca.manifest import read_manifest
from pasca.problems import make_problem
from pasca.progress import Silence
from pasca.ranks import Ranks
from pasca.results import Study
from search_space.architecture import Architecture
from search_space.errors import ConfigError, RunError, SpaceError

PART: dict[str, Any] = {
    "base": "extended",
    "k_pre": [0, 1],
    "pre_kind": ["augmented", "heat", "twochannel"],
    "pre_step": 0.5,
    "pre_exponent": [0.0, 0.5],
    "pre_loops": 1.0,
    "message": ["mean", "jk"],
    "k_trans": [1, 2],
    "hidden_width": [8, 128],
    "norm": ["none", "layer"],
    "k_post": [0, 1],
    "post_kind": ["augmented", "cs"],
    "normalise": ["row", "symmetric", "none"],
    "label_steps": [0, 1],
    "adjacency": ["none", "rows"],
    "post_exponent": 0.5,
    "post_loops": 1.0,
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASCA_CACHE", str(tmp_path / "cache"))


def cost(design: Architecture) -> Outcome:
    seconds = 0.001 * (1 + design.k_pre + 3 * design.k_trans + (design.hidden_width or 128) / 64)
    return Outcome({"val_error": 0.5 / (1 + seconds), "inference_seconds": seconds}, {"val_error": 1e-4})


def test_a_run_is_recorded_resumed_and_read_again_with_its_space() -> None:
    first = pasca.search(
        evaluator=cost, space={"base": "extended"}, evaluations=4, num_initial=3, run="wide", retrain=0
    )
    asked = [str(trial.design) for trial in first.history]
    longer = pasca.search(evaluator=cost, evaluations=5, run="wide", resume=True)
    again = [str(trial.design) for trial in Study.open("wide").history]
    whole = pasca.search(
        evaluator=cost, space={"base": "extended"}, evaluations=5, num_initial=3, run="at-once", retrain=0
    )
    assert again[:4] == asked
    assert again == [str(trial.design) for trial in longer.history] == [str(trial.design) for trial in whole.history]
    manifest = read_manifest(Path("results/wide"))
    assert manifest["identity"]["space"]["base"] == "extended"
    assert "not enumerated" in manifest["searcher"]["candidates"]
    with pytest.raises(RunError, match="too many to list"):
        recorded_space(manifest)


def test_pascas_own_evaluator_trains_designs_of_the_extended_space(named_graph: Graph) -> None:
    study = pasca.search(
        named_graph,
        space=PART,
        recipe={"max_epochs": 4},
        repeats=2,
        evaluations=9,
        num_initial=3,
        run="trained",
        retrain=0,
        threads=1,
    )
    assert len(study.history.complete) == 9
    assert all(trial.details["suggestion"]["method"] for trial in study.history)
    assert study.front().rows


def test_the_papers_space_is_the_default_and_its_record_says_no_base(named_graph: Graph) -> None:
    config = RunConfig(space={"k_pre": [0], "k_post": [0], "k_trans": [1]}, threads=1)
    for space in (config.space, {"base": "paper", **config.space}):
        settled = config.with_settings({"space": space})
        problem = make_problem(settled, graph=named_graph, evaluator=None, space=None, resumed=None, progress=Silence())
        assert len(problem.space) == 1
        assert "base" not in problem.identity["space"]


def test_a_base_that_does_not_exist_is_refused_with_what_does() -> None:
    with pytest.raises(SpaceError, match="unknown base 'wide' of a search space; choose from: paper, extended"):
        pasca.search(evaluator=cost, space={"base": "wide"}, run="none")


def test_ranks_that_share_a_design_know_the_papers_space_alone() -> None:
    class Alone:
        size = 4

    config = RunConfig(space={"base": "extended"}, ranks_per_evaluator=2)
    with pytest.raises(ConfigError, match="know the paper's space, not 'extended'"):
        Ranks(Alone()).settle(config, custom=False)  # type: ignore[arg-type]
