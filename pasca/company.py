"""Company: what the processes that work on one run settle among themselves.

Whoever chooses a design does so in a turn of its own, after taking in what the others have recorded, so that no design
is chosen twice and all know what is running. A process that ends without a word leaves its trials running in the
record; the others see that it is gone and free their designs. When nothing is left to be begun, each waits for the
others' trials, and the first to get there closes the run: it retrains the front and reads test labels. Should it die,
the next one goes on with that.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from engines.loop import Ending
from engines.trial import Trial
from pasca.members import Member, name_of
from pasca.studies import StudyRecord

_ENDED, _BUDGET, _JOINED = "pasca ended", "pasca time budget", "pasca joined "
"""Attributes of the record: that nothing more is to be begun; when the time budget began; who has joined."""

_POLL_SECONDS = 0.5
"""How often a process looks whether the others have finished what it waits for."""


class Company:
    """This process among those that work on a run.

    Args:
        member: this process.
        record: of the run.
        observe: called with each trial of another process that is new or has finished.
        note: called with what a user should know.
    """

    def __init__(
        self,
        member: Member,
        record: StudyRecord[Any],
        observe: Callable[[Trial[Any]], None],
        note: Callable[[str], None],
    ) -> None:
        self._member, self._record, self._observe, self._note = member, record, observe, note

    def begin(self, budget: Mapping[str, float] | None) -> None:
        """Open the run for work, as its first process.

        Args:
            budget: `seconds` from `began`, in seconds since 1970, in which the run is to end.
        """
        if self._member.others():
            return  # at work on it since before its first process ended
        for name, value in ((_ENDED, None), (_BUDGET, None if budget is None else dict(budget))):
            if self._record.attribute(name) != value:
                self._record.set_attribute(name, value)

    def enter(self, statement: Mapping[str, Any]) -> None:
        """Note that this process works on the run, too.

        Args:
            statement: what the manifest is to say of it; JSON types.
        """
        others = ", ".join(map(name_of, self._member.others()))
        self._note(f"working on {self._member.folder} together with {others or 'nobody else'}")
        self._record.set_attribute(_JOINED + self._member.token, {"process": name_of(self._member.token), **statement})

    @property
    def budget(self) -> Mapping[str, float] | None:
        """The time budget of the run as a whole, as given to `begin`."""
        budget: Mapping[str, float] | None = self._record.attribute(_BUDGET)
        return budget

    @property
    def joined(self) -> list[dict[str, Any]]:
        """What is to be said of the processes that have joined."""
        return list(self._record.attributes(_JOINED).values()) if self._member.has_company() else []

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Keep the others from choosing a design while the block runs, with their trials taken in."""
        with self._member.turn():
            self._catch_up()
            yield

    def end(self) -> None:
        """Let nobody begin anything more."""
        if self._member.has_company():
            self._record.set_attribute(_ENDED, name_of(self._member.token))

    def has_ended(self) -> bool:
        """Whether nothing more is to be begun."""
        return self._member.has_company() and self._record.attribute(_ENDED) is not None

    def wait(self) -> None:
        """Return once no other process evaluates anything."""
        while self._member.has_company():
            with self.turn():
                if not self._record.history().running:
                    return
            time.sleep(_POLL_SECONDS)

    def left_work(self, ending: Ending, evaluations: int) -> bool:
        """Wait for the others' trials; whether one of them was given up, so that there is more to do after all.

        Args:
            ending: why this process began nothing more.
        """
        if ending not in (Ending.REACHED, Ending.EXHAUSTED) or not self._member.has_company():
            return False
        attempted = self._record.history().attempted()
        self.wait()
        history = self._record.history()
        if ending is Ending.REACHED:
            return history.num_evaluations < evaluations
        return bool(attempted - history.attempted())

    def _catch_up(self) -> None:
        if not self._member.has_company():
            return
        for trial in self._record.refresh():
            self._observe(trial)
        for trial in self._record.fail_interrupted(self._member.is_alive, own=False):
            self._note(f"trial {trial.number} {trial.design} was interrupted; its design is free again")
            self._observe(trial)
