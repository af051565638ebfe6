"""A front as CSV: it reads back as what it was."""

from __future__ import annotations

import csv
import io

from engines.objectives import parse_objectives
from pasca.front_csv import front_csv
from pasca.fronts import Front, Row, Spread


def test_every_row_reads_back() -> None:
    front = Front(
        run="r",
        rows=(
            Row(3, "-/-/mlp-1/-", {"val_error": 0.25, "inference_seconds": 0.001}, 0.01, 3, knee=True),
            Row(4, "-/-/mlp-2/-", {"val_error": 1 / 3, "inference_seconds": 0.002}, test_score=Spread(0.7, None)),
        ),
        classics=(Row("SGC", "augmented^2/none/mlp-1/-", {"val_error": 0.5}, note='could not, "really"'),),
        objectives=parse_objectives("val_error,inference_seconds"),
    )
    rows = list(csv.DictReader(io.StringIO(front_csv(front))))
    assert [(row["kind"], row["id"], row["knee"]) for row in rows] == [
        ("front", "3", "true"),
        ("front", "4", "false"),
        ("classic", "SGC", "false"),
    ]
    assert float(rows[1]["val_error"]) == 1 / 3
    assert (rows[1]["test_score"], rows[1]["test_score_std"]) == ("0.7", "")
    assert rows[2]["inference_seconds"] == ""
    assert rows[2]["note"] == 'could not, "really"'
