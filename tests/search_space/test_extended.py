"""The extended space: a bijection between designs, codes and numbers, with the paper's designs as they are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from search_space.architecture import Architecture
from search_space.classics import CLASSICS, LATER
from search_space.errors import SpaceError
from search_space.extended import ExtendedSpace
from search_space.space import SearchSpace, Unlisted

RECIPE = {
    "hidden_width": 128,
    "input_dropout": 0.5,
    "dropout": 0.5,
    "learning_rate": 0.03,
    "weight_decay": 5e-4,
    "normalise": "row",
}
SMALL = {
    "k_pre": [0, 1],
    "pre_kind": ["augmented", "ppr"],
    "pre_alpha": [0.1, 0.2],
    "pre_exponent": 0.5,
    "pre_loops": [0, 1],
    "message": ["none", "decay"],
    "message_decay": [0.1, 0.3],
    "k_trans": [1, 2, 3],
    "hidden_width": [64, 128],
    "dropout": 0.5,
    "norm": "none",
    "residual": ["on", "off"],
    "input_dropout": 0.5,
    "learning_rate": 0.03,
    "weight_decay": [5e-4, 0],
    "label_steps": 0,
    "adjacency": "none",
    "consistency": 0,
    "structure": "none",
    "normalise": "row",
    "k_post": 0,
}


@pytest.fixture(scope="module")
def space() -> ExtendedSpace:
    return ExtendedSpace(RECIPE)


def test_a_small_part_is_listed_by_number_without_doubles() -> None:
    """Before: 1 + (2 + 2·2)·(1 + 2) = 19; transform: 1 + 2 + 2·2 = 7; weight decay 2."""
    space = ExtendedSpace(RECIPE, SMALL)
    designs = [space.design(index) for index in range(len(space))]
    assert len(space) == 19 * 7 * 2 == len(set(designs)) == len({str(design) for design in designs})
    assert [space.index(design) for design in designs] == list(range(len(space)))


def test_a_sample_of_a_small_part_ends_with_all_of_it() -> None:
    space = ExtendedSpace(RECIPE, SMALL)
    assert set(space.sample(10_000, np.random.default_rng(0))) == {space.design(i) for i in range(len(space))}


def test_designs_come_back_from_codes_numbers_and_texts(space: ExtendedSpace) -> None:
    designs = space.sample(200, np.random.default_rng(0))
    codes = space.encode(designs)
    assert len(set(designs)) == 200
    assert space.decode(codes) == designs
    np.testing.assert_array_equal(space.settle(codes), codes)
    assert [space.design(space.index(design)) for design in designs] == designs
    assert [Architecture.parse(str(design)) for design in designs] == designs


def test_the_papers_designs_and_the_classics_are_points_of_it_as_they_are(space: ExtendedSpace) -> None:
    assert all(design in space for design in SearchSpace.paper().sample(300, np.random.default_rng(0)))


def test_a_search_of_it_starts_with_the_classics_and_the_later_models(space: ExtendedSpace) -> None:
    assert space.starting_designs() == [*CLASSICS.values(), *LATER.values()]
    wide = ExtendedSpace({**RECIPE, "hidden_width": 32, "learning_rate": 0.01})
    assert [str(design) for design in wide.starting_designs()[-2:]] == [
        "augmented^8/mean/mlp-2/-@consistency=1",
        "augmented^5/mean/mlp-2/-@dropout=0.8,lr=0.1,norm=batch,consistency=1",
    ]
    assert ExtendedSpace(RECIPE, {"k_pre": [0], "k_post": [0]}).starting_designs() == [CLASSICS["MLP"], LATER["LINKX"]]


def test_a_design_that_says_what_the_recipe_says_is_no_second_point(space: ExtendedSpace) -> None:
    design = Architecture.parse("-/-/mlp-2/-@hidden=128")
    assert design not in space
    with pytest.raises(SpaceError, match="spells out hidden_width=128, which the recipe says anyway"):
        space.encode([design])
    other = ExtendedSpace({**RECIPE, "hidden_width": 48})
    assert design in other
    assert Architecture.parse("-/-/mlp-2/-") in other


def test_a_neighbour_differs_in_one_choice(space: ExtendedSpace) -> None:
    for design in space.sample(20, np.random.default_rng(1)):
        (own,) = space.encode([design])
        for row in space.encode(space.neighbours(design)):
            changed = np.flatnonzero((row != own) & (row >= 0) & (own >= 0))
            assert len(changed) <= 1
            for j in changed:
                assert space.choices[j].kind == "categorical" or abs(int(row[j]) - int(own[j])) == 1


def test_switching_a_stage_on_offers_every_operator_and_join(space: ExtendedSpace) -> None:
    near = space.neighbours(Architecture.parse("-/-/mlp-2/-"))
    switched = {(one.pre_aggregator, one.message) for one in near if one.k_pre == 1}
    kinds = ("augmented", "ppr0.1", "triangle", "heat0.5", "highpass", "twochannel")
    joins = ("none", "mean", "max", "concat", "weighted", "adaptive", "sum", "recursive", "jk", "decay0.1")
    assert switched == set(itertools.product(kinds, joins))
    assert {one.post_aggregator for one in near if one.k_post} == {
        "augmented",
        "ppr0.1",
        "triangle",
        "heat0.5",
        "cs0.8",
    }


def test_it_reads_back_what_it_wrote() -> None:
    space = ExtendedSpace(RECIPE, SMALL)
    assert ExtendedSpace.from_mapping(space.as_mapping(), RECIPE).choices == space.choices
    assert space.as_mapping()["base"] == "extended"


def test_it_is_refused_to_be_listed(space: ExtendedSpace) -> None:
    assert isinstance(space, Unlisted)
    assert not isinstance(SearchSpace.paper(), Unlisted)
    with pytest.raises(SpaceError, match="too many to list"):
        space.codes()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"k_hops": [1]}, "unknown choice 'k_hops' of the extended space; choose from: k_pre, pre_kind"),
        ({"k_pre": []}, "k_pre of the extended space is empty"),
        ({"norm": ["layer", "layer"]}, "norm of the extended space repeats a value: layer, layer"),
        ({"norm": ["group"]}, "norm of the extended space holds values such as none, layer, batch; got 'group'"),
        ({"pre_alpha": [1.5]}, "pre_alpha of the extended space holds values such as 0.05, 0.1"),
        ({"hidden_width": [0]}, "hidden_width of the extended space holds values such as 32, 64"),
        ({"k_trans": [0]}, "k_trans of the extended space holds values such as 1, 2"),
        ({"normalise": ["max"]}, "normalise of the extended space holds values such as row, symmetric"),
        ({"label_steps": [-1]}, "label_steps of the extended space holds values such as 0, 1"),
        ({"pre_loops": [-1]}, "pre_loops of the extended space holds values such as 0.0, 0.5"),
    ],
)
def test_a_wrong_restriction_is_refused_with_the_reason(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(SpaceError, match=told):
        ExtendedSpace(RECIPE, wrong)
