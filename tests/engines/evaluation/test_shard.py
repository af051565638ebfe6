"""A shard steps as Adam does, together or push by push, and makes readers wait as the consistency says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engines.evaluation.clocks import Consistency
from engines.evaluation.shard import Adam, Shard

RNG = np.random.default_rng(0)
START = RNG.standard_normal(20).astype(np.float32)
GRADIENTS = RNG.standard_normal((8, 20)).astype(np.float32)
DECAY = np.where(np.arange(20) < 10, 0.1, 0.0).astype(np.float32)


def shard(rule: Consistency, workers: int) -> Shard:
    return Shard(START.copy(), Adam(20, 0.05, DECAY), rule, workers)


def weights_of(one: Shard, clock: int = 0) -> np.ndarray:
    weights = one.read(0, clock)
    assert weights is not None
    return weights


def test_whole_steps_are_those_of_torch() -> None:
    parameters = [torch.nn.Parameter(torch.from_numpy(part.copy())) for part in (START[:10], START[10:])]
    torch_adam = torch.optim.Adam(
        [{"params": parameters[:1], "weight_decay": 0.1}, {"params": parameters[1:], "weight_decay": 0.0}], lr=0.05
    )
    adam, weights = Adam(20, 0.05, DECAY), START.copy()
    for gradient in GRADIENTS:
        parameters[0].grad, parameters[1].grad = (torch.from_numpy(g.copy()) for g in (gradient[:10], gradient[10:]))
        torch_adam.step()
        adam.step(weights, gradient)
    np.testing.assert_allclose(weights, torch.cat([p.detach() for p in parameters]).numpy(), atol=1e-6)


def test_fractions_of_a_step_with_one_gradient_make_about_a_step() -> None:
    whole, parts = START.copy(), START.copy()
    Adam(20, 0.001, 0 * DECAY).step(whole, GRADIENTS[0])
    adam = Adam(20, 0.001, 0 * DECAY)
    for fraction in (0.5, 0.25, 0.25):
        adam.step(parts, GRADIENTS[0], fraction)
    np.testing.assert_allclose(parts - START, whole - START, rtol=1e-3)


def test_a_clock_steps_once_from_the_mean_weighted_by_rows() -> None:
    joint, single = shard(Consistency("bsp"), 2), shard(Consistency("bsp"), 1)
    joint.push(1, 0, 0.25, GRADIENTS[1])
    np.testing.assert_array_equal(joint._weights, START)
    joint.push(0, 0, 0.75, GRADIENTS[0])
    single.push(0, 0, 1.0, 0.75 * GRADIENTS[0] + 0.25 * GRADIENTS[1])
    assert joint.num_steps == single.num_steps == 1
    np.testing.assert_allclose(weights_of(joint), weights_of(single), atol=1e-7)


def test_the_order_of_arrival_does_not_change_a_bit() -> None:
    results = []
    for order in ((0, 1, 2), (2, 0, 1)):
        one = shard(Consistency("bsp"), 3)
        for worker in order:
            one.push(worker, 0, 1 / 3, GRADIENTS[worker])
        results.append(weights_of(one))
    np.testing.assert_array_equal(*results)


def test_no_staleness_is_bulk_synchronous() -> None:
    one, other = shard(Consistency("bsp"), 2), shard(Consistency("ssp", 0), 2)
    for each in (one, other):
        for worker in (0, 1):
            each.push(worker, 0, 0.5, GRADIENTS[worker])
    np.testing.assert_array_equal(weights_of(one, 1), weights_of(other, 1))


def test_otherwise_each_push_is_a_step() -> None:
    one = shard(Consistency("asp"), 2)
    one.push(0, 0, 0.5, GRADIENTS[0])
    assert one.num_steps == 1
    assert np.abs(weights_of(one, 1) - START).min() > 0


def test_a_stale_gradient_moves_the_weights_less() -> None:
    # worker 1 read before three steps of worker 0: its step is a third of the one it would have made without a delay
    moved = []
    for reads_again in (False, True):
        one = shard(Consistency("asp"), 2)
        one.read(1, 0)
        for clock in range(3):
            one.read(0, clock)
            one.push(0, clock, 0.5, GRADIENTS[clock])
        if reads_again:
            one.read(1, 0)
        before = weights_of(one, 3)
        one.push(1, 0, 0.5, GRADIENTS[3])
        moved.append(weights_of(one, 3) - before)
    np.testing.assert_allclose(moved[0], moved[1] / 3, atol=1e-7)


def test_a_worker_without_rows_changes_nothing_and_holds_nobody_up() -> None:
    for rule, steps in ((Consistency("bsp"), 1), (Consistency("asp"), 1)):
        one = shard(rule, 2)
        one.push(0, 0, 1.0, GRADIENTS[0])
        one.push(1, 0, 0.0, np.zeros(0, np.float32))
        assert one.num_steps == steps
        assert one.read(0, 1) is not None


def test_a_reader_waits_for_the_others_under_bsp() -> None:
    one = shard(Consistency("bsp"), 2)
    one.push(0, 0, 0.5, GRADIENTS[0])
    assert one.read(0, 1) is None
    one.leave(1)
    assert one.read(0, 1) is not None
    assert one.num_steps == 1


def test_what_is_read_is_a_copy() -> None:
    one = shard(Consistency("asp"), 1)
    weights_of(one)[:] = 0
    np.testing.assert_array_equal(weights_of(one), START)


def test_losses_1_to_5_in_uneven_shares_average_to_3() -> None:
    # rank means 1.5 of two rows and 4 of three: weighted 3.0, unweighted 2.75
    one = Shard(np.zeros(1, np.float32), Adam(1, 1.0, np.zeros(1, np.float32)), Consistency("bsp"), 2)
    seen: list[float] = []
    one._optimiser.step = lambda weights, gradient, fraction, staleness: seen.append(float(gradient[0]))  # type: ignore[method-assign]
    one.push(0, 0, 2 / 5, np.array([1.5], np.float32))
    one.push(1, 0, 3 / 5, np.array([4.0], np.float32))
    assert seen == [pytest.approx(3.0)]
