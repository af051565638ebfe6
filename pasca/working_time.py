"""How long a run had worked when each of its trials ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from engines.history import INTERRUPTED, History


def working_seconds(history: History[Any], intervals: Mapping[int, tuple[float, float | None]]) -> dict[int, float]:
    """Seconds that a search had worked when each trial ended: time in which it suggested or evaluated something.

    Pauses between an interruption and its resumption do not count, and trials evaluated at the same time count once.

    Args:
        intervals: start and end of trials in seconds on one clock, by number; the end is None while one is running.
    Returns:
        By trial number, for those of `history` that ended and were not interrupted.
    """
    spans = []
    for trial in history:
        start, end = intervals.get(trial.number, (0.0, None))
        # The end of an interrupted trial is when the run was resumed: the pause would count.
        if end is not None and trial.reason != INTERRUPTED:
            # A trial is recorded once it has been suggested, so its suggestion lies before its start.
            suggested = trial.details.get("suggestion", {}).get("seconds", 0.0)
            # Where the machine's clock was put back meanwhile, the trial's own seconds say when it ended.
            spans.append((start - float(suggested), end if end >= start else start + trial.seconds, trial.number))
    covered, busy = 0.0, []
    for start, end in _merged([(start, end) for start, end, _ in spans]):
        busy.append((start, end, covered))
        covered += end - start
    starts = [start for start, _, _ in busy]
    found = {}
    for _, end, number in spans:
        start, last, before = busy[bisect_right(starts, end) - 1]
        found[number] = before + min(end, last) - start
    return found


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The union of intervals as disjoint ones, in order."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
