"""A run is repeated from its manifest and compared, and a run that cannot be repeated says why."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pasca
from engines.graph import Graph
from engines.trial import Trial
from pasca.cli import main
from pasca.datasets.native import write_folder
from pasca.manifest import read_manifest
from pasca.progress import Silence
from pasca.rerunning import rerun
from pasca.results import Study
from search_space.errors import RunError

SETTINGS: dict[str, Any] = {
    "space": {"k_pre": [0, 1, 2], "pre_aggregator": ["augmented"], "k_trans": [1, 2], "k_post": [0]},
    "recipe": {"hidden_width": 4, "max_epochs": 4},
    "num_initial": 3, "threads": 1, "evaluations": 5, "repeats": 2, "retrain": 2, "run": "first",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASCA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def data(named_graph: Graph, tmp_path: Path) -> str:
    """A small graph in a folder."""
    write_folder(named_graph, tmp_path / "graph")
    return str(tmp_path / "graph")


def test_a_repetition_gives_the_same_designs_and_bits_retraining_included(data: str, tmp_path: Path) -> None:
    pasca.search(data, **SETTINGS)
    shutil.rmtree(tmp_path / "cache")  # the stage times are those of the manifest, not of this machine's store
    found = rerun("first", retrain=True)
    assert found.differences == ()
    assert (found.equal, found.num_trials, found.folder) == (True, 5, Path("results/first-rerun"))
    assert found.num_retrained == len(Study.open("first").retrained()) > 0
    assert read_manifest(found.folder)["stage_times"] == read_manifest(Path("results/first"))["stage_times"]


def test_without_retraining_no_test_label_is_read(data: str) -> None:
    pasca.search(data, **SETTINGS)
    found = rerun("first", out="elsewhere")
    assert found.equal
    assert found.num_retrained == 0
    assert Study.open(found.folder).readings() == []


@pytest.mark.slow
def test_several_evaluators_are_repeated_where_they_were_deterministic(data: str) -> None:
    pasca.search(data, **SETTINGS, workers=2, deterministic=True)
    found = rerun("first")
    assert found.differences == ()
    assert found.num_trials == 5


def test_an_interrupted_run_is_repeated_as_far_as_it_came(data: str) -> None:
    class Stop(Silence):
        def trial(self, trial: Trial[Any], standing: Any) -> None:
            if trial.number == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pasca.search(data, **SETTINGS, progress=Stop())
    found = rerun("first")
    assert (found.equal, found.num_trials) == (True, 3)


def test_replications_are_repeated_and_compared_seed_by_seed(data: str) -> None:
    pasca.search(data, **{**SETTINGS, "replications": 3, "retrain": 0})
    trials = list(Study.open("first").history)
    repeats = [trial for trial in trials if trial.repeats_of is not None]
    assert repeats, "the run has no replication that could be compared"
    found = rerun("first")
    assert (found.differences, found.num_trials) == ((), len(trials))
    again = Study.open(found.folder).history
    assert [(t.repeats_of, t.seeds) for t in again] == [(t.repeats_of, t.seeds) for t in trials]


def test_replications_of_a_search_that_did_not_reach_its_total_are_refused(data: str) -> None:
    class Stop(Silence):
        def trial(self, trial: Trial[Any], standing: Any) -> None:
            if trial.number == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pasca.search(data, **{**SETTINGS, "replications": 3}, progress=Stop())
    with pytest.raises(RunError, match=r"^run first did \d of 5 evaluations, and its replications follow that total"):
        rerun("first")


def test_replications_over_a_time_budget_are_refused(data: str) -> None:
    pasca.search(data, **{**SETTINGS, "replications": 3, "retrain": 0}, time_budget=1000)
    with pytest.raises(RunError, match=r"^run first spread its replications over a time budget"):
        rerun("first")


def test_the_first_difference_is_named_and_the_exit_status_is_one(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pasca.search(data, **SETTINGS)
    there = Study.open("first").history[2]
    change_attribute(2, lambda content: content["values"].update(val_error=np.nextafter(there.values["val_error"], 1)))
    assert main(["rerun", "first", "--quiet", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["equal"] is False
    right = there.values["val_error"]
    wrong = float(np.nextafter(right, 1))
    # One bit of one error; what the search suggested afterwards may differ, too, and comes later in the list.
    assert found["differences"][0] == f"trial 2 {there.design}: val_error {wrong!r} there, {right!r} here"


def test_another_design_ends_the_comparison(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    pasca.search(data, **SETTINGS)
    here = Study.open("first").history[1].design
    change_attribute(1, lambda content: content.update(design="augmented^9/mean/mlp-9/-"))
    assert main(["rerun", "first", "--quiet"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "differ in 1 place(s)" in said[0]
    assert said[1] == f"  trial 1: design augmented^9/mean/mlp-9/- there, {here} here"


def test_what_is_not_as_it_was_is_said(data: str) -> None:
    pasca.search(data, **SETTINGS, time_budget=1000)
    change_manifest(lambda manifest: manifest["versions"].update(torch="1.0"))
    notes = rerun("first").notes
    assert notes[0] == "the run was bounded by a time of 1000 s; repeated is what it did in it"
    assert notes[1].startswith("other versions: torch 1.0 then, ")


def test_other_data_is_refused_before_anything_is_written(data: str, named_graph: Graph, tmp_path: Path) -> None:
    pasca.search(data, **SETTINGS)
    other = Graph(**{
        **{name: getattr(named_graph, name) for name in
           ("name", "adjacency", "labels", "class_names", "split", "node_ids", "feature_names")},
        "features": named_graph.features + 1,
    })  # fmt: skip
    with pytest.raises(RunError, match=r"^the graph given is not what run first was searched on"):
        rerun("first", data=other)
    assert not (tmp_path / "results" / "first-rerun").exists()


def test_a_graph_given_as_an_object_is_given_again(named_graph: Graph) -> None:
    pasca.search(named_graph, **SETTINGS)
    assert rerun("first", data=named_graph).equal


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["config"].update(workers=2), "had 2 evaluators and not --deterministic"),
        (lambda m: m.update(ranks=4), "was searched on 4 rank.*mpiexec -n 4 pasca rerun"),
        (lambda m: m["identity"].update(recipe=None), "with an evaluator of its own"),
    ],
)
def test_a_run_that_its_manifest_does_not_fix_is_refused(data: str, change: Any, message: str, tmp_path: Path) -> None:
    pasca.search(data, **{**SETTINGS, "evaluations": 1, "retrain": 0})
    change_manifest(change)
    with pytest.raises(RunError, match=message):
        rerun("first")
    assert not (tmp_path / "results" / "first-rerun").exists()


def change_manifest(change: Any) -> None:
    path = Path("results/first/manifest.json")
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def change_attribute(number: int, change: Any) -> None:
    """Change what the record of the run `first` says of a trial."""
    with sqlite3.connect("results/first/study.db") as database:
        (trial_id,) = database.execute("select trial_id from trials where number = ?", (number,)).fetchone()
        where = (trial_id, "pasca")
        (text,) = database.execute(
            "select value_json from trial_user_attributes where trial_id = ? and key = ?", where
        ).fetchone()
        content = json.loads(text)
        change(content)
        database.execute(
            "update trial_user_attributes set value_json = ? where trial_id = ? and key = ?",
            (json.dumps(content, default=float), *where),
        )
    database.close()
