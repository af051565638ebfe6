"""The record of a run in its database, and Optuna's view of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import optuna
import pytest

from engines.history import INTERRUPTED
from engines.objectives import OBJECTIVES
from engines.trial import Outcome, Status, Trial
from pasca.databases import open_sqlite, open_url
from pasca.studies import Retrained, StudyRecord
from search_space.architecture import Architecture
from search_space.errors import RunError, StorageError
from search_space.space import SearchSpace

PAIR = (OBJECTIVES["val_error"], OBJECTIVES["inference_seconds"])
SPACE = SearchSpace.paper(k_pre=(0, 1, 2), k_trans=(1, 3), k_post=(0,))
SGC = Architecture.parse("augmented^2/none/mlp-1/-")
MLP = Architecture.parse("-/-/mlp-1/-")


def create(path: Path, **options: Any) -> StudyRecord[Architecture]:
    settings = {"decode": Architecture.parse, "space": SPACE, "where": "the test's record", **options}
    return StudyRecord.create(open_sqlite(path, create=True), "run", PAIR, **settings)


def reopen(path: Path, name: str = "run") -> StudyRecord[Architecture]:
    storage = open_sqlite(path, create=False)
    return StudyRecord.open(storage, name, PAIR, decode=Architecture.parse, space=SPACE, where="the test's record")


def finished(
    record: StudyRecord[Architecture], design: Architecture, error: float, **outcome: Any
) -> Trial[Architecture]:
    trial = record.start(design, (1, 2**32 - 1), {"suggestion": {"method": "test"}})
    values = {"val_error": error, "inference_seconds": 0.1 + 0.2, "parameters": 7.0}
    trial = trial.complete(Outcome(values, {"val_error": 1e-300}, **outcome), PAIR, seconds=1.5)
    record.finish(trial)
    return trial


def optuna_trials(path: Path) -> list[optuna.trial.FrozenTrial]:
    return optuna.load_study(study_name="run", storage=f"sqlite:///{path}").trials


def test_trials_come_back_bit_equal(tmp_path: Path) -> None:
    record = create(tmp_path / "study.db")
    trials = [
        finished(record, SGC, 1 / 3, details={"val_errors": [0.1, 0.2]}),
        finished(record, MLP, 0.9, stopped=True),
        record.start(Architecture.parse("augmented^1/mean/mlp-3/-"), (5,), {}),
    ]
    assert list(reopen(tmp_path / "study.db").history()) == trials
    assert list(record.history()) == trials


def test_optuna_sees_choices_values_and_states(tmp_path: Path) -> None:
    record = create(tmp_path / "study.db")
    finished(record, SGC, 0.25)
    finished(record, MLP, 0.5, stopped=True)
    failed = record.start(Architecture.parse("augmented^1/mean/mlp-3/-"), (1,), {})
    record.finish(failed.fail("diverged"))
    complete, stopped, fail = optuna_trials(tmp_path / "study.db")
    assert complete.params == {"k_pre": 2, "pre_aggregator": "augmented", "message": "none", "k_trans": 1, "k_post": 0}
    assert complete.values == [0.25, 0.1 + 0.2]
    assert [t.state.name for t in (complete, stopped, fail)] == ["COMPLETE", "PRUNED", "FAIL"]
    assert stopped.values is None
    assert fail.values is None
    assert stopped.params == {"k_pre": 0, "k_trans": 1, "k_post": 0}, "choices of a stage that is off are left out"


def test_optuna_knows_the_objectives(tmp_path: Path) -> None:
    create(tmp_path / "study.db")
    study = optuna.load_study(study_name="run", storage=f"sqlite:///{tmp_path / 'study.db'}")
    assert study.metric_names == ["val_error", "inference_seconds"]
    assert [direction.name for direction in study.directions] == ["MINIMIZE", "MINIMIZE"]


def test_a_failed_trial_has_a_reason_and_no_values(tmp_path: Path) -> None:
    record = create(tmp_path / "study.db")
    trial = record.start(SGC, (1,), {})
    record.finish(trial.complete(Outcome({"val_error": float("nan"), "inference_seconds": 0.01}), PAIR, 1.0))
    again = reopen(tmp_path / "study.db").history()[0]
    assert again.status is Status.FAILED
    assert again.reason == "val_error is not finite: nan"
    assert dict(again.values) == {}


def test_what_is_not_finite_in_the_details_does_no_harm(tmp_path: Path) -> None:
    record = create(tmp_path / "study.db")
    trial = record.start(SGC, (1,), {})
    outcome = Outcome({"val_error": 0.1, "inference_seconds": 1.0}, {"val_error": float("inf")}, {"loss": float("nan")})
    record.finish(trial.complete(outcome, PAIR, 1.0))
    again = reopen(tmp_path / "study.db").history()[0]
    assert again.variances["val_error"] == float("inf")
    assert again.details["loss"] == "nan"


def test_running_trials_of_an_ended_process_become_interrupted_and_their_designs_free(tmp_path: Path) -> None:
    record = create(tmp_path / "study.db")
    finished(record, MLP, 0.5)
    record.start(SGC, (1,), {})
    again = reopen(tmp_path / "study.db")
    assert [trial.design for trial in again.fail_interrupted()] == [SGC]
    assert again.history()[1].reason == INTERRUPTED
    assert again.history().attempted() == {MLP}
    assert again.history().num_evaluations == 1
    assert reopen(tmp_path / "study.db").history().running == []


def test_numbers_go_on_after_reopening(tmp_path: Path) -> None:
    finished(create(tmp_path / "study.db"), MLP, 0.5)
    assert reopen(tmp_path / "study.db").start(SGC, (1,), {}).number == 1


def test_retrained_designs_and_readings_are_kept(tmp_path: Path) -> None:
    record = create(tmp_path / "study.db")
    done = Retrained(str(SGC), (1, 2), (0.1, 0.2), (0.9, 1 / 3), 2.5, {"epochs": 3}, {"parameters": 7.0})
    failed = Retrained(str(MLP), (1, 2), (), (), 0.1, reason="diverged")
    record.count_reading([str(SGC)])
    record.add_retrained(done)
    record.add_retrained(failed)
    again = reopen(tmp_path / "study.db")
    assert again.retrained() == {str(SGC): done, str(MLP): failed}
    assert [reading["designs"] for reading in again.readings()] == [[str(SGC)]]


def test_a_long_attribute_is_kept_whole(tmp_path: Path) -> None:
    record = create(tmp_path / "study.db")
    record.set_attribute("curve", list(range(20_000)))
    assert reopen(tmp_path / "study.db").attribute("curve") == list(range(20_000))


def test_a_study_of_that_name_is_not_overwritten(tmp_path: Path) -> None:
    create(tmp_path / "study.db")
    with pytest.raises(RunError, match="has a study named 'run' already"):
        create(tmp_path / "study.db")


def test_a_study_that_is_missing_is_named(tmp_path: Path) -> None:
    create(tmp_path / "study.db")
    with pytest.raises(RunError, match="has no study named 'other'"):
        reopen(tmp_path / "study.db", "other")


def test_a_missing_file_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"study\.db is missing"):
        open_sqlite(tmp_path / "study.db", create=False)
    assert not (tmp_path / "study.db").exists()


@pytest.mark.parametrize("content", [b"", b"not a database at all, only some text that is long enough\n" * 50])
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "study.db").write_bytes(content)
    with pytest.raises(RunError, match=r"cannot open .*study\.db|has no study"):
        reopen(tmp_path / "study.db")


def test_a_truncated_database_is_refused(tmp_path: Path) -> None:
    record = create(tmp_path / "study.db")
    for _ in range(20):
        record.set_attribute("filler", "x" * 5000)
    whole = (tmp_path / "study.db").read_bytes()
    (tmp_path / "study.db").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunError, match="malformed"):
        reopen(tmp_path / "study.db")


def test_tables_of_another_optuna_are_refused(tmp_path: Path) -> None:
    create(tmp_path / "study.db")
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v1.3.0.a'")
    connection.close()
    with pytest.raises(RunError, match=r"cannot open .*optuna"):
        reopen(tmp_path / "study.db")


def test_trials_of_another_program_are_refused(tmp_path: Path) -> None:
    create(tmp_path / "study.db")
    study = optuna.load_study(study_name="run", storage=f"sqlite:///{tmp_path / 'study.db'}")
    study.add_trial(optuna.create_trial(values=[1.0, 2.0]))
    with pytest.raises(RunError, match=r"trial 0 .* was not written by pasca"):
        reopen(tmp_path / "study.db")


def test_a_locked_database_is_an_error_that_names_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pasca.databases._LOCK_SECONDS", 0.05)
    monkeypatch.setattr("pasca.databases._PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    record = create(tmp_path / "study.db")
    other = sqlite3.connect(tmp_path / "study.db")
    try:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="cannot write the test's record: database is locked"):
            record.start(SGC, (1,), {})
    finally:
        other.close()
    assert record.start(SGC, (1,), {}).number == 0


def test_the_run_may_be_in_a_folder_of_any_name(tmp_path: Path) -> None:
    name = "a?b {x} %20 #1 ä'\";"
    (tmp_path / name).mkdir()
    finished(create(tmp_path / name / "study.db"), MLP, 0.5)
    assert (tmp_path / name / "study.db").stat().st_size > 0
    assert len(reopen(tmp_path / name / "study.db").history()) == 1


@pytest.mark.parametrize("url", ["nonsense", "nosuchdatabase://host/name", "postgresql://"])
def test_a_url_that_opens_nothing_is_refused(url: str) -> None:
    with pytest.raises(RunError, match=r"storage|cannot open"):
        open_url(url)


def test_a_refused_url_does_not_show_its_password() -> None:
    with pytest.raises(RunError) as refusal:
        open_url("nosuchdatabase://me:secret@host/name")
    assert "secret" not in str(refusal.value)
    assert "me@host" in str(refusal.value)


def test_a_database_url_works_like_a_file(tmp_path: Path) -> None:
    storage = open_url(f"sqlite:///{tmp_path}/shared.db")
    record: StudyRecord[Architecture] = StudyRecord.create(storage, "run", PAIR, decode=Architecture.parse, space=SPACE)
    finished(record, SGC, 0.5)
    assert len(reopen(tmp_path / "shared.db").history()) == 1
