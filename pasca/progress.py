"""Progress of a search on stderr: a bar with the time left in a terminal, plain lines elsewhere, or nothing.

Names that come from users and data are never read as markup.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from engines.trial import Status, Trial
from pasca.plain import visible
from pasca.quantities import seconds_text

if TYPE_CHECKING:
    from rich.progress import TaskID


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a search stands.

    Attributes:
        done, total: evaluations, and how many were asked for.
        running, failed: trials.
        front_size: designs on the front so far.
        hypervolume: of the front, in measured units; None before a reference point exists.
        seconds_left: of the time budget; None without one.
    """

    done: int
    total: int
    running: int = 0
    failed: int = 0
    front_size: int = 0
    hypervolume: float | None = None
    seconds_left: float | None = None

    def text(self) -> str:
        """One line for a person."""
        parts = [f"{self.done}/{self.total} evaluations"]
        if self.running > 1:
            parts.append(f"{self.running} running")
        if self.failed:
            parts.append(f"{self.failed} failed")
        parts.append(f"front {self.front_size}")
        if self.hypervolume is not None:
            parts.append(f"hypervolume {self.hypervolume:.4g}")
        return ", ".join(parts)


class Progress(Protocol):
    """What a search tells whoever watches it."""

    def note(self, text: str) -> None:
        """Say something once."""
        ...

    def trial(self, trial: Trial[Any], standing: Standing) -> None:
        """A trial has started or finished."""
        ...

    def retraining(self, design: str, done: int, total: int) -> None:
        """A design of the front or a classic is about to be trained again; at the end, `done` is `total`."""
        ...

    def close(self) -> None:
        """Nothing more will come."""
        ...


class Silence:
    """Says nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def trial(self, trial: Trial[Any], standing: Standing) -> None:
        """Say nothing."""

    def retraining(self, design: str, done: int, total: int) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Say nothing."""


class Lines:
    """One plain line per finished trial, for logs and pipes."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._pace = _Pace(clock)

    def note(self, text: str) -> None:
        """Write the text as a line."""
        self._stream.write(visible(text) + "\n")
        self._stream.flush()

    def trial(self, trial: Trial[Any], standing: Standing) -> None:
        """Write a line for a finished trial, with the time left."""
        self._pace.moved(standing.done)
        if not trial.finished:
            return
        left = self._pace.seconds_left(standing.done, standing.total)
        if standing.seconds_left is not None:
            left = standing.seconds_left if left is None else min(left, standing.seconds_left)
        ending = (
            f"; about {seconds_text(max(left, 0.0))} left"
            if left is not None and standing.done < standing.total
            else ""
        )
        self.note(f"{trial_text(trial)} | {standing.text()}{ending}")

    def retraining(self, design: str, done: int, total: int) -> None:
        """Write a line for each design that is trained again."""
        if done < total:
            self.note(f"retraining {done + 1}/{total}: {design}")

    def close(self) -> None:
        """Nothing is left to be written."""


class Bar:
    """A bar with the time left, for terminals."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._doing = ""

    def note(self, text: str) -> None:
        """Print the text above the bar."""
        self._bar.console.print(visible(text), markup=False, highlight=False)

    def trial(self, trial: Trial[Any], standing: Standing) -> None:
        """Move the bar; a failed trial is also told above it."""
        if trial.finished and trial.status is Status.FAILED:
            self.note(trial_text(trial))
        self._show("search", standing.text(), standing.done, standing.total)

    def retraining(self, design: str, done: int, total: int) -> None:
        """Move a second bar."""
        self._show("retraining", f"retraining {done}/{total}: {design}"[:60], done, total)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()

    def _show(self, doing: str, text: str, done: int, total: int) -> None:
        if self._task is None or doing != self._doing:
            if self._task is not None:
                self._bar.remove_task(self._task)
            # Starting from what was done before keeps the time left right when a run is resumed.
            self._task, self._doing = self._bar.add_task(visible(text), total=total, completed=done), doing
            self._bar.start()
        self._bar.update(self._task, description=visible(text), completed=done, total=total)


class _Pace:
    """How long the rest will take, at the pace since the first report."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first: tuple[float, int] | None = None

    def moved(self, done: int) -> None:
        if self._first is None:
            self._first = (self._clock(), done)

    def seconds_left(self, done: int, total: int) -> float | None:
        if self._first is None or done <= self._first[1]:
            return None
        return (self._clock() - self._first[0]) / (done - self._first[1]) * (total - done)


def trial_text(trial: Trial[Any]) -> str:
    """One line about a finished trial."""
    if trial.status is Status.FAILED:
        return f"trial {trial.number} {trial.design}: failed, {trial.reason}"
    values = ", ".join(f"{name} {value:.4g}" for name, value in list(trial.values.items())[:2])
    return f"trial {trial.number} {trial.design}: {values}"


def on_stream(stream: TextIO) -> Progress:
    """A bar if the stream is a terminal, else lines."""
    return Bar(stream) if stream.isatty() else Lines(stream)
