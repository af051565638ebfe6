"""The record of a run in its database: an Optuna study whose trials are ours, readable by Optuna's dashboard.

One trial of ours is one trial there. Its choices are parameters, its objectives values, and everything else is one
JSON attribute, `pasca`. A failed trial has no values, neither here nor there. A trial stopped early is `PRUNED`, with
its values in the attribute only. What belongs to the run as a whole are attributes of the study.

Several processes may work on one run: each writes in a turn of its own, says in the attribute of a trial whose it is,
and takes in what the others have recorded when it is told to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from engines.history import INTERRUPTED, History
from engines.objectives import Objective
from engines.trial import Status, Trial
from pasca.databases import create_study, find_study, persistently, storage_errors
from pasca.plain import plain
from pasca.stored_trials import StoredTrial, stored_trials
from search_space.errors import RunError, StorageError
from search_space.space import Choice, Space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial

D = TypeVar("D")
T = TypeVar("T")

_TRIAL, _RETRAINED, _READINGS = "pasca", "pasca retrained ", "pasca test readings"
POSTERIOR = "pasca posterior"
"""Attribute: mean and deviation of each uncertain objective, by name, of each design on the front, by its text."""


@dataclass(frozen=True, slots=True)
class Retrained:
    """A design trained again after the search, with fresh seeds, and its test scores.

    Attributes:
        design: its text form.
        seeds: S seeds, none of which the search used.
        val_errors, test_scores: S fractions each, in the order of the seeds.
        seconds: wall-clock seconds it took.
        details: JSON types, as the evaluator reports them.
        known: values of the known objectives, by name.
        reason: why it could not be trained, in one line; then there are no scores.
    """

    design: str
    seeds: tuple[int, ...]
    val_errors: tuple[float, ...]
    test_scores: tuple[float, ...]
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None


class StudyRecord(Generic[D]):
    """The trials and the retrained designs of one run. See `engines.loop.Record`.

    Args:
        storage, study_id: where the study is.
        decode: turns a design's text form back into the design.
        space: needed for new trials only: its choices are the parameters.
        objectives: in the order of the study's values.
        where: for messages.
        process: names this process in the trials that it starts.
        turn: gives a context in which no other process writes to the study.
    """

    def __init__(
        self,
        storage: BaseStorage,
        study_id: int,
        *,
        decode: Callable[[str], D],
        objectives: Sequence[Objective],
        space: Space[D] | None = None,
        where: str = "the record",
        process: str | None = None,
        turn: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._storage, self._study_id, self._where = storage, study_id, where
        self._decode, self._objectives, self._space = decode, tuple(objectives), space
        self._process, self._turn = process, turn
        self._distributions = {} if space is None else {choice.name: _distribution(choice) for choice in space.choices}
        self._ids: dict[int, int] = {}
        self._processes: dict[int, str | None] = {}
        self._followed: Study | None = None
        stored = self._asked(lambda: stored_trials(storage, study_id, _TRIAL))
        self._history = History(self._read(frozen) for frozen in stored)

    @classmethod
    def create(cls, storage: BaseStorage, name: str, objectives: Sequence[Objective], **options: Any) -> StudyRecord[D]:
        """Make a new study and open it; further arguments as for the class.

        Raises:
            RunError: the storage has a study of that name.
            StorageError: it cannot be written.
        """
        where = options.get("where", "the record")
        if find_study(storage, name) is not None:
            raise RunError(f"{where} has a study named {name!r} already; --resume continues it")
        with storage_errors(f"cannot write {where}", StorageError):
            study_id = persistently(lambda attempts: create_study(storage, name, objectives), where)
        return cls(storage, study_id, objectives=objectives, **options)

    @classmethod
    def open(cls, storage: BaseStorage, name: str, objectives: Sequence[Objective], **options: Any) -> StudyRecord[D]:
        """Open an existing study; further arguments as for the class.

        Raises:
            RunError: the storage has no study of that name, or its trials cannot be read.
        """
        where = options.get("where", "the record")
        study_id = find_study(storage, name)
        if study_id is None:
            raise RunError(f"{where} has no study named {name!r}; was the run moved or its database exchanged?")
        return cls(storage, study_id, objectives=objectives, **options)

    def history(self) -> History[D]:
        """Every trial so far, running ones included; of other processes' trials, those that `refresh` took in."""
        return self._history

    def refresh(self) -> list[Trial[D]]:
        """Take in what other processes have recorded since; returns the trials that are new or have finished."""
        import optuna

        def read() -> list[FrozenTrial]:
            if self._followed is None:
                name = self._storage.get_study_name_from_id(self._study_id)
                self._followed = optuna.load_study(study_name=name, storage=self._storage)
            # Unlike the storage, a study reads finished trials once only.
            return self._followed.get_trials(deepcopy=False)

        finished = {trial.number: trial.finished for trial in self._history}
        changed = [
            self._read(frozen)
            for frozen in self._asked(read)
            if frozen.number not in finished or (not finished[frozen.number] and frozen.state.is_finished())
        ]
        for trial in changed:
            self._history = self._history.with_trial(trial)
        return changed

    def intervals(self) -> dict[int, tuple[float, float | None]]:
        """Start and end of each trial by number, in seconds since 1970; the end is None while it is running."""
        stored = self._asked(lambda: stored_trials(self._storage, self._study_id, None))
        return {
            trial.number: (
                trial.datetime_start.timestamp(),
                None if trial.datetime_complete is None else trial.datetime_complete.timestamp(),
            )
            for trial in stored
            if trial.datetime_start is not None
        }

    def start(
        self, design: D, seeds: Sequence[int], details: Mapping[str, Any], repeats_of: int | None = None
    ) -> Trial[D]:
        """Record a new running trial, in one transaction.

        Raises:
            StorageError: it could not be written.
        """
        from optuna.trial import TrialState, create_trial

        assert self._space is not None
        codes = self._space.encode([design])[0]
        values = {c.name: c.values[code] for c, code in zip(self._space.choices, codes, strict=True) if code >= 0}
        draft = Trial(
            number=-1,
            design=design,
            seeds=tuple(seeds),
            details=MappingProxyType(plain(details)),
            repeats_of=repeats_of,
        )

        def write(attempts: int) -> Trial[D]:
            trial_id = self._started_before(str(design)) if attempts else None
            if trial_id is None:
                trial_id = self._storage.create_new_trial(
                    self._study_id,
                    create_trial(
                        state=TrialState.RUNNING,
                        params=values,
                        distributions={name: self._distributions[name] for name in values},
                        user_attrs={_TRIAL: _attribute(draft, self._process)},
                    ),
                )
            number = self._number(trial_id)
            trial = replace(draft, number=number)
            self._ids[number], self._processes[number] = trial_id, self._process
            self._history = self._history.with_trial(trial)
            return trial

        return self._written(write)

    def finish(self, trial: Trial[D]) -> None:
        """Record the finished form of a running trial. Once it returns, nothing takes the trial away.

        Raises:
            StorageError: it could not be written; the trial is still running in the record.
        """
        from optuna.trial import TrialState

        states = {
            Status.COMPLETE: TrialState.COMPLETE,
            Status.STOPPED: TrialState.PRUNED,
            Status.FAILED: TrialState.FAIL,
        }
        content = _attribute(trial, self._processes.get(trial.number, self._process))
        complete = trial.status is Status.COMPLETE
        values = [trial.values[objective.name] for objective in self._objectives] if complete else None

        def write(attempts: int) -> None:
            trial_id = self._ids[trial.number] if trial.number in self._ids else self._id(trial.number)
            # After a lost connection the state may have been written without an answer.
            if not attempts or self._storage.get_trial(trial_id).state is not states[trial.status]:
                # The attribute first: until the state changes, the trial counts as running and may be written again.
                self._storage.set_trial_user_attr(trial_id, _TRIAL, content)
                self._storage.set_trial_state_values(trial_id, states[trial.status], values)
            self._ids.pop(trial.number, None)
            self._processes.pop(trial.number, None)
            self._history = self._history.with_trial(trial)

        self._written(write)

    def fail_interrupted(
        self, is_at_work: Callable[[str | None], bool] = lambda process: False, *, own: bool = True
    ) -> list[Trial[D]]:
        """Record running trials, left by processes that ended, as interrupted; returns them.

        Args:
            is_at_work: whether another process, as named in its trials, is still at work.
            own: whether this process's trials are interrupted, too; otherwise only those that it does not know.
        """
        interrupted = []
        for trial in self._history.running:
            process = self._processes.get(trial.number)
            mine = process is not None and process == self._process
            if (own or trial.number not in self._ids) if mine else not is_at_work(process):
                interrupted.append(trial.fail(INTERRUPTED))
        for trial in interrupted:
            self.finish(trial)
        return interrupted

    def retrained(self) -> dict[str, Retrained]:
        """The designs trained again so far, by text form."""
        found = {}
        for key, value in self._attributes().items():
            if key.startswith(_RETRAINED):
                value = {**value, **{name: tuple(value[name]) for name in ("seeds", "val_errors", "test_scores")}}
                found[value["design"]] = Retrained(**value)
        return found

    def add_retrained(self, retrained: Retrained) -> None:
        """Record a design trained again, in one transaction.

        Raises:
            StorageError: it could not be written.
        """
        content = {name: plain(getattr(retrained, name)) for name in Retrained.__slots__}
        self.set_attribute(_RETRAINED + retrained.design, content)

    def count_reading(self, designs: Sequence[str]) -> None:
        """Record, before it happens, that test labels are about to be read for these designs."""
        reading = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "designs": list(designs)}
        self.set_attribute(_READINGS, [*self.readings(), reading])

    def readings(self) -> list[dict[str, Any]]:
        """Every occasion on which test labels were read: its time and the designs."""
        return list(self._attributes().get(_READINGS, []))

    def set_attribute(self, name: str, value: Any) -> None:
        """Record a value of JSON types for the run as a whole.

        Raises:
            StorageError: it could not be written.
        """
        self._written(lambda attempts: self._storage.set_study_user_attr(self._study_id, name, value))

    def attribute(self, name: str) -> Any:
        """A value recorded for the run as a whole, or None."""
        return self._attributes().get(name)

    def attributes(self, beginning: str) -> dict[str, Any]:
        """Values recorded for the run as a whole whose names begin so."""
        return {name: value for name, value in self._attributes().items() if name.startswith(beginning)}

    def _asked(self, read: Callable[[], T]) -> T:
        with storage_errors(f"cannot read {self._where}", RunError):
            return persistently(lambda attempts: read(), self._where)

    def _written(self, write: Callable[[int], T]) -> T:
        with self._turn(), storage_errors(f"cannot write {self._where}", StorageError):
            return persistently(write, self._where)

    def _started_before(self, design: str) -> int | None:
        """The trial of this process that an attempt has started before the connection was lost, by its identity."""
        known = {trial.number for trial in self._history}
        for frozen in self._storage.get_all_trials(self._study_id, deepcopy=False):
            content = frozen.user_attrs[_TRIAL]
            if frozen.number not in known and (content["process"], content["design"]) == (self._process, design):
                return self._storage.get_trial_id_from_study_id_trial_number(self._study_id, frozen.number)
        return None

    def _number(self, trial_id: int) -> int:
        """The number that the storage gave a new trial. Reading a trial whole is slow, so the likely one is tried."""
        number = self._history.last_number + 1
        try:
            return number if self._id(number) == trial_id else self._storage.get_trial(trial_id).number
        except KeyError:
            return self._storage.get_trial(trial_id).number

    def _id(self, number: int) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._study_id, number)

    def _attributes(self) -> dict[str, Any]:
        return self._asked(lambda: self._storage.get_study_user_attrs(self._study_id))

    def _read(self, frozen: FrozenTrial | StoredTrial) -> Trial[D]:
        content = frozen.user_attrs.get(_TRIAL)
        if not isinstance(content, dict) or "design" not in content:
            raise RunError(
                f"trial {frozen.number} of {self._where} was not written by pasca; a study belongs to one run only"
            )
        status = _status(frozen)
        if status is Status.RUNNING:
            self._processes[frozen.number] = content.get("process")
        else:
            self._processes.pop(frozen.number, None)
        measured = status in (Status.COMPLETE, Status.STOPPED)
        return Trial(
            number=frozen.number,
            design=self._decode(content["design"]),
            seeds=tuple(content["seeds"]),
            status=status,
            values=MappingProxyType(_numbers(content["values"]) if measured else {}),
            variances=MappingProxyType(_numbers(content["variances"]) if measured else {}),
            reason=content["reason"] if status is Status.FAILED else None,
            details=MappingProxyType(content["details"]),
            seconds=content["seconds"],
            repeats_of=content["repeats_of"],
        )


def _attribute(trial: Trial[D], process: str | None) -> dict[str, Any]:
    return {
        "design": str(trial.design),
        "seeds": list(trial.seeds),
        "values": plain(trial.values),
        "variances": plain(trial.variances),
        "reason": trial.reason,
        "details": plain(trial.details),
        "seconds": trial.seconds,
        "repeats_of": trial.repeats_of,
        "process": process,
    }


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Values as written by `plain`, where NaN and infinity are texts, as numbers again."""
    return {name: float(value) for name, value in values.items()}


def _status(frozen: FrozenTrial | StoredTrial) -> Status:
    from optuna.trial import TrialState

    return {
        TrialState.COMPLETE: Status.COMPLETE,
        TrialState.PRUNED: Status.STOPPED,
        TrialState.FAIL: Status.FAILED,
        TrialState.RUNNING: Status.RUNNING,
        TrialState.WAITING: Status.RUNNING,
    }[frozen.state]


def _distribution(choice: Choice) -> BaseDistribution:
    """An Optuna distribution with the values of a choice: a range where they are one, else a list."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in choice.values)
    if whole and choice.values and list(choice.values) == list(range(choice.values[0], choice.values[-1] + 1)):
        return IntDistribution(choice.values[0], choice.values[-1])
    return CategoricalDistribution(choice.values)
