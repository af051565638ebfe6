"""Progress of a search on stderr: a live view with the time left in a terminal, plain lines elsewhere, or nothing.

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
    from rich.console import RenderableType


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
        return ", ".join((*parts, *self._found()))

    def details(self) -> str:
        """All but the number of evaluations."""
        return ", ".join((f"{self.running} running", f"{self.failed} failed", *self._found()))

    def _found(self) -> list[str]:
        volume = [] if self.hypervolume is None else [f"hypervolume {self.hypervolume:.4g}"]
        return [f"front {self.front_size}", *volume]


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
        left = self._pace.seconds_left(standing.done, standing.total, standing.seconds_left)
        ending = f"; about {seconds_text(left)} left" if left is not None and standing.done < standing.total else ""
        self.note(f"{trial_text(trial)} | {standing.text()}{ending}")

    def retraining(self, design: str, done: int, total: int) -> None:
        """Write a line for each design that is trained again."""
        if done < total:
            self.note(f"retraining {done + 1}/{total}: {design}")

    def close(self) -> None:
        """Nothing is left to be written."""


class Bar:
    """Two lines at the foot of a terminal: a bar with the time left, and what is known so far."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.console import Console
        from rich.live import Live

        self._clock = clock
        self._doing, self._below = "", ""
        self._done, self._total, self._began = 0, 1, clock()
        self._pace = _Pace(clock)
        self._end: float | None = None
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        # What else is printed meanwhile, a library's warning for one, comes above the two lines.
        self._live = Live(get_renderable=self._view, console=self._console, transient=True)

    def note(self, text: str) -> None:
        """Print the text above the bar."""
        self._console.print(visible(text))

    def trial(self, trial: Trial[Any], standing: Standing) -> None:
        """Move the bar; a failed trial is also told above it."""
        if trial.finished and trial.status is Status.FAILED:
            self.note(trial_text(trial))
        self._show("evaluations", standing.details(), standing.done, standing.total, standing.seconds_left)

    def retraining(self, design: str, done: int, total: int) -> None:
        """Move a second bar."""
        self._show("designs trained again", design, done, total)

    def close(self) -> None:
        """Take the bar away."""
        self._live.stop()

    def _show(self, doing: str, below: str, done: int, total: int, seconds_left: float | None = None) -> None:
        if doing != self._doing:
            self._doing, self._began, self._pace = doing, self._clock(), _Pace(self._clock)
        self._pace.moved(done)
        left = self._pace.seconds_left(done, total, seconds_left)
        self._end = None if left is None else self._clock() + left
        self._below, self._done, self._total = visible(below), done, total
        self._live.start()
        self._live.refresh()

    def _view(self) -> RenderableType:
        """What is shown now; asked for several times a second, so that the time left runs down between trials."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now = self._clock()
        times = seconds_text(now - self._began)
        if self._end is not None and self._done < self._total:
            times += f", about {seconds_text(max(self._end - now, 0.0))} left"
        line = Table.grid(padding=(0, 1))
        line.add_row(
            Text(f"{self._done}/{self._total} {self._doing}"),
            ProgressBar(total=self._total, completed=self._done, width=20),
            Text(times),
        )
        return Group(line, Text(self._below, overflow="ellipsis", no_wrap=True))


class _Pace:
    """How long the rest will take, at the pace since the first report."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first: tuple[float, int] | None = None

    def moved(self, done: int) -> None:
        if self._first is None:
            self._first = (self._clock(), done)

    def seconds_left(self, done: int, total: int, budget: float | None) -> float | None:
        """Seconds at that pace, or those left of a time budget where they are fewer; None where neither is known."""
        left = budget
        if self._first is not None and done > self._first[1]:
            by_pace = (self._clock() - self._first[0]) / (done - self._first[1]) * (total - done)
            left = by_pace if budget is None else min(by_pace, budget)
        return None if left is None else max(left, 0.0)


def trial_text(trial: Trial[Any]) -> str:
    """One line about a finished trial."""
    if trial.status is Status.FAILED:
        return f"trial {trial.number} {trial.design}: failed, {trial.reason}"
    values = ", ".join(f"{name} {value:.4g}" for name, value in list(trial.values.items())[:2])
    return f"trial {trial.number} {trial.design}: {values}"


def on_stream(stream: TextIO) -> Progress:
    """A bar if the stream is a terminal, else lines."""
    return Bar(stream) if stream.isatty() else Lines(stream)
