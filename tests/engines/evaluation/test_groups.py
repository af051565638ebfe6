"""Which ranks evaluate together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.evaluation.groups import Roles
from search_space.errors import ConfigError


@pytest.mark.parametrize(
    ("num_ranks", "each", "groups", "idle"),
    [
        (1, 1, ((0,),), ()),
        (2, 1, ((0,), (1,)), ()),  # rank 0 evaluates too
        (2, 2, ((0, 1),), ()),
        (3, 1, ((1,), (2,)), ()),
        (3, 2, ((1, 2),), ()),
        (3, 3, ((0, 1, 2),), ()),  # all ranks form one evaluator
        (6, 2, ((1, 2), (3, 4)), (5,)),
    ],
)
def test_roles(num_ranks: int, each: int, groups: tuple[tuple[int, ...], ...], idle: tuple[int, ...]) -> None:
    assert Roles.of(num_ranks, each) == Roles(groups, idle)


@given(st.integers(1, 40), st.integers(1, 40))
def test_every_rank_has_one_role(num_ranks: int, each: int) -> None:
    if each > num_ranks:
        return
    roles = Roles.of(num_ranks, each)
    ranks = [rank for group in roles.groups for rank in group] + list(roles.idle)
    assert sorted(ranks) == list(range(num_ranks)) or sorted([0, *ranks]) == list(range(num_ranks))
    assert all(len(group) == each for group in roles.groups)
    assert roles.groups
    for number, group in enumerate(roles.groups):
        assert all(roles.color(rank) == number for rank in group)


@pytest.mark.parametrize("each", [0, 5])
def test_a_group_that_cannot_be_formed_is_refused(each: int) -> None:
    with pytest.raises(ConfigError, match=f"has 1 to 4 of the 4 ranks, got {each}"):
        Roles.of(4, each)
