"""Fronts as rows, tables and JSON types."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engines.history import History
from engines.objectives import OBJECTIVES, parse_bound
from engines.trial import Outcome, Trial
from pasca.fronts import Front, Spread, make_front
from pasca.studies import Retrained
from pasca.tables import Cells, front_cells, front_text, value_text
from search_space.architecture import Architecture
from search_space.classics import CLASSICS

PAIR = (OBJECTIVES["val_error"], OBJECTIVES["inference_seconds"])
# The observations of a known trap: ties in one objective, and two equal points. A, B, D and F are on the front.
OBSERVED = {"A": (0.20, 3.0), "B": (0.10, 5.0), "C": (0.30, 3.0), "D": (0.20, 3.0), "E": (0.10, 6.0), "F": (0.25, 2.9)}
REFERENCE = {"val_error": 0.5, "inference_seconds": 10.0}


def history(observed: dict[str, tuple[float, float]] = OBSERVED) -> History[Any]:
    return History(
        Trial(number=i, design=name, seeds=(1, 2, 3)).complete(
            Outcome({"val_error": error, "inference_seconds": seconds, "parameters": 1000.0}, {"val_error": 0.0003}),
            PAIR,
            1.0,
        )
        for i, (name, (error, seconds)) in enumerate(observed.items())
    )


def front_of(trials: History[Any], *bounds: str, **settings: Any) -> Front:
    given: dict[str, Any] = {
        "objectives": PAIR,
        "bounds": [parse_bound(bound) for bound in bounds],
        "retrained": {},
        "classics": CLASSICS,
        "reference": REFERENCE,
        "metric": "accuracy",
        **settings,
    }
    return make_front("a-run", trials, **given)


def test_ties_and_equals_are_on_the_front_and_dominated_points_are_not() -> None:
    assert sorted(row.design for row in front_of(history()).rows) == ["A", "B", "D", "F"]


def test_rows_come_by_rising_cost() -> None:
    assert [row.design for row in front_of(history()).rows] == ["F", "A", "D", "B"]


def test_the_hypervolume_is_against_the_stated_reference_point() -> None:
    found = front_of(history())
    assert found.hypervolume == pytest.approx(2.625)  # 0.4 * 5 + 0.3 * 2 + 0.25 * 0.1, strip by strip
    assert found.reference_point == REFERENCE


def test_a_bound_leaves_what_keeps_it() -> None:
    trials = history({"a": (0.1, 5.0), "b": (0.2, 3.0), "c": (0.3, 1.0)})
    assert [row.design for row in front_of(trials, "inference_seconds=2").rows] == ["c"]


def test_without_a_design_that_keeps_the_bound_the_nearest_are_listed_as_infeasible() -> None:
    found = front_of(history(), "inference_seconds=1ns")
    assert found.rows == ()
    assert [row.design for row in found.nearest] == ["F", "A", "C"]
    assert not any(row.feasible for row in found.nearest)
    text = front_text(found)
    assert "no design meets the bound inference_seconds=1e-09s" in text
    assert "infeasible" in text


def test_one_row_is_the_knee() -> None:
    found = front_of(history())
    assert sum(row.knee for row in found.rows) == 1
    assert front_text(found).count("*") == 2, "one mark and its legend"
    assert found.as_mapping()["knee"] == next(row.id for row in found.rows if row.knee)


def test_the_best_of_each_objective_is_named() -> None:
    found = front_of(history())
    assert {name: row.design for name, row in found.best.items()} == {"val_error": "B", "inference_seconds": "F"}
    assert "best: val_error 10.0 % (id 1), inference_seconds 2.9 s (id 5)" in front_text(found)
    assert found.as_mapping()["best"] == {"val_error": 1, "inference_seconds": 5}
    assert front_of(history(), "inference_seconds=1ns").as_mapping()["best"] == {}


def test_the_deviation_over_seeds_is_not_that_of_the_mean() -> None:
    # three seeds with a variance of 0.0003 of their mean: over seeds it is 3 * 0.0003
    assert front_of(history()).rows[0].val_error_std == pytest.approx(np.sqrt(0.0009))


def test_classics_stand_below_with_their_own_retraining() -> None:
    sgc = Retrained(str(CLASSICS["SGC"]), (7, 8), (0.2, 0.3), (0.8, 0.9), known={"inference_seconds": 0.001})
    found = front_of(history(), retrained={sgc.design: sgc}, num_test_readings=1)
    (row,) = found.classics
    assert (row.id, row.design) == ("SGC", "augmented^2/none/mlp-1/-")
    assert row.values["val_error"] == pytest.approx(0.25)
    assert row.test_score == Spread(pytest.approx(0.85), pytest.approx(np.std([0.8, 0.9], ddof=1)))  # type: ignore[arg-type]
    assert "SGC" in front_text(found)
    assert "2 fresh seeds" in front_text(found)


def test_a_classic_that_could_not_be_trained_says_why() -> None:
    failed = Retrained(str(CLASSICS["SGC"]), (7,), (), (), reason="out of memory")
    assert "out of memory" in front_text(front_of(history(), retrained={failed.design: failed}))


def test_the_data_of_a_front_is_json_with_the_promised_keys() -> None:
    sgc, a = CLASSICS["SGC"], Retrained("A", (7, 8), (0.1, 0.2), (0.75, 0.85))
    again = {"A": a, str(sgc): Retrained(str(sgc), (7, 8), (0.1, 0.2), (0.7, 0.8), known={"inference_seconds": 1e-3})}
    data = json.loads(json.dumps(front_of(history(), retrained=again).as_mapping(), allow_nan=False))
    for row in (*data["front"], *data["classics"]):
        assert {"id", "design", "val_error", "inference_seconds", "test_accuracy"} <= set(row)
    by_design = {row["design"]: row for row in data["front"]}
    assert by_design["A"]["test_accuracy"] == {"mean": pytest.approx(0.8), "std": pytest.approx(0.0707106781)}
    assert by_design["B"]["test_accuracy"] is None
    assert data["trials"] == {"running": 0, "complete": 6, "stopped": 0, "failed": 0}
    assert data["hypervolume"] == pytest.approx(2.625)


def test_counts_are_written_as_whole_numbers() -> None:
    row = front_of(history()).as_mapping()["front"][0]
    assert json.dumps(row["parameters"]) == "1000"
    assert json.dumps(row["val_error"]) == "0.25"


def test_scores_of_another_metric_are_not_called_accuracy() -> None:
    again = {"A": Retrained("A", (7, 8), (0.1, 0.2), (0.75, 0.85))}
    found = front_of(history(), retrained=again, metric="roc-auc")
    row = next(row for row in found.as_mapping()["front"] if row["design"] == "A")
    assert row["test_accuracy"] is None
    assert row["test_score"]["mean"] == pytest.approx(0.8)
    assert "test AUC %" in front_text(found)


def test_no_finished_trial_is_said() -> None:
    text = front_text(front_of(History(), reference=None))
    assert "no design has been evaluated completely" in text
    assert "no trials" in text


def test_names_with_markup_and_control_characters_are_shown_literally() -> None:
    from rich.console import Console

    cells = Cells(("design",), (("[red]x[/red]",), ("\x1b[31mX",)))
    console = Console(width=60, force_terminal=False)
    with console.capture() as captured:
        console.print(cells.rich(60))
    for text in (captured.get(), cells.text()):
        assert "[red]x[/red]" in text
        assert "\\x1b[31mX" in text
        assert "\x1b" not in text


def shown(cells: Cells, width: int) -> list[str]:
    """The lines of a table in a terminal of that width."""
    from rich.console import Console

    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(cells.rich(width))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_terminal_that_is_wide_enough_shows_each_row_in_one_line() -> None:
    cells = Cells(("id", "design"), (("1*", "augmented^3/none/mlp-2/augmented^4"), ("10", "-/-/mlp-2/-")), frozenset())
    widest = 3 + 1 + 34  # the longer id, a gap of two, the longer design
    assert shown(cells, widest) == [
        "id  design",
        "─" * widest,
        "1*  augmented^3/none/mlp-2/augmented^4",
        "10  -/-/mlp-2/-",
    ]


def test_a_narrow_terminal_breaks_designs_at_their_slashes() -> None:
    cells = Cells(("id", "design", "time"), (("1", "augmented^3/none/mlp-2/augmented^4", "5 ms"),), frozenset((2,)))
    assert shown(cells, 30) == [
        "id  design             time",
        "─" * 27,
        "1   augmented^3/none/  5 ms",
        "    mlp-2/augmented^4",
    ]


@pytest.mark.parametrize("width", [80, 60])
def test_no_line_of_a_front_is_wider_than_the_terminal(width: int) -> None:
    longest = Architecture.parse("augmented^10/weighted/mlp-10/augmented^10")
    values = {"val_error": 0.123, "inference_seconds": 0.0123, "parameters": 1234567.0}
    trial = Trial(number=100, design=longest, seeds=(1, 2)).complete(Outcome(values, {"val_error": 1e-4}), PAIR, 1.0)
    again = {str(longest): Retrained(str(longest), (1, 2), (0.1, 0.2), (0.8, 0.9))}
    found = front_of(History([replace(trial, number=0)]), retrained=again)
    lines = shown(front_cells(found, found.rows), width)
    assert max(map(len, lines)) <= width
    assert all(part in "".join(lines) for part in ("weighted", "1,234,567", "12.3 ms", "85.0 ± 7.1"))


def test_columns_line_up() -> None:
    assert Cells(("id", "value"), (("1", "10.5"), ("100", "2")), frozenset((1,))).text().split("\n") == [
        "id   value",
        "---  -----",
        "1     10.5",
        "100      2",
    ]


def test_a_usual_front_fits_eighty_columns() -> None:
    designs = {"ppr0.1^6/weighted/mlp-3/ppr0.3^4": (0.2, 0.0123), "augmented^10/adaptive/mlp-3/-": (0.1, 0.0456)}
    again = {name: Retrained(name, (1, 2), (0.1, 0.2), (0.75, 0.85)) for name in designs}
    text = front_text(front_of(history(designs), retrained=again))
    assert max(len(line) for line in text.split("\n") if "mlp" in line) <= 80


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("val_error", 0.1234, "12.3 %"),
        ("inference_seconds", 0.00123, "1.23 ms"),
        ("inference_seconds", 2.5, "2.5 s"),
        ("parameters", 184321.0, "184,321"),
        ("peak_memory_bytes", 12.5e6, "12.5 MB"),
        ("peak_memory_bytes", 12.5e9, "12.5 GB"),
        ("macs", None, "-"),
    ],
)
def test_values_are_told_in_handy_units(name: str, value: float | None, text: str) -> None:
    assert value_text(name, value) == text


def test_designs_are_shown_in_their_text_form() -> None:
    design = Architecture.parse("augmented^2/none/mlp-1/-")
    trial = Trial(number=0, design=design).complete(Outcome({"val_error": 0.1, "inference_seconds": 1.0}), PAIR, 1.0)
    assert str(design) in str(front_of(History([trial])))
