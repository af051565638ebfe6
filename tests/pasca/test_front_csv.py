"""A front as CSV: it reads back as what it was."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from engines.objectives import parse_objectives
from engines.trial import Outcome, Trial
from pasca.comparison import ComparedRun, Comparison
from pasca.front_csv import comparison_csv, front_csv
from pasca.fronts import Front, Row, Spread


def test_every_row_reads_back() -> None:
    front = Front(
        run="r",
        rows=(
            Row(3, "-/-/mlp-1/-", {"val_error": 0.25, "inference_seconds": 0.001}, 0.01, 3, knee=True),
            Row(
                4,
                "-/-/mlp-2/-",
                {"val_error": 1 / 3, "inference_seconds": 0.002},
                posterior={"val_error": Spread(0.3, 0.02)},
                test_score=Spread(0.7, None),
            ),
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
    assert (rows[1]["posterior_val_error"], rows[1]["posterior_val_error_std"]) == ("0.3", "0.02")
    assert rows[0]["posterior_val_error"] == ""
    assert rows[2]["inference_seconds"] == ""
    assert rows[2]["note"] == 'could not, "really"'


def test_the_rows_may_be_called_something_else() -> None:
    front = Front(run="r", rows=(Row(3, "-/-/mlp-1/-", {}),), objectives=parse_objectives("val_error,macs"))
    (row,) = csv.DictReader(io.StringIO(front_csv(front, "pick")))
    assert (row["kind"], row["id"]) == ("pick", "3")


def test_compared_runs_have_one_line_a_design_of_their_fronts() -> None:
    pair = parse_objectives("val_error,inference_seconds")
    trial = Trial(number=7, design="a,b").complete(Outcome({"val_error": 1 / 3, "inference_seconds": 2.0}), pair, 1.0)
    run = ComparedRun("one", "d", "ehvi", 0, 9, 0, (trial,), 0.125, 0.5, {}, ())
    found = Comparison((run, replace(run, name="two", front=())), pair, (), {}, ())
    (row,) = csv.DictReader(io.StringIO(comparison_csv(found)))
    assert (row["run"], row["hypervolume"], row["share"], row["id"], row["design"]) == (
        "one",
        "0.125",
        "0.5",
        "7",
        "a,b",
    )
    assert (float(row["val_error"]), float(row["inference_seconds"])) == (1 / 3, 2.0)
