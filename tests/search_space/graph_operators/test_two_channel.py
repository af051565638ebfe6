"""Two channels are the low-pass and the high-pass operator, in that order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from search_space.errors import DesignError
from search_space.graph_operators import TwoChannel, channels, graph_operator

PAIR = sparse.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
"""Two nodes and an edge: Â has 1/2 everywhere."""


def test_the_channels_of_a_pair_by_hand() -> None:
    low, high = TwoChannel().channels
    np.testing.assert_allclose(low.matrix(PAIR) @ np.array([1.0, 0.0]), [0.5, 0.5])
    np.testing.assert_allclose(high.matrix(PAIR) @ np.array([1.0, 0.0]), [0.5, -0.5])


def test_both_channels_have_the_normalisation_in_the_name() -> None:
    assert [operator.name for operator in channels("twochannel_r0.25")] == ["augmented_r0.25", "highpass_r0.25"]


def test_it_is_no_single_operator() -> None:
    with pytest.raises(DesignError, match="twochannel has 2 matrices"):
        graph_operator("twochannel")
