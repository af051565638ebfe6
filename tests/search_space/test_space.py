import re
from collections import Counter
from collections.abc import Iterable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from search_space.architecture import PAPER_AGGREGATORS, PAPER_MESSAGES, Architecture
from search_space.classics import CLASSICS
from search_space.errors import SpaceError
from search_space.space import SearchSpace

PAPER = SearchSpace.paper()
SMALL = SearchSpace.paper(
    k_pre=[0, 1, 3], pre_aggregator=["augmented", "ppr0.2"], message=["mean", "none"], k_trans=[1, 2, 5], k_post=[0, 2]
)
rows = st.integers(0, len(PAPER) - 1)


def subset(values: Iterable[object]) -> st.SearchStrategy[list[object]]:
    return st.lists(st.sampled_from(list(values)), min_size=1, unique=True)


restrictions = st.fixed_dictionaries(
    {},
    optional={
        "k_pre": subset(range(4)),
        "pre_aggregator": subset(PAPER_AGGREGATORS),
        "message": subset(PAPER_MESSAGES),
        "k_trans": subset(range(1, 4)),
        "k_post": subset(range(4)),
        "post_aggregator": subset(PAPER_AGGREGATORS),
    },
)


def every_design(space: SearchSpace) -> set[Architecture]:
    """All combinations of choices, made canonical: what the space should hold, without its own arithmetic."""
    names = ("k_pre", "pre_aggregator", "message", "k_trans", "k_post", "post_aggregator")
    return {Architecture(*choice) for choice in product(*(getattr(space, name) for name in names))}


def test_the_papers_space_has_exactly_153510_distinct_designs() -> None:
    designs = {PAPER.design(row) for row in range(len(PAPER))}
    assert len(PAPER) == len(designs) == 153_510
    assert len({str(design) for design in designs}) == 153_510
    assert len(np.unique(PAPER.codes(), axis=0)) == 153_510


def test_the_papers_space_is_every_canonical_combination() -> None:
    # 11 · 5 · 6 · 10 · 11 · 5 = 181,500 combinations, of which those that differ in inactive choices alone coincide.
    designs = every_design(PAPER)
    assert len(designs) == 153_510
    assert all(design in PAPER for design in designs)


@settings(max_examples=40, deadline=None)
@given(restrictions)
def test_a_restriction_holds_every_canonical_combination_once(choices: dict[str, list[object]]) -> None:
    space = SearchSpace.from_mapping({"k_pre": range(3), "k_post": range(3), "k_trans": (1, 2), **choices})
    listed = [space.design(row) for row in range(len(space))]
    assert len(set(listed)) == len(listed) == len(space)
    assert set(listed) == every_design(space)


@given(rows)
def test_design_and_index_are_inverse(row: int) -> None:
    assert PAPER.index(PAPER.design(row)) == row


@settings(max_examples=20)
@given(st.lists(rows, max_size=20))
def test_encode_gives_the_rows_of_codes(wanted: list[int]) -> None:
    encoded = PAPER.encode([PAPER.design(row) for row in wanted])
    assert encoded.shape == (len(wanted), 6)
    assert (encoded == PAPER.codes()[wanted]).all()


def test_codes_are_positions_of_the_values_and_minus_one_where_inactive() -> None:
    for row in (0, 1, 12345, 99999, len(PAPER) - 1):
        design = PAPER.design(row)
        for choice, code in zip(PAPER.choices, PAPER.codes()[row], strict=True):
            value = getattr(design, choice.name)
            assert value is None if code == -1 else choice.values[code] == value


def test_inactive_codes_are_exactly_those_of_stages_that_are_off() -> None:
    codes = PAPER.codes()
    column = {choice.name: j for j, choice in enumerate(PAPER.choices)}
    for choice in PAPER.choices:
        off = codes[:, column[choice.parent]] == 0 if choice.parent else np.zeros(len(codes), dtype=bool)
        assert ((codes[:, column[choice.name]] == -1) == off).all()


def test_sampling_gives_distinct_designs() -> None:
    drawn = PAPER.sample(5000, np.random.default_rng(0))
    assert len(set(drawn)) == 5000


def test_sampling_is_uniform() -> None:
    rng = np.random.default_rng(1)
    counts = Counter(SMALL.index(design) for _ in range(2000) for design in SMALL.sample(3, rng))
    observed = [counts[row] for row in range(len(SMALL))]
    assert stats.chisquare(observed).pvalue > 1e-3


def test_sampling_more_than_there_is_gives_everything_once() -> None:
    drawn = SMALL.sample(10_000, np.random.default_rng(0))
    assert len(drawn) == len(SMALL)
    assert set(drawn) == every_design(SMALL)


@settings(max_examples=60, deadline=None)
@given(rows)
def test_neighbours_are_distinct_lie_in_the_space_and_are_not_the_design(row: int) -> None:
    design = PAPER.design(row)
    found = PAPER.neighbours(design)
    assert design not in found
    assert len(set(found)) == len(found)
    assert all(other in PAPER for other in found)


@settings(max_examples=15, deadline=None)
@given(rows)
def test_neighbours_are_mutual(row: int) -> None:
    design = PAPER.design(row)
    assert all(design in PAPER.neighbours(other) for other in PAPER.neighbours(design))


def test_neighbours_worked_by_hand() -> None:
    space = SearchSpace.paper(
        k_pre=[0, 1, 2], pre_aggregator=["augmented", "triangle"], message=["mean"], k_trans=[1, 2, 3], k_post=[0]
    )
    found = [str(design) for design in space.neighbours(Architecture.parse("augmented^1/mean/mlp-2/-"))]
    assert sorted(found) == [
        "-/-/mlp-2/-",
        "augmented^1/mean/mlp-1/-",
        "augmented^1/mean/mlp-3/-",
        "augmented^2/mean/mlp-2/-",
        "triangle^1/mean/mlp-2/-",
    ]
    switched_on = [str(design) for design in space.neighbours(Architecture.parse("-/-/mlp-1/-"))]
    assert sorted(switched_on) == ["-/-/mlp-2/-", "augmented^1/mean/mlp-1/-", "triangle^1/mean/mlp-1/-"]


def test_steps_are_one_position_apart_where_counts_are_left_out() -> None:
    space = SearchSpace.paper(k_pre=[0], k_trans=[1, 4, 9], k_post=[0])
    assert [d.k_trans for d in space.neighbours(Architecture(0, None, None, 4))] == [1, 9]


def test_starting_designs_are_the_classics_of_the_space() -> None:
    assert set(PAPER.starting_designs()) == set(CLASSICS.values()) - {CLASSICS["GBP"]}
    assert SearchSpace.paper(k_pre=[0], k_post=[0]).starting_designs() == [CLASSICS["MLP"]]


def test_fixed_decay_may_be_asked_for() -> None:
    assert CLASSICS["GBP"] in SearchSpace.paper(message=["decay0.1", "mean"])


def test_a_stage_that_is_always_off_needs_no_aggregator() -> None:
    space = SearchSpace.paper(k_pre=[0], pre_aggregator=[], message=[], k_trans=[1, 2], k_post=[0], post_aggregator=[])
    assert [str(space.design(row)) for row in range(len(space))] == ["-/-/mlp-1/-", "-/-/mlp-2/-"]


def test_a_mapping_reads_back() -> None:
    assert SearchSpace.from_mapping(SMALL.as_mapping()) == SMALL


def test_counts_are_kept_ascending_and_single_values_need_no_list() -> None:
    space = SearchSpace.paper(k_pre=[3, 1], k_trans=2, message="mean")
    assert (space.k_pre, space.k_trans, space.message) == ((1, 3), (2,), ("mean",))


def test_only_a_design_of_the_space_is_in_it() -> None:
    assert CLASSICS["MLP"] in SMALL
    assert CLASSICS["PaSca-V3"] not in SMALL
    assert "-/-/mlp-2/-" not in SMALL


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            {"k_hops": [1]},
            "unknown dimension 'k_hops' of the search space; choose from: k_pre, pre_aggregator, message",
        ),
        ({"k_pre": []}, "k_pre of a search space is empty"),
        ({"k_trans": [0]}, "k_trans of a search space lists whole numbers of at least 1, got 0"),
        ({"k_pre": [-1]}, "k_pre of a search space lists whole numbers of at least 0, got -1"),
        ({"k_pre": [1.5]}, "k_pre of a search space lists whole numbers of at least 0, got 1.5"),
        ({"k_pre": [True]}, "k_pre of a search space lists whole numbers of at least 0, got True"),
        ({"k_pre": "12"}, "k_pre of a search space lists whole numbers of at least 0, got '12'"),
        ({"k_post": [1, 1]}, "k_post of a search space repeats a value: 1, 1"),
        ({"message": ["mean", "mean"]}, "message of a search space repeats a value: mean, mean"),
        ({"pre_aggregator": ["ppr0.1", "ppr0.10"]}, "pre_aggregator of a search space repeats a value: ppr0.1, ppr0.1"),
        ({"message": ["avg"]}, "message of the search space: unknown message aggregator 'avg'; choose from: none"),
        ({"message": [3]}, "message of a search space lists names, got 3"),
        ({"message": []}, "message of a search space is empty"),
        ({"post_aggregator": ["highpass"]}, "post_aggregator of the search space: highpass is no graph aggregator of"),
        ({"k_post": [2], "post_aggregator": []}, "post_aggregator of a search space is empty"),
    ],
)
def test_a_wrong_restriction_is_refused_with_the_reason(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(SpaceError, match=re.escape(told)):
        SearchSpace.from_mapping(wrong)


def test_a_design_that_chooses_its_training_is_no_point_of_the_papers_space() -> None:
    design = Architecture.parse("augmented^2/mean/mlp-2/-@hidden=32")
    assert design not in PAPER
    with pytest.raises(SpaceError, match="hidden_width is no choice of it"):
        PAPER.encode([design])


def test_a_design_outside_names_the_choice_that_is_missing() -> None:
    with pytest.raises(
        SpaceError, match=r"augmented\^9/mean/mlp-1/- is not in the search space: k_pre 9 is not one of 0, 1, 3"
    ):
        SMALL.index(Architecture(9, "augmented", "mean", 1))
    with pytest.raises(SpaceError, match="message 'max' is not one of mean, none"):
        SMALL.encode([Architecture(1, "augmented", "max", 1)])
    with pytest.raises(SpaceError, match="post_aggregator"):
        SearchSpace.paper(post_aggregator=["triangle"]).neighbours(CLASSICS["APPNP"])


@pytest.mark.parametrize("row", [-1, 153_510])
def test_a_row_outside_is_refused(row: int) -> None:
    with pytest.raises(SpaceError, match=f"the space has designs 0 to 153509, got index {row}"):
        PAPER.design(row)
