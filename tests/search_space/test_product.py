"""A space of one's own: every combination once, in one order, with the neighbours that a hand would write down."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from search_space.errors import SpaceError
from search_space.product import ProductSpace


def space() -> ProductSpace:
    return ProductSpace({"depth": [1, 2, 3], "rate": [0.1, 0.5], "kind": ["b", "a"]})


def test_every_combination_is_there_once_and_rows_agree() -> None:
    made = space()
    designs = [made.design(row) for row in range(len(made))]
    assert len(set(map(str, designs))) == len(made) == 12
    assert str(designs[0]) == "depth=1, rate=0.1, kind=b"
    assert [made.index(design) for design in designs] == list(range(12))
    assert np.array_equal(made.encode(designs), made.codes())


def test_kinds_follow_from_values() -> None:
    assert [choice.kind for choice in space().choices] == ["ordinal", "number", "categorical"]
    assert ProductSpace({"x": [3, 1]}).choices[0].kind == "categorical"


def test_choices_are_attributes() -> None:
    design = space().design(11)
    assert (design.depth, design.rate, design.kind) == (3, 0.5, "a")
    with pytest.raises(AttributeError, match="no choice 'width'"):
        _ = design.width
    assert pickle.loads(pickle.dumps(design)) == design


def test_neighbours_differ_in_one_choice_by_one_step() -> None:
    made = space()
    found = {str(design) for design in made.neighbours(made.design(0))}
    assert found == {"depth=2, rate=0.1, kind=b", "depth=1, rate=0.5, kind=b", "depth=1, rate=0.1, kind=a"}


def test_samples_are_distinct() -> None:
    made = space()
    assert len(set(made.sample(7, np.random.default_rng(0)))) == 7
    assert len(made.sample(99, np.random.default_rng(0))) == 12


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({}, "at least one choice"),
        ({"a": []}, "a has no values"),
        ({"a": [1, 1]}, "repeats a value: 1, 1"),
        ({"a b": [1]}, "got 'a b'"),
        ({"a": range(1001), "b": range(1000)}, "at most 1,000,000 designs, got 1,001,000"),
    ],
)
def test_what_is_no_space_is_refused(choices: dict[str, list[int]], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        ProductSpace(choices)


def test_a_design_of_another_space_is_refused() -> None:
    other = ProductSpace({"depth": [9]}).design(0)
    assert other not in space()
    with pytest.raises(SpaceError, match="no design depth=9"):
        space().index(other)


@pytest.mark.parametrize("searcher", ["random", "ehvi"])
def test_it_can_be_searched_to_its_end(tmp_path: Path, searcher: str) -> None:
    import pasca

    study = pasca.search(
        evaluator=lambda design: (design.rate / design.depth, 1.0 * design.depth),
        space=space(),
        evaluations=20,
        num_initial=4,
        searcher=searcher,
        out=tmp_path / searcher,
    )
    assert len(study.history.complete) == 12
    assert {str(row.design) for row in study.front().rows} == {
        f"depth={depth}, rate=0.1, kind={kind}" for depth in (1, 2, 3) for kind in "ab"
    }
