"""A front as comma-separated values, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io

from pasca.fronts import Front, Row


def front_csv(front: Front) -> str:
    """One line a design: the front (or, where there is none, the nearest designs), then the classics.

    Values are in the objectives' own units, scores are fractions; an empty cell is something that is not known.
    """
    rows = [
        *(("front", row) for row in front.rows),
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
        "retrained_val_error",
        "retrained_val_error_std",
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*titles, "test_score", "test_score_std", "knee", "feasible", "note"])
    for kind, row in rows:
        writer.writerow([kind, *_cells(row, names)])
    return text.getvalue()


def _cells(row: Row, names: list[str]) -> list[object]:
    """`csv` writes None as an empty cell and numbers so that they read back unchanged."""
    again, test = row.retrained_val_error, row.test_score
    return [
        row.id,
        row.design,
        *(row.values.get(name) for name in names),
        row.val_error_std,
        row.num_seeds,
        *((again.mean, again.std) if again else (None, None)),
        *((test.mean, test.std) if test else (None, None)),
        str(row.knee).lower(),
        str(row.feasible).lower(),
        row.note,
    ]
