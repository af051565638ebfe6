"""Shard: a server's part of the parameters, their optimiser, and who may read them when. Pure, no messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engines.evaluation.clocks import ClockTable, Consistency

Floats = NDArray[np.float32]
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8

# A training that diverges overflows on its way; its loss says so at the next look, and nothing is to be said here.
_DIVERGING = np.errstate(over="ignore", invalid="ignore", divide="ignore")


class Adam:
    """Adam on a flat array, with L2 regularisation added to the gradient, in whole steps or fractions of one.

    A step by fraction f moves by f times the learning rate and forgets as much as a whole step does in f of its time
    (decay rates to the power f), so that W pushes of share 1/W weigh as much as one step. At f = 1 it is the usual
    Adam. A gradient made with weights that have since moved n times moves them by an n-th of that: otherwise workers
    that do not wait for each other overshoot together. Sources: Kingma and Ba 2015, algorithm 1; Zhang et al. 2016
    (Staleness-aware async-SGD for distributed deep learning).

    Args:
        size: elements.
        learning_rate: of a whole step.
        decay: (size,) weight decay of each element.
    """

    def __init__(self, size: int, learning_rate: float, decay: Floats) -> None:
        self._learning_rate, self._decay = learning_rate, decay
        self._first, self._second = np.zeros(size, np.float32), np.zeros(size, np.float32)
        self._time = 0.0

    @_DIVERGING
    def step(self, weights: Floats, gradient: Floats, fraction: float = 1.0, staleness: int = 0) -> None:
        """Move the weights in place; `staleness` is how often they moved since the gradient's weights were read."""
        gradient = gradient + self._decay * weights
        keep_1, keep_2 = BETA_1**fraction, BETA_2**fraction
        self._time += fraction
        self._first += np.float32(1.0 - keep_1) * (gradient - self._first)
        self._second *= np.float32(keep_2)
        self._second += np.float32(1.0 - keep_2) * gradient * gradient
        root = np.sqrt(self._second) / np.float32(np.sqrt(1.0 - BETA_2**self._time)) + np.float32(EPSILON)
        rate = fraction * self._learning_rate / max(1, staleness)
        weights -= np.float32(rate / (1.0 - BETA_1**self._time)) * (self._first / root)


class Shard:
    """One server's weights.

    Args:
        weights: (d,) starting values, taken over.
        optimiser: moves them.
        consistency: who may read when.
        num_workers: W.
    Attributes:
        num_steps: optimiser steps made.
    """

    def __init__(self, weights: Floats, optimiser: Adam, consistency: Consistency, num_workers: int) -> None:
        self._weights, self._optimiser, self._consistency = weights, optimiser, consistency
        self._clocks = ClockTable(consistency, num_workers)
        self._open: dict[int, dict[int, tuple[float, Floats]]] = {}
        self._steps_at_read = [0] * num_workers
        self.num_steps = 0

    @property
    def size(self) -> int:
        """d."""
        return self._weights.size

    @property
    def num_left(self) -> int:
        """Workers that have not left."""
        return self._clocks.num_left

    def push(self, worker: int, clock: int, share: float, gradient: Floats) -> None:
        """Take in one worker's gradient of one clock.

        Args:
            share: of the worker's rows in the batch, by weight; the shares of a clock add up to one.
            gradient: (d,) of the worker's mean loss; not read at share 0.
        """
        self._clocks.record_push(worker, clock)
        if not self._consistency.joint_steps:
            if share > 0.0:
                # Workers at one pace find W - 1 pushes of others in between; who pushes twice in a row was only lucky.
                moved = max(len(self._steps_at_read) - 1, self.num_steps - self._steps_at_read[worker])
                self._step(gradient, share, moved)
            return
        self._open.setdefault(clock, {})[worker] = (share, gradient)
        self._step_of_complete_clocks()

    def leave(self, worker: int) -> None:
        """The worker pushes no more."""
        self._clocks.leave(worker)
        self._step_of_complete_clocks()

    def read(self, worker: int, clock: int, *, strictly: bool = False) -> Floats | None:
        """A copy of the weights, or None while a worker at that clock has to wait; `strictly` as under bsp."""
        if not self._clocks.may_see(clock, strictly=strictly):
            return None
        self._steps_at_read[worker] = self.num_steps
        return self._weights.copy()

    @_DIVERGING
    def _step_of_complete_clocks(self) -> None:
        """One step for each clock that every worker has pushed, from the mean weighted by rows."""
        slowest = self._clocks.slowest()
        for clock in sorted(self._open):
            if slowest is not None and slowest <= clock:
                return
            # In worker order, whatever the order of arrival: equal runs give equal bits.
            pushes = [self._open[clock][worker] for worker in sorted(self._open[clock])]
            total = np.zeros(self.size, dtype=np.float32)
            for share, gradient in pushes:
                if share > 0.0:
                    total += np.float32(share) * gradient
            del self._open[clock]
            self._step(total, 1.0)

    def _step(self, gradient: Floats, fraction: float, staleness: int = 0) -> None:
        self._optimiser.step(self._weights, gradient, fraction, staleness)
        self.num_steps += 1
