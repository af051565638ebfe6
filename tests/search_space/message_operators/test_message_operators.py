"""Every way of joining hops against a loop over nodes, and the contract that all keep."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from search_space.architecture import LEARNING_MESSAGES, MESSAGES
from search_space.errors import DesignError
from search_space.message_operators import Adaptive, Decay, JumpingKnowledge, Recursive, Weighted, message_operator

K, n, F = 2, 5, 3
NAMES = (*MESSAGES, "decay0.1")


def generators(*seeds: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.fixture
def hops() -> torch.Tensor:
    hops = torch.randn(K + 1, n, F, generator=torch.Generator().manual_seed(3))
    hops[:, 4] = 0.0  # a node without features and without edges
    return hops


def by_hand(name: str, hops: np.ndarray, parameters: list[np.ndarray], s: int, v: int) -> np.ndarray:
    """x(v) of repeat s, straight from the definition."""
    of_node = [hops[k, v] for k in range(K + 1)]
    if name == "none":
        return of_node[-1]
    if name == "mean":
        return sum(of_node) / (K + 1)
    if name == "max":
        return np.array([max(x[f] for x in of_node) for f in range(F)])
    if name == "concat":
        return np.concatenate(of_node)
    if name == "weighted":
        logits = parameters[0][s]
        weights = [math.exp(logit) / sum(math.exp(other) for other in logits) for logit in logits]
    elif name == "adaptive":
        gates = [1 / (1 + math.exp(-float(x @ parameters[0][s]))) for x in of_node]
        weights = [math.exp(gate) / sum(math.exp(other) for other in gates) for gate in gates]
    elif name == "sum":
        weights = [1.0] * (K + 1)
    elif name == "recursive":
        u, g = parameters[0][s]
        gates = []
        for k, x in enumerate(of_node):
            shares = [math.exp(gate) / sum(math.exp(other) for other in gates) for gate in gates]
            history = sum(share * other for share, other in zip(shares, of_node, strict=False)) if k else x
            gates.append(1 / (1 + math.exp(-float(history @ u + x @ g))))
        weights = [math.exp(gate) / sum(math.exp(other) for other in gates) for gate in gates]
    elif name == "jk":
        reference, gate, reference_gate = (parameter[s] for parameter in parameters)
        seen = np.maximum(np.concatenate(of_node) @ reference.reshape((K + 1) * F, -1), 0.0)
        gates = [1 / (1 + math.exp(-float(x @ gate + seen @ reference_gate))) for x in of_node]
        weights = [math.exp(gate) / sum(math.exp(other) for other in gates) for gate in gates]
    else:
        raw = [0.1 * 0.9**k for k in range(K + 1)]
        weights = [w / sum(raw) for w in raw]
    return sum(w * x for w, x in zip(weights, of_node, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_join_equals_its_definition_node_by_node(name: str, hops: torch.Tensor) -> None:
    operator = message_operator(name, K, F, generators(0, 1))
    if name == "weighted":
        operator.logits.data = torch.tensor([[0.3, -1.0, 2.0], [0.0, 0.5, -0.5]])
    parameters = [parameter.detach().numpy().astype(np.float64) for parameter in operator.parameters()]
    joined = operator(hops).detach()
    repeats = joined if operator.learns else joined.expand(2, *joined.shape)
    assert repeats.shape == (2, n, operator.width)
    for s in range(2):
        for v in range(n):
            expected = by_hand(name, hops.numpy().astype(np.float64), parameters, s, v)
            np.testing.assert_allclose(repeats[s, v].numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_does_not_depend_on_the_other_rows(name: str, hops: torch.Tensor) -> None:
    operator = message_operator(name, K, F, generators(0))
    alone = operator(hops[:, 1:2]).detach()
    torch.testing.assert_close(alone[..., 0, :], operator(hops).detach()[..., 1, :])


@pytest.mark.parametrize("name", NAMES)
def test_the_joins_named_as_learning_have_weights_and_no_others(name: str) -> None:
    assert message_operator(name, K, F, generators(0)).learns == (name in LEARNING_MESSAGES)


def test_weighted_starts_at_the_decay_of_pagerank() -> None:
    weights = torch.softmax(Weighted(K, F, num_repeats=1).logits, dim=1)[0].detach()
    torch.testing.assert_close(weights, Decay(K, F, 0.1).weights)


def test_a_repeat_of_adaptive_starts_from_its_own_generator_alone() -> None:
    together = Adaptive(K, F, generators(7, 8)).gate
    torch.testing.assert_close(Adaptive(K, F, generators(8)).gate[0], together[1])
    assert not torch.equal(together[0], together[1])


@pytest.mark.parametrize("kind", [Recursive, JumpingKnowledge])
def test_a_repeat_of_a_gate_starts_from_its_own_generator_alone(kind: type[Recursive] | type[JumpingKnowledge]) -> None:
    together, alone = kind(K, F, generators(7, 8)), kind(K, F, generators(8))
    for both, one in zip(together.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(one[0], both[1])
        assert not torch.equal(both[0], both[1])


def test_recursive_on_two_hops_by_hand() -> None:
    """x = (1, 0), (0, 2); u = (ln 3, 0), g = 0: s = sigmoid(ln 3) = 3/4 twice, so both hops weigh a half."""
    operator = Recursive(1, 2, generators(0))
    operator.gates.data = torch.tensor([[[math.log(3.0), 0.0], [0.0, 0.0]]])
    joined = operator(torch.tensor([[[1.0, 0.0]], [[0.0, 2.0]]]))
    torch.testing.assert_close(joined, torch.tensor([[[0.5, 1.0]]]))


def test_jk_on_two_hops_by_hand() -> None:
    """U sums all numbers into e_0 = 3, and h = (ln 3)/3 on it: s = sigmoid(ln 3) = 3/4 for hop 0. By g = (0, -(ln 3)/2)
    hop 1 has sigmoid(ln 3 - ln 3) = 1/2, so w_0 = 1 / (1 + exp(-1/4))."""
    operator = JumpingKnowledge(1, 2, generators(0))
    operator.reference.data.zero_()
    operator.reference.data[0, :, :, 0] = 1.0
    operator.reference_gate.data.zero_()
    operator.reference_gate.data[0, 0] = math.log(3.0) / 3.0
    operator.gate.data = torch.tensor([[0.0, -math.log(3.0) / 2.0]])
    share = 1.0 / (1.0 + math.exp(-0.25))
    joined = operator(torch.tensor([[[1.0, 0.0]], [[0.0, 2.0]]]))
    torch.testing.assert_close(joined, torch.tensor([[[share, 2.0 * (1.0 - share)]]]))


def test_an_unknown_name_lists_what_exists() -> None:
    with pytest.raises(DesignError, match=r"unknown message aggregator 'avg'; choose from: none, mean, max"):
        message_operator("avg", K, F, generators(0))
