"""One query gives of each trial what Optuna gives."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from pasca.databases import open_sqlite
from pasca.stored_trials import StoredTrial, stored_trials


@pytest.fixture
def stored(tmp_path: Path) -> tuple[BaseStorage, optuna.Study]:
    """A database and in it a study with a trial of every state, and another one in the same database."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = open_sqlite(tmp_path / "study.db", create=True)
    optuna.create_study(storage=storage, study_name="other").add_trial(optuna.create_trial(value=1.0))
    study = optuna.create_study(storage=storage, study_name="mine", directions=["minimize", "minimize"])
    for state in (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED, TrialState.WAITING, TrialState.RUNNING):
        values = [1.0, 2.0] if state is TrialState.COMPLETE else None
        attributes = {"pasca": {"design": f"{state.name} é", "values": {"a": 0.1}}, "else": 3}
        study.add_trial(optuna.create_trial(state=state, values=values, user_attrs=attributes))
    study.add_trial(optuna.create_trial(state=TrialState.FAIL, user_attrs={"else": 4}))
    return storage, study


def test_it_says_what_optuna_says(stored: tuple[BaseStorage, optuna.Study]) -> None:
    storage, study = stored
    found = stored_trials(storage, study._study_id, "pasca")
    whole = study.get_trials()
    assert len(found) == len(whole) == 6
    for one, other in zip(found, whole, strict=True):
        assert isinstance(one, StoredTrial)
        assert (one.number, one.state) == (other.number, other.state)
        assert (one.datetime_start, one.datetime_complete) == (other.datetime_start, other.datetime_complete)
        assert one.user_attrs == {key: value for key, value in other.user_attrs.items() if key == "pasca"}


def test_without_an_attribute_the_rest_is_the_same(stored: tuple[BaseStorage, optuna.Study]) -> None:
    storage, study = stored
    found = stored_trials(storage, study._study_id, None)
    for one, other in zip(found, study.get_trials(), strict=True):
        assert (one.number, one.state, one.user_attrs) == (other.number, other.state, {})
        assert (one.datetime_start, one.datetime_complete) == (other.datetime_start, other.datetime_complete)


def test_a_storage_without_tables_gives_whole_trials() -> None:
    study = optuna.create_study()
    study.add_trial(optuna.create_trial(value=1.0, user_attrs={"pasca": 1}))
    (trial,) = stored_trials(study._storage, study._study_id, "pasca")
    assert trial.user_attrs == {"pasca": 1}
