"""Known objectives: counted by hand, equal to the built network, and the table equal to the single design."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engines.evaluation.costs import Sizes, cost_of, cost_table, parameters, stages
from search_space.architecture import MESSAGES, Architecture
from search_space.assembly import Network
from search_space.hops import hop_width
from search_space.space import SearchSpace

SIZES = Sizes(num_nodes=5, num_features=3, num_classes=4, hidden_width=6, adjacency_entries=8)
ENTRIES = {"augmented": 13, "triangle": 11, "highpass": 12, "heat0.5": 10}


class CountedSeconds(dict[str, float]):
    """A stage's time made from its name, so that sums over stages are easy to tell apart."""

    def __missing__(self, stage: str) -> float:
        self[stage] = (sum(map(ord, stage)) % 97 + 1) / 1000
        return self[stage]


@pytest.mark.parametrize("message", [*MESSAGES, "decay0.2"])
@pytest.mark.parametrize("k_trans", [1, 2, 5])
@pytest.mark.parametrize("extras", ["", "@hidden=9,norm=layer,residual=off,labels=2,adjacency=rows,structure=counts"])
@pytest.mark.parametrize("aggregator", ["augmented", "twochannel"])
def test_parameters_equal_those_of_the_network(message: str, k_trans: int, extras: str, aggregator: str) -> None:
    design = Architecture.parse(f"{aggregator}^4/{message}/mlp-{k_trans}/-{extras}")
    network = Network(design, hop_width(design, 3), 4, design.hidden_width or 6, [torch.Generator()], num_nodes=5)
    assert parameters(design, SIZES) == sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize(
    ("text", "macs"),
    [
        ("-/-/mlp-1/-", 5 * 3 * 4),
        ("augmented^2/none/mlp-1/-", 13 * 3 * 2 + 5 * 3 * 4),
        ("triangle^2/mean/mlp-2/-", 11 * 3 * 2 + 5 * 3 * 3 + 5 * (3 * 6 + 6 * 4)),
        ("augmented^1/concat/mlp-1/-", 13 * 3 + 5 * 6 * 4),
        ("augmented^1/adaptive/mlp-3/ppr0.1^7", 13 * 3 + 2 * 5 * 3 * 2 + 5 * (18 + 36 + 24) + 13 * 4 * 7),
        ("augmented^1/recursive/mlp-1/-", 13 * 3 + 3 * 5 * 3 * 2 + 5 * 3 * 4),
        ("augmented^1/jk/mlp-1/-", 13 * 3 + (2 + 16) * 5 * 3 * 2 + 5 * 3 * 4),
        ("-/-/mlp-2/-@adjacency=rows", 5 * (3 * 6 + 6 * 4) + 8 * 6),
        ("-/-/mlp-2/-@structure=counts", 5 * (3 * 6 + 6 * 4) + 5 * 6 * 6),
        ("-/-/mlp-2/-@labels=3", 5 * (3 * 6 + 6 * 4) + 13 * 4 * 3 + 5 * 4 * 6),
        ("-/-/mlp-3/-@hidden=2,norm=layer", 5 * (3 * 2 + 2 * 2 + 2 * 4) + 5 * 2 * 2),
        ("-/-/mlp-3/-@hidden=2,norm=batch", 5 * (3 * 2 + 2 * 2 + 2 * 4)),  # folded into weights
        ("twochannel^2/none/mlp-1/-", (13 + 12) * 3 * 2 + 5 * 6 * 4),
        ("heat0.5^2/mean/mlp-1/cs0.8^3", 10 * 3 * 2 + 5 * 3 * 3 + 5 * 3 * 4 + 13 * 4 * 3 * 2),
        ("-/-/mlp-1/triangle^2", 5 * 3 * 4 + 11 * 4 * 2),
    ],
)
def test_macs_by_hand(text: str, macs: int) -> None:
    assert cost_of(Architecture.parse(text), SIZES, CountedSeconds(), ENTRIES)["macs"] == macs


def test_stages_of_a_full_design() -> None:
    plan = dict(stages(Architecture.parse("ppr0.1^6/weighted/mlp-4/augmented^2"), SIZES))
    assert plan == {
        "build/augmented": 1.0,  # once for both graph stages
        "normalise": 1.0,
        "hop/augmented+restart/3": 6,
        "join/weighted/6": 1.0,
        "first-layer/3": 1.0,
        "hidden-layer": 2.0,
        "last-layer": 1.0,
        "hop/augmented/4": 2,
    }


def test_stages_of_two_channels_and_of_correct_and_smooth() -> None:
    plan = dict(stages(Architecture.parse("twochannel^3/none/mlp-1/cs0.8^5"), SIZES))
    assert plan == {
        "build/augmented": 1.0,
        "build/highpass": 1.0,
        "normalise": 1.0,
        "hop/augmented/3": 3,
        "hop/highpass/3": 3,
        "join-channels/none/3": 1.0,
        "only-layer/6": 1.0,
        "cs-step/augmented/4": 10.0,
        "cs-scale": 1.0,
    }


def test_stages_of_further_inputs_and_of_another_normalisation() -> None:
    extras = "features=l2,labels=2,adjacency=rows,structure=counts"
    plan = dict(stages(Architecture.parse(f"triangle^1/none/mlp-1/-@{extras}"), SIZES))
    assert plan == {
        "build/triangle": 1.0,
        "build/augmented": 1.0,
        "normalise/l2": 1.0,
        "hop/triangle/3": 1.0,
        "hop/augmented/4": 2.0,
        "label-layer/4": 1.0,
        "adjacency-layer/4": 1.0,
        "count-structure": 1.0,
        "structure-layer/4": 1.0,
        "only-layer/3": 1.0,
    }


def test_stages_are_named_after_the_width_where_it_is_not_the_recipes() -> None:
    plan = dict(stages(Architecture.parse("-/-/mlp-4/-@hidden=9,norm=layer,residual=off"), SIZES))
    assert plan == {
        "normalise": 1.0,
        "first-layer/3/9": 1.0,
        "plain-layer/9": 2.0,
        "norm-layer/9": 3.0,
        "last-layer/9": 1.0,
    }
    as_in_the_recipe = Architecture.parse("-/-/mlp-4/-@hidden=6,dropout=0.1")
    assert stages(as_in_the_recipe, SIZES) == stages(Architecture.parse("-/-/mlp-4/-"), SIZES)


def test_two_matrices_are_both_built() -> None:
    plan = dict(stages(Architecture.parse("triangle^1/none/mlp-1/ppr0.1^1"), SIZES))
    assert plan["build/triangle"] == plan["build/augmented"] == 1.0


def test_the_table_equals_the_single_design_everywhere() -> None:
    space = SearchSpace.paper(k_pre=[0, 1, 4], k_trans=[1, 2, 4], k_post=[0, 3], message=["none", "concat", "adaptive"])
    seconds = CountedSeconds()
    single = [cost_of(space.design(row), SIZES, seconds, ENTRIES) for row in range(len(space))]
    table = cost_table(space, SIZES, seconds, ENTRIES)
    for name in single[0]:
        np.testing.assert_allclose(table[name], [cost[name] for cost in single], rtol=1e-12)


def test_memory_grows_with_hops_only_when_they_are_joined() -> None:
    sizes = Sizes(num_nodes=10_000, num_features=100, num_classes=4, hidden_width=6, adjacency_entries=50_000)
    entries = {"augmented": 60_000}

    def peak(text: str) -> float:
        return cost_of(Architecture.parse(text), sizes, CountedSeconds(), entries)["peak_memory_bytes"]

    hop = 10_000 * 100 * 4
    assert peak("augmented^9/none/mlp-1/-") == peak("augmented^3/none/mlp-1/-")
    assert peak("augmented^9/mean/mlp-1/-") - peak("augmented^3/mean/mlp-1/-") >= 6 * hop
