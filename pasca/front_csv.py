"""Fronts as comma-separated values, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from pasca.fronts import Front, Row, whole

if TYPE_CHECKING:
    from pasca.comparison import Comparison


def front_csv(front: Front, kind: str = "front") -> str:
    """One line a design: the front (or, where there is none, the nearest designs), then the classics.

    `kind` is what the first column calls the rows of the front. Values are in the objectives' own units, scores are
    fractions; an empty cell is something that is not known.
    """
    rows = [
        *((kind, row) for row in front.rows),
        *(("nearest", row) for row in front.nearest),
        *(("classic", row) for row in front.classics),
    ]
    names = list(dict.fromkeys((*(o.name for o in front.objectives), *(n for _, row in rows for n in row.values))))
    titles = [
        "kind",
        "id",
        "design",
        *names,
        "val_error_std",
        "seeds",
        "posterior_val_error",
        "posterior_val_error_std",
        "retrained_val_error",
        "retrained_val_error_std",
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*titles, "test_score", "test_score_std", "knee", "feasible", "note"])
    for kind, row in rows:
        writer.writerow([kind, *_cells(row, names)])
    return text.getvalue()


def comparison_csv(comparison: Comparison) -> str:
    """One line a design of each run's front, with the run's hypervolume against the common reference point."""
    names = [objective.name for objective in comparison.objectives]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", "hypervolume", "share", "id", "design", *names])
    for run in comparison.runs:
        for trial in run.front:
            values = [trial.values[name] for name in names]
            writer.writerow([run.name, run.hypervolume, run.share, trial.number, str(trial.design), *values])
    return text.getvalue()


def _cells(row: Row, names: list[str]) -> list[object]:
    """`csv` writes None as an empty cell and numbers so that they read back unchanged."""
    again, test, believed = row.retrained_val_error, row.test_score, row.posterior.get("val_error")
    return [
        row.id,
        row.design,
        *(whole(row.values.get(name)) for name in names),
        row.val_error_std,
        row.num_seeds,
        *((believed.mean, believed.std) if believed else (None, None)),
        *((again.mean, again.std) if again else (None, None)),
        *((test.mean, test.std) if test else (None, None)),
        str(row.knee).lower(),
        str(row.feasible).lower(),
        row.note,
    ]
