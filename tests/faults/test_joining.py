"""Several processes on one run: nothing lost, nothing twice, one front retrained once, whoever dies."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import check_whole

from engines.history import INTERRUPTED
from pasca.manifest import read_manifest
from pasca.results import Study

RUN = Path("results/a-run")
WIDE = (
    'k_pre = [0, 1, 2]\npre_aggregator = ["augmented", "ppr0.1"]\nmessage = ["none"]\nk_trans = [1, 2]\nk_post = [0]\n'
)
"""Ten designs."""


@pytest.fixture(autouse=True)
def _wide(_here: None, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(WIDE)


def join(start: Callable[..., Any], *arguments: str, **options: Any) -> Any:
    return start("search", "--run", "a-run", "--join", *arguments, **options)


def evaluated_by() -> Counter[str]:
    """How many trials each process evaluated, by its token."""
    import optuna

    url = Study.open("a-run").manifest["config"]["storage"] or f"sqlite:///{RUN}/study.db"
    stored = optuna.load_study(study_name="a-run", storage=url).trials
    return Counter(trial.user_attrs["pasca"]["process"] for trial in stored)


def test_two_processes_share_a_run_and_one_retrains_its_front(search: Any, start: Any) -> None:
    first = search("--evaluations", "8", fault="slow")
    first.until("trial 0 ")
    second = join(start, fault="slow")
    assert (first.code(), second.code()) == (0, 0), first.said + second.said
    study = check_whole(total=8)
    assert len(study.history) == 8
    assert len(evaluated_by()) == 2
    assert study.front().num_test_readings == 1
    assert ("retraining" in first.said) != ("retraining" in second.said)
    assert [line for line in first.said.splitlines() if line.startswith("hypervolume")] == [
        line for line in second.said.splitlines() if line.startswith("hypervolume")
    ]
    joined = read_manifest(RUN)["joined"]
    assert [entry["process"].split()[1] for entry in joined] == [str(second.process.pid)]


def test_two_processes_share_the_replications_and_give_no_seed_twice(search: Any, start: Any) -> None:
    first = search("--evaluations", "8", "--replications", "4", fault="slow")
    first.until("trial 0 ")
    second = join(start, fault="slow")
    assert (first.code(), second.code()) == (0, 0), first.said + second.said
    study = check_whole(total=8)
    repeats = [trial for trial in study.history if trial.repeats_of is not None]
    assert 1 <= len(repeats) <= 4
    seeds = Counter((str(trial.design), seed) for trial in study.history for seed in trial.seeds)
    assert set(seeds.values()) == {1}


def test_the_others_go_on_when_the_first_is_killed_and_its_design_is_free_again(search: Any, start: Any) -> None:
    first = search("--evaluations", "8", fault="hung_at_third", stage=("training", 3))
    assert first.heard("training")
    second = join(start)
    second.until("together with process")
    first.signal(signal.SIGKILL)
    assert second.code() == 0, second.said
    study = check_whole(total=8)
    interrupted = [trial for trial in study.history if trial.reason == INTERRUPTED]
    assert len(interrupted) == 1
    assert "was interrupted; its design is free again" in second.said
    assert read_manifest(RUN)["status"] == "finished"


def test_whoever_waits_goes_on_with_the_retraining_of_one_that_is_killed(search: Any, start: Any) -> None:
    first = search(fault="slow", stage=("retraining", 4))
    first.until("trial 0 ")
    second = join(start, fault="slow", stage=("retraining", 4))
    second.until("together with process")
    deadline = time.monotonic() + 200
    while not (closers := [one for one in (first, second) if "retraining 4/" in one.said]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    closers[0].signal(signal.SIGKILL)
    closers[0].code()
    other = second if closers[0] is first else first
    assert other.code() == 0, other.said
    assert check_whole().front().num_test_readings == 2


def test_a_signal_ends_one_process_and_says_that_the_run_goes_on(search: Any, start: Any) -> None:
    first = search("--evaluations", "8", fault="slow")
    first.until("trial 0 ")
    second = join(start, fault="slow")
    second.until("together with process")
    first.until("trial 2 ")
    first.signal(signal.SIGTERM)
    assert first.code() == 143
    assert re.fullmatch(
        rf"pasca: terminated; the run goes on in process {second.process.pid} on \S+, "
        "work on it again with: pasca search --run a-run --join",
        first.last_line,
    )
    assert read_manifest(RUN)["status"] == "running"
    third = start("search", "--run", "a-run", "--resume")
    assert third.code() == 2
    assert f"is in use by process {second.process.pid} on " in third.last_line
    assert second.code() == 0, second.said
    check_whole(total=8)


def test_whoever_joins_with_a_time_budget_of_its_own_leaves_and_the_run_goes_on(search: Any, start: Any) -> None:
    first = search("--evaluations", "8", fault="slow")
    first.until("trial 0 ")
    second = join(start, "--time-budget", "1ms", fault="slow")
    assert second.code() == 0, second.said
    assert "goes on without this process" in second.said
    assert first.code() == 0, first.said
    check_whole(total=8)


def test_the_time_budget_of_a_run_counts_from_its_beginning_for_all(search: Any, start: Any) -> None:
    first = search("--evaluations", "10", "--time-budget", "1ms", "--retrain", "0", fault="slow", stage=("training", 1))
    assert first.heard("training")
    second = join(start, fault="slow")
    assert (first.code(), second.code()) == (0, 0), first.said + second.said
    study = Study.open("a-run")
    assert study.status == "finished"
    assert "the time budget is spent" in study.manifest["ending"]
    assert len(study.history) <= 3


def test_a_process_that_joins_a_run_where_nobody_is_resumes_it(search: Any, start: Any) -> None:
    first = search(stage=("training", 3))
    assert first.heard("training")
    first.signal(signal.SIGKILL)
    first.code()
    second = join(start)
    assert second.code() == 0, second.said
    check_whole()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--evaluations", "9"], "takes evaluations as it is, 5 there, 9 asked for; leave it out"),
        (["--seed", "3"], "another seed: 0 there, 3 asked for now"),
    ],
)
def test_a_run_is_joined_as_it_is(search: Any, start: Any, arguments: list[str], said: str) -> None:
    assert search("--retrain", "0").code() == 0
    refused = join(start, *arguments)
    assert refused.code() == 2
    assert said in refused.last_line


def test_a_deterministic_run_cannot_be_joined(search: Any, start: Any) -> None:
    assert search("--retrain", "0", "--deterministic").code() == 0
    refused = join(start)
    assert refused.code() == 2
    assert "results/a-run is deterministic" in refused.last_line


def test_what_is_not_there_cannot_be_joined(start: Any) -> None:
    refused = join(start)
    assert refused.code() == 2
    assert refused.last_line == (
        "pasca: error: there is no run in results/a-run to join; leave --join out to start one"
    )
