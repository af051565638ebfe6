"""Keeps a report up to date while its run goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pasca.reporting.page import write_report
from pasca.results import Study


def follow_report(
    run: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    every: int = 10,
    sleep: Callable[[float], None] = time.sleep,
    **options: Any,
) -> Iterator[Path]:
    """Write the report of a run again and again until the run ends; the open page reads itself anew.

    The last page, written after the run has ended, stays as it is.

    Args:
        run: name or folder.
        path: of the page; `report.html` in the run's folder when None.
        every: seconds between two pages.
        sleep: waits for so many seconds.
        options: as for `write_report`.
    Yields:
        The page's path, after each writing.
    Raises:
        RunError: there is no such run.
    """
    while True:
        study = Study.open(run)
        going_on = study.status in ("starting", "running")
        yield write_report(study, path, reload_seconds=every if going_on else None, **options)
        if not going_on:
            return
        sleep(every)
