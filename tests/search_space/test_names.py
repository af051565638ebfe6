"""Names of operators: one spelling each, which parses back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_space.architecture import Architecture
from search_space.errors import DesignError
from search_space.names import NUMBERED_KINDS, POST_KINDS, PRE_KINDS, AggregatorName, canonical_aggregator

kinds = st.sampled_from(sorted({*PRE_KINDS, *POST_KINDS}))
hundredths = st.integers(1, 99).map(lambda n: n / 100)


@given(kinds, hundredths, st.integers(0, 100).map(lambda n: n / 100), st.integers(0, 40).map(lambda n: n / 4))
def test_a_name_parses_back(kind: str, strength: float, exponent: float, loops: float) -> None:
    name = AggregatorName(kind, strength if kind in NUMBERED_KINDS else None, exponent, loops)
    assert AggregatorName.parse(str(name)) == name


@pytest.mark.parametrize(
    ("spelled", "canonical"),
    [
        ("augmented_r0.50_loops1.0", "augmented"),
        ("ppr.10_r0.250", "ppr0.1_r0.25"),
        ("heat0.50_loops2.0", "heat0.5_loops2"),
        ("cs0.80", "cs0.8"),
    ],
)
def test_one_spelling(spelled: str, canonical: str) -> None:
    assert canonical_aggregator(spelled) == canonical


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gcn", "unknown graph aggregator 'gcn'"),
        ("augmented_loops2_r0.5", "unknown graph aggregator"),
        ("heat", "graph aggregator heat takes a number, as in heat0.1"),
        ("highpass0.5", "graph aggregator highpass takes no number"),
        ("augmented_r1.5", "exponent r of a graph aggregator lies from 0 to 1, got 1.5"),
    ],
)
def test_what_is_no_name_says_why(name: str, message: str) -> None:
    with pytest.raises(DesignError, match=message):
        AggregatorName.parse(name)


@pytest.mark.parametrize("text", ["cs0.8^2/none/mlp-1/-", "-/-/mlp-1/highpass^1", "-/-/mlp-1/twochannel^1"])
def test_an_operator_belongs_to_its_stage(text: str) -> None:
    with pytest.raises(DesignError, match="is no graph aggregator of"):
        Architecture.parse(text)
