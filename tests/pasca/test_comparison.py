"""Runs side by side: hypervolumes by hand against one reference point, and what makes runs unequal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pasca.comparison import compare
from pasca.searching import search
from search_space.errors import RunError

SPACE = {"k_pre": [0], "k_trans": [1, 2, 3], "k_post": [0]}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Any]:
    """Search the three depths, each with given (val_error, seconds)."""

    def make(run: str, values: dict[int, tuple[float, float]], **settings: Any) -> Any:
        return search(
            evaluator=lambda design: values[design.k_trans],
            space=SPACE,
            evaluations=3,
            num_initial=1,
            searcher="random",
            out=tmp_path / run,
            **settings,
        )

    return make


def test_hypervolumes_are_measured_against_one_reference_point(make: Callable[..., Any]) -> None:
    # The worst values of all are 0.6 and 5, their ranges 0.5 and 4: the reference point is (0.65, 5.4).
    one = make("one", {1: (0.5, 1.0), 2: (0.3, 2.0), 3: (0.6, 3.0)})
    two = make("two", {1: (0.1, 5.0), 2: (0.4, 4.0), 3: (0.5, 5.0)})
    found = compare([one, two])
    assert found.reference_point == pytest.approx({"val_error": 0.65, "inference_seconds": 5.4})
    first = 0.15 * (2.0 - 1.0) + 0.35 * (5.4 - 2.0)
    second = 0.25 * (5.0 - 4.0) + 0.55 * (5.4 - 5.0)
    together = 0.15 * (2.0 - 1.0) + 0.35 * (5.0 - 2.0) + 0.55 * (5.4 - 5.0)
    assert [run.hypervolume for run in found.runs] == pytest.approx([first, second])
    assert [run.share for run in found.runs] == pytest.approx([first / together, second / together])
    assert found.runs[0].best == pytest.approx({"val_error": 0.3, "inference_seconds": 1.0})
    assert found.runs[1].steps[-1].hypervolume == pytest.approx(second)


def test_a_table_has_one_row_a_run(make: Callable[..., Any]) -> None:
    values = {1: (0.5, 1.0), 2: (0.3, 2.0), 3: (0.6, 3.0)}
    cells = compare([make("one", values), make("two", values)]).cells()
    assert [row[0] for row in cells.rows] == ["one", "two"]
    assert {len(row) for row in cells.rows} == {len(cells.titles)}
    assert "data" not in cells.titles, "what is the same for all runs is left out"


def test_a_table_of_two_runs_fits_80_columns(make: Callable[..., Any]) -> None:
    values = {1: (0.5, 1.0), 2: (0.3, 2.0), 3: (0.6, 3.0)}
    cells = compare([make("monday", values), make("tuesday", values)]).cells()
    assert max(map(len, cells.text().splitlines())) <= 80


def test_bounds_hold_for_all_runs(make: Callable[..., Any]) -> None:
    values = {1: (0.5, 1.0), 2: (0.3, 2.0), 3: (0.1, 3.0)}
    found = compare([make("one", values), make("two", values)], "inference_seconds=2")
    assert [[trial.values["inference_seconds"] for trial in run.front] for run in found.runs] == [[1.0, 2.0]] * 2
    with pytest.raises(RunError, match="keeps the bounds"):
        compare([make("three", values), make("four", values)], "inference_seconds=1ms")


def test_differences_are_stated(make: Callable[..., Any]) -> None:
    values = {1: (0.5, 1.0), 2: (0.3, 2.0), 3: (0.6, 3.0)}
    found = compare([make("one", values), make("two", values, repeats=5)])
    assert found.notes == ("not the same seeds per design as one: two",)


def test_runs_with_other_objectives_do_not_compare(make: Callable[..., Any]) -> None:
    values = {1: (0.5, 1.0), 2: (0.3, 2.0), 3: (0.6, 3.0)}
    one, two = make("one", values), make("two", values, objectives="val_error,parameters")
    with pytest.raises(RunError, match="the same objectives, got val_error,inference_seconds in one and"):
        compare([one, two])


def test_one_run_is_no_comparison(make: Callable[..., Any]) -> None:
    with pytest.raises(RunError, match="two or more runs, got 1"):
        compare([make("one", {1: (0.5, 1.0), 2: (0.3, 2.0), 3: (0.6, 3.0)})])


def test_runs_of_one_name_are_told_apart_by_their_folders(make: Callable[..., Any], tmp_path: Path) -> None:
    values = {1: (0.5, 1.0), 2: (0.3, 2.0), 3: (0.6, 3.0)}
    found = compare([make("a/same", values), make("b/same", values)])
    assert [run.name for run in found.runs] == [f"same ({tmp_path}/a/same)", f"same ({tmp_path}/b/same)"]
