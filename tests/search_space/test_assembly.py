"""From a design to its network."""

from __future__ import annotations

import pytest
import torch

from search_space.architecture import MESSAGES, Architecture
from search_space.assembly import Network
from search_space.message_operators import message_operator


def generators(*seeds: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("message", [*MESSAGES, "decay0.1"])
def test_network_is_join_then_transform(message: str) -> None:
    design = Architecture.parse(f"augmented^2/{message}/mlp-2/-")
    network = Network(design, 3, 4, 5, generators(0, 1))
    hops = torch.randn(3, 6, 3)
    scores = network(network.prepare(hops))
    assert scores.shape == (2, 6, 4)
    assert network.join is not None
    torch.testing.assert_close(scores, network.transform(network.join(hops)))


def test_a_design_without_preprocessing_reads_the_features_themselves() -> None:
    network = Network(Architecture.parse("-/-/mlp-1/-"), 3, 4, 5, generators(0))
    hops = torch.randn(1, 6, 3)
    assert network.join is None
    torch.testing.assert_close(network(network.prepare(hops)), network.transform(hops[0]))


def test_the_hop_weights_of_weighted_are_the_only_ones_without_decay() -> None:
    weighted = Network(Architecture.parse("augmented^2/weighted/mlp-2/-"), 3, 4, 5, generators(0))
    assert [tuple(p.shape) for p in weighted.undecayed_parameters()] == [(1, 3)]
    adaptive = Network(Architecture.parse("augmented^2/adaptive/mlp-2/-"), 3, 4, 5, generators(0))
    assert adaptive.undecayed_parameters() == []


def test_every_message_of_the_paper_can_be_built() -> None:
    for message in MESSAGES:
        assert message_operator(message, 2, 3, generators(0)).num_hops == 2
