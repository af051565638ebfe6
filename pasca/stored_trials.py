"""The trials of a study as its database holds them, without what nothing of ours reads.

Optuna reads every parameter of every trial and decodes its distribution each time: half a minute for 20,000 trials,
where number, state, dates and one attribute take a second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, TrialState


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """What an `optuna.trial.FrozenTrial` says of the same name.

    Attributes:
        user_attrs: the attribute that was asked for, if the trial has it.
    """

    number: int
    state: TrialState
    user_attrs: Mapping[str, Any]
    datetime_start: datetime | None
    datetime_complete: datetime | None


def stored_trials(storage: BaseStorage, study_id: int, attribute: str | None) -> Sequence[StoredTrial | FrozenTrial]:
    """All trials of a study in the order of their numbers, each with one of its attributes or, for None, without.

    A storage other than a relational database is asked for whole trials.
    """
    from optuna.storages import RDBStorage
    from optuna.trial import TrialState

    if not isinstance(storage, RDBStorage):
        return storage.get_all_trials(study_id, deepcopy=False)
    from sqlalchemy import DateTime, String, and_, cast, column, null, select, table

    trials = table(
        "trials",
        *map(column, ("trial_id", "study_id", "number", "state")),
        column("datetime_start", DateTime),
        column("datetime_complete", DateTime),
    )
    attributes = table("trial_user_attributes", *map(column, ("trial_id", "key", "value_json")))
    its_own = and_(attributes.c.trial_id == trials.c.trial_id, attributes.c.key == attribute)
    query = (
        select(
            trials.c.number,
            cast(trials.c.state, String),
            null() if attribute is None else attributes.c.value_json,
            trials.c.datetime_start,
            trials.c.datetime_complete,
        )
        .select_from(trials if attribute is None else trials.outerjoin(attributes, its_own))
        .where(trials.c.study_id == study_id)
        .order_by(trials.c.number)
    )
    with storage.engine.connect() as connection:
        rows = connection.execute(query).all()
    return [
        StoredTrial(
            number,
            TrialState[state],
            {} if attribute is None or text is None else {attribute: json.loads(text)},
            began,
            ended,
        )
        for number, state, text, began, ended in rows
    ]
