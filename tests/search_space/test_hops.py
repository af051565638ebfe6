"""What a design's hops are."""

from __future__ import annotations

import pytest

from search_space.architecture import Architecture
from search_space.hops import hop_width, pre_operators, required_hops


@pytest.mark.parametrize(
    ("text", "hops"),
    [
        ("-/-/mlp-2/ppr0.1^3", (0,)),
        ("augmented^4/none/mlp-1/-", (4,)),
        ("augmented^2/mean/mlp-1/-", (0, 1, 2)),
        ("ppr0.1^1/adaptive/mlp-1/-", (0, 1)),
    ],
)
def test_only_hops_that_are_joined_are_required(text: str, hops: tuple[int, ...]) -> None:
    assert required_hops(Architecture.parse(text)) == hops


@pytest.mark.parametrize(
    ("text", "num_channels"), [("-/-/mlp-1/-", 0), ("augmented^2/mean/mlp-1/-", 1), ("twochannel^2/mean/mlp-1/-", 2)]
)
def test_every_channel_has_an_operator_and_columns_of_its_own(text: str, num_channels: int) -> None:
    design = Architecture.parse(text)
    assert len(pre_operators(design)) == num_channels
    assert hop_width(design, 7) == 7 * max(num_channels, 1)
