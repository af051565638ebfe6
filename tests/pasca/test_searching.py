"""The search call, from data to record, with evaluators small enough to foresee."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pasca
from engines.history import INTERRUPTED
from engines.trial import Outcome, Status
from pasca.manifest import read_manifest
from pasca.results import Study
from search_space.architecture import Architecture
from search_space.classics import CLASSICS
from search_space.errors import ConfigError, PascaError, RunError, TrialFailure

ROOT = Path(__file__).parents[2]
SMALL = {"k_pre": [0, 1], "pre_aggregator": ["augmented", "ppr0.1"], "message": ["none"], "k_trans": [1], "k_post": [0]}
QUICK: dict[str, Any] = {"searcher": "random", "retrain": 0, "run": "a-run"}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASCA_CACHE", str(tmp_path / "cache"))


def cost(design: Architecture) -> Outcome:
    """More steps cost more and err less: every design is on the front."""
    seconds = 0.001 * (1 + design.k_pre + 11 * design.k_post + 121 * design.k_trans)
    return Outcome({"val_error": 0.5 / (1 + seconds), "inference_seconds": seconds}, {"val_error": 1e-4})


class Fake:
    """An evaluator that also trains: its figures follow from design and seeds."""

    def __init__(self, fails: Sequence[Architecture] = ()) -> None:
        self.trained: list[tuple[Architecture, tuple[int, ...]]] = []
        self.fails = fails
        self.num_tested = 0

    def evaluate(self, design: Architecture, seeds: Sequence[int]) -> Outcome:
        return cost(design)

    def train(self, design: Architecture, seeds: Sequence[int]) -> Any:
        if design in self.fails:
            raise TrialFailure("training diverged")
        self.trained.append((design, tuple(seeds)))
        return FakeTrained(np.linspace(0.1, 0.2, len(seeds)))

    def test_scores(self, trained: Any) -> Any:
        self.num_tested += 1
        return 1.0 - trained.val_errors

    def known_of(self, design: Architecture) -> dict[str, float]:
        return {"inference_seconds": cost(design).values["inference_seconds"]}


class FakeTrained:
    def __init__(self, val_errors: Any) -> None:
        self.val_errors, self.details = val_errors, {"epochs": 1}


def test_failed_trials_are_recorded_without_values_and_the_search_goes_on() -> None:
    values = iter(
        [(0.3, 0.01), (0.2, 0.02), (float("nan"), 0.01), (0.1, 0.04), (float("inf"), 0.01)] + [(0.4, 0.1)] * 3
    )
    study = pasca.search(evaluator=lambda design: next(values), evaluations=8, **QUICK)
    history = Study.open("a-run").history
    assert [trial.number for trial in history.with_status(Status.FAILED)] == [2, 4]
    assert all("val_error" in str(trial.reason) and not trial.values for trial in history.with_status(Status.FAILED))
    assert len(history.complete) == 6
    assert [row.id for row in study.front().rows] == [0, 1, 3]
    assert "6 complete, 2 failed" in str(study.front())


@pytest.mark.parametrize("workers", [1, 4])
def test_a_small_space_is_exhausted_without_doubles(workers: int) -> None:
    study = pasca.search(evaluator=cost, space=SMALL, evaluations=10, workers=workers, **QUICK)
    assert sorted(str(trial.design) for trial in study.history) == [
        "-/-/mlp-1/-",
        "augmented^1/none/mlp-1/-",
        "ppr0.1^1/none/mlp-1/-",
    ]
    assert "space exhausted: all 3 designs were tried" in str(study.front())


def test_an_interrupted_search_resumes_to_the_total_and_repeats_nothing() -> None:
    calls: list[Architecture] = []

    def evaluate(design: Architecture) -> Outcome:
        calls.append(design)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return cost(design)

    with pytest.raises(KeyboardInterrupt):
        pasca.search(evaluator=evaluate, evaluations=6, **QUICK)
    before = Study.open("a-run")
    assert (before.status, len(before.history.complete)) == ("interrupted", 3)
    assert before.history[3].reason == INTERRUPTED
    assert len(before.front().rows) == 3, "the front works before resuming"
    after = pasca.search(evaluator=evaluate, resume=True, run="a-run")
    assert len(after.history.complete) == 6
    assert len({trial.design for trial in after.history.complete}) == 6
    assert calls[4] == calls[3], "the interrupted design is free again"


def test_a_resumed_search_suggests_what_the_uninterrupted_one_would_have() -> None:
    settings = {
        **QUICK,
        "searcher": "ehvi",
        "num_initial": 4,
        "space": {"k_pre": [0, 1, 2], "k_trans": [1, 2], "k_post": [0, 1]},
    }
    whole = pasca.search(evaluator=cost, evaluations=9, **settings)
    for total in (2, 6, 9):
        settings["run"] = "parts"
        parts = pasca.search(evaluator=cost, evaluations=total, resume=total > 2, **settings)
    assert [trial.design for trial in parts.history] == [trial.design for trial in whole.history]


def test_a_higher_total_extends_a_finished_run() -> None:
    pasca.search(evaluator=cost, evaluations=2, **QUICK)
    assert len(pasca.search(evaluator=cost, evaluations=5, run="a-run", resume=True).history) == 5


def test_replications_add_seeds_to_designs_in_doubt_and_a_resumed_search_adds_the_same() -> None:
    def doubtful(design: Architecture) -> Outcome:
        seconds = cost(design).values["inference_seconds"]
        return Outcome({"val_error": 0.2, "inference_seconds": seconds}, {"val_error": 1e-4})

    settings = QUICK | {"evaluator": doubtful, "space": SMALL, "num_initial": 2, "replications": 4}
    whole = list(pasca.search(evaluations=3, **settings | {"run": "whole"}).history)
    calls = iter(range(100))

    def interrupted(design: Architecture) -> Outcome:
        if next(calls) == 4:
            raise KeyboardInterrupt
        return doubtful(design)

    with pytest.raises(KeyboardInterrupt):
        pasca.search(evaluations=3, **settings | {"evaluator": interrupted})
    resumed = list(pasca.search(evaluations=3, **settings | {"resume": True}).history)
    repeats = [trial for trial in whole if trial.repeats_of is not None]
    assert len(whole) == 3 + len(repeats)
    assert 1 <= len(repeats) <= 4
    assert len({seed for trial in whole if str(trial.design) == str(repeats[0].design) for seed in trial.seeds}) >= 6
    done = [trial for trial in resumed if trial.reason != INTERRUPTED]
    assert [(str(t.design), t.seeds) for t in whole] == [(str(t.design), t.seeds) for t in done]
    front = Study.open("whole").front()
    assert all(row.num_seeds == 3 + 3 * sum(t.repeats_of == row.id for t in repeats) for row in front.rows)
    picked = Study.open("whole").pick(str(repeats[0].number))
    assert picked.number == repeats[0].repeats_of


def test_replications_are_spread_over_a_time_budget_that_ends_the_search() -> None:
    clock = Clock()

    def doubtful(design: Architecture) -> Outcome:
        clock.now += 10.0
        time.sleep(0.001)
        return Outcome({"val_error": 0.2, "inference_seconds": design.k_trans + design.k_pre}, {"val_error": 1e-4})

    settings = QUICK | {"evaluator": doubtful, "num_initial": 2, "replications": 4, "clock": clock}
    history = pasca.search(evaluations=1000, time_budget=200, **settings).history
    repeats = [trial.number for trial in history if trial.repeats_of is not None]
    assert len(history) == 20
    assert len(repeats) == 3, "the fourth is due when no time is left"
    assert repeats[0] in range(4, 8), "the first when a quarter of the time has passed"


def test_the_front_lists_what_the_model_makes_of_each_design_beside_what_was_observed() -> None:
    settings = QUICK | {"searcher": "ehvi", "space": SMALL, "num_initial": 2}
    study = pasca.search(evaluator=cost, evaluations=3, **settings)
    rows = study.front().as_mapping()["front"]
    assert len(rows) == 3
    for row in rows:
        believed = row["posterior"]["val_error"]
        assert abs(believed["mean"] - row["val_error"]) < 0.02
        assert 0 < believed["std"] < 0.1
    assert "posterior" not in str(pasca.search(evaluator=cost, evaluations=3, **QUICK | {"run": "other"}).front())


def test_an_existing_run_is_not_overwritten() -> None:
    pasca.search(evaluator=cost, evaluations=2, **QUICK)
    with pytest.raises(RunError, match=r"the run results/a-run exists already; continue it with --resume"):
        pasca.search(evaluator=cost, evaluations=2, **QUICK)
    assert len(Study.open("a-run").history) == 2


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match="is not empty and holds no run"):
        pasca.search(evaluator=cost, searcher="random", out=tmp_path / "mine")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"space": {**SMALL, "k_trans": [2]}}, r"another space k_trans: \[1\] there, \[2\] asked for now"),
        ({"objectives": ("val_error", "parameters")}, "another objectives"),
        ({"seed": 1}, "another seed: 0 there, 1 asked for now"),
        ({"repeats": 5}, "another repeats"),
        ({"at_most": ("inference_seconds=1",)}, "another at_most"),
        ({"searcher": "ehvi"}, "another searcher"),
    ],
)
def test_resuming_on_other_terms_is_refused_and_names_the_difference(changed: dict[str, Any], message: str) -> None:
    pasca.search(evaluator=cost, space=SMALL, evaluations=1, **QUICK)
    with pytest.raises(RunError, match=message):
        pasca.search(evaluator=cost, **{"space": SMALL, "evaluations": 2, **QUICK, "resume": True, **changed})
    assert len(Study.open("a-run").history) == 1


def test_what_cannot_be_resumed_is_refused() -> None:
    with pytest.raises(RunError, match="there is no run in results/a-run to resume"):
        pasca.search(evaluator=cost, run="a-run", resume=True)
    with pytest.raises(RunError, match="resuming needs the run's name or folder"):
        pasca.search(evaluator=cost, resume=True)


def test_bad_settings_write_nothing(tmp_path: Path) -> None:
    for settings in ({"searcher": "grid"}, {"evaluations": 0}, {"space": {"k_prex": [1]}}, {"objectives": "val_error"}):
        with pytest.raises(pasca.InputError):
            pasca.search(evaluator=cost, **{"run": "a-run", **settings})
    with pytest.raises(pasca.InputError):
        pasca.search("no such data", run="a-run")
    assert os.listdir(tmp_path) == []


def test_a_search_in_which_everything_fails_the_same_way_is_an_error_with_the_reason() -> None:
    def broken(design: Architecture) -> Outcome:
        raise ValueError("no such column")

    with pytest.raises(PascaError, match="ValueError: no such column"):
        pasca.search(evaluator=broken, evaluations=100, **QUICK)
    study = Study.open("a-run")
    assert len(study.history) == 5
    assert study.status == "finished"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_time_budget_ends_the_search() -> None:
    clock = Clock()

    def evaluate(design: Architecture) -> Outcome:
        clock.now += 10.0
        time.sleep(0.001)
        return cost(design)

    study = pasca.search(evaluator=evaluate, evaluations=100, time_budget="35s", clock=clock, **QUICK)
    assert len(study.history) == 4
    assert "the time budget is spent after 4 evaluations" in str(study.front())


def test_the_time_budget_includes_the_retraining() -> None:
    """Trials take no time by this clock except in the retraining, where each design takes 10 s."""
    clock, fake = Clock(), Fake()
    inner = fake.train

    def train(design: Architecture, seeds: Sequence[int]) -> Any:
        clock.now += 10.0
        return inner(design, seeds)

    fake.train = train  # type: ignore[method-assign]
    settings = {**QUICK, "retrain": 4, "space": SMALL}
    study = pasca.search(evaluator=fake, evaluations=3, time_budget=35, clock=clock, **settings)
    assert len(study.retrained()) == 4
    assert "design(s) were not retrained for lack of time" in str(study.front())
    resumed = pasca.search(evaluator=fake, run="a-run", resume=True, time_budget=1000, clock=clock)
    assert len(resumed.retrained()) == 12, "the rest is retrained on resuming"
    assert len(fake.trained) == 12, "and nothing twice"


def test_front_and_classics_are_retrained_with_fresh_seeds_and_tested_once() -> None:
    fake = Fake()
    study = pasca.search(evaluator=fake, evaluations=3, **{**QUICK, "retrain": 4, "space": SMALL})
    designs = {trial.design for trial in study.history} | set(CLASSICS.values())
    assert {design for design, _ in fake.trained} == designs
    seeds = {seeds for _, seeds in fake.trained}
    assert len(seeds) == 1
    assert len(next(iter(seeds))) == 4
    assert not set(next(iter(seeds))) & set(study.history[0].seeds)
    front = study.front()
    assert (len(front.rows), len(front.classics), front.num_test_readings) == (3, len(CLASSICS), 1)
    assert front.rows[0].test_score is not None
    assert front.rows[0].test_score.mean == pytest.approx(0.85)
    assert fake.num_tested == len(designs)


def test_resuming_a_finished_run_reads_no_test_label_again() -> None:
    fake = Fake()
    pasca.search(evaluator=fake, evaluations=3, **{**QUICK, "retrain": 4, "space": SMALL})
    num_tested = fake.num_tested
    study = pasca.search(evaluator=fake, run="a-run", resume=True)
    assert fake.num_tested == num_tested
    assert study.front().num_test_readings == 1


def test_an_interrupted_retraining_goes_on_where_it_stopped_and_counts_its_readings() -> None:
    fake = Fake()
    inner = fake.test_scores

    def interrupted(trained: Any) -> Any:
        if fake.num_tested == 3:
            raise KeyboardInterrupt
        return inner(trained)

    fake.test_scores = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        pasca.search(evaluator=fake, evaluations=3, **{**QUICK, "retrain": 4, "space": SMALL})
    assert len(Study.open("a-run").retrained()) == 3
    fake.test_scores = inner  # type: ignore[method-assign]
    study = pasca.search(evaluator=fake, run="a-run", resume=True)
    assert len(study.retrained()) == 12
    assert study.front().num_test_readings == 2


def test_a_classic_that_cannot_be_trained_says_why_and_the_others_go_on() -> None:
    fake = Fake(fails=[CLASSICS["SIGN"]])
    study = pasca.search(evaluator=fake, evaluations=2, **{**QUICK, "retrain": 2, "space": SMALL})
    by_name = {row.id: row for row in study.front().classics}
    assert by_name["SIGN"].note == "training diverged"
    assert by_name["SGC"].note is None


def test_an_evaluator_that_cannot_train_is_not_retrained() -> None:
    study = pasca.search(evaluator=cost, evaluations=2, **{**QUICK, "retrain": 10})
    assert study.retrained() == {}


def test_bounds_cut_the_front_and_the_retraining() -> None:
    values = {"-/-/mlp-1/-": (0.1, 5.0), "augmented^1/none/mlp-1/-": (0.2, 3.0), "ppr0.1^1/none/mlp-1/-": (0.3, 1.0)}
    study = pasca.search(
        evaluator=lambda d: values[str(d)], evaluations=3, at_most=("inference_seconds=2",), space=SMALL, **QUICK
    )
    assert [row.values["inference_seconds"] for row in study.front().rows] == [1.0]


def test_an_impossible_bound_is_said_and_nothing_can_be_picked() -> None:
    fake = Fake()
    settings = {**QUICK, "retrain": 2, "space": SMALL, "at_most": ("inference_seconds=1ns",)}
    study = pasca.search(evaluator=fake, evaluations=3, **settings)
    front = study.front()
    assert (len(front.rows), len(front.nearest)) == (0, 3)
    assert fake.trained == []
    with pytest.raises(RunError, match="no design meets the bound"):
        study.pick("knee")
    with pytest.raises(RunError, match="no design meets the bound"):
        study.export("knee")


def test_the_manifest_tells_what_is_needed_to_repeat_the_run() -> None:
    study = pasca.search(evaluator=cost, evaluations=2, seed=3, **QUICK)
    manifest = read_manifest(study.folder)
    assert manifest["status"] == "finished"
    assert manifest["config"]["seed"] == 3
    assert manifest["seeds"]["trials"] == list(study.history[0].seeds)
    assert {"pasca", "torch", "python", "optuna"} <= set(manifest["versions"])
    assert {"processor", "cores", "memory_bytes"} <= set(manifest["hardware"])
    assert manifest["searcher"]["searcher"] == "random"
    assert json.loads((study.folder / "manifest.json").read_text()) == manifest


@pytest.mark.parametrize("searcher", ["ehvi", "random"])
def test_the_reference_point_is_the_searchers_own(searcher: str) -> None:
    space = {"k_pre": [0, 1, 2], "k_trans": [1, 2], "k_post": [0]}
    settings = {**QUICK, "searcher": searcher, "num_initial": 4, "space": space}
    study = pasca.search(evaluator=cost, evaluations=6, **settings)
    stated = study.manifest["searcher"].get("reference_point")
    found = study.front().reference_point
    assert found is not None
    if searcher == "ehvi":
        assert found == pytest.approx(stated)
    later = pasca.search(evaluator=cost, evaluations=9, run="a-run", resume=True)
    assert later.front().reference_point == found, "it does not move"


def test_a_run_is_kept_in_any_folder(tmp_path: Path) -> None:
    study = pasca.search(evaluator=cost, evaluations=1, searcher="random", out=tmp_path / "deep" / "run")
    assert study.folder == tmp_path / "deep" / "run"
    assert len(Study.open(tmp_path / "deep" / "run").history) == 1


def test_a_database_url_keeps_the_trials_of_several_runs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    for run in ("one", "two"):
        pasca.search(evaluator=cost, evaluations=2, searcher="random", run=run, storage=url)
    assert len(Study.open("one").history) == 2
    assert not (tmp_path / "results" / "one" / "study.db").exists()
    shutil.rmtree(tmp_path / "results" / "one")
    with pytest.raises(RunError, match="has a study of the name 'one' already"):
        pasca.search(evaluator=cost, searcher="random", run="one", storage=url)


def test_a_space_of_ones_own_is_searched_and_shown() -> None:
    class Numbers:
        """0..4 as designs."""

        @property
        def choices(self) -> Any:
            from search_space.space import Choice

            return (Choice("number", "ordinal", tuple(range(5))),)

        def __len__(self) -> int:
            return 5

        def __contains__(self, design: object) -> bool:
            return design in range(5)

        def codes(self) -> Any:
            return np.arange(5, dtype=np.int16)[:, None]

        def design(self, index: int) -> int:
            return int(index)

        def index(self, design: int) -> int:
            return design

        def encode(self, designs: Sequence[int]) -> Any:
            return np.asarray(designs, dtype=np.int16)[:, None]

        def sample(self, count: int, rng: np.random.Generator) -> list[int]:
            return rng.permutation(5)[:count].tolist()

        def neighbours(self, design: int) -> list[int]:
            return [n for n in (design - 1, design + 1) if n in range(5)]

        def starting_designs(self) -> list[int]:
            return []

    first = pasca.search(evaluator=lambda n: (n, 5 - n), space=Numbers(), evaluations=2, **QUICK)
    assert all(isinstance(trial.design, int) for trial in first.history)
    study = pasca.search(evaluator=lambda n: (n, 5 - n), space=Numbers(), evaluations=9, run="a-run", resume=True)
    assert sorted(trial.design for trial in study.history) == [0, 1, 2, 3, 4]
    assert sorted(row.design for row in Study.open("a-run").front().rows) == ["0", "1", "2", "3", "4"]
    with pytest.raises(ConfigError, match="needs an evaluator of one's own"):
        pasca.search(space=Numbers(), run="other")


SLOW = """
import sys, time
import pasca
from engines.trial import Outcome
count = [0]
def evaluate(design):
    count[0] += 1
    if count[0] == int(sys.argv[1]):
        print("evaluating", flush=True)
        time.sleep(60)
    return 0.5 / (1 + count[0]), 0.001 * count[0]
pasca.search(evaluator=evaluate, evaluations=6, searcher="random", retrain=0, run="a-run")
"""


def start(at: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SLOW, str(at)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "evaluating\n"
    return process


def test_a_killed_search_loses_only_the_trial_in_flight_and_resumes_to_the_total() -> None:
    with start(4) as process:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=20)
    before = Study.open("a-run")
    assert (before.status, len(before.history.complete), len(before.history.running)) == ("interrupted", 3, 1)
    assert len(before.front().rows) == 3
    after = pasca.search(evaluator=cost, run="a-run", resume=True)
    assert len(after.history.complete) == 6
    assert [trial.reason for trial in after.history.with_status(Status.FAILED)] == [INTERRUPTED]
    assert after.history.running == []
    assert len({trial.design for trial in after.history.complete}) == 6


def test_a_second_process_on_a_run_is_refused_with_the_first_ones_number() -> None:
    with start(2) as process:
        try:
            with pytest.raises(RunError, match=f"in use by process {process.pid} on "):
                pasca.search(evaluator=cost, run="a-run", resume=True)
            assert Study.open("a-run").status == "running"
            assert len(Study.open("a-run").history.complete) == 1, "the front may be looked at meanwhile"
        finally:
            process.kill()
            process.communicate(timeout=20)
