"""How a design is trained within a memory budget: all rows at once or in batches, and how many repeats together.

Whether rows come in batches, and in which, depends on the design, the rows and the budget, not on the number of
repeats: the search trains a few of them and the retraining of the front many, and both are to train alike. Repeats that
do not fit together are trained one group after the other, which changes nothing: what a repeat becomes does not
depend on the repeats beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from engines.evaluation.consistency import MOST_NODES, NODES_A_STEP, NUM_VIEWS
from engines.evaluation.costs import FLOAT_BYTES, Sizes, hidden_width, join_width
from engines.evaluation.feeding import BLOCKS_PER_BATCH
from search_space.architecture import LEARNING_MESSAGES, Architecture
from search_space.hops import hop_width, required_hops

REPEATS_A_BATCH = 4
"""Repeats that a batch is sized for."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How one design is trained.

    Attributes:
        batch_rows: training rows of a batch at most; None for all rows at once.
        repeats_together: repeats that train as one batched network.
    """

    batch_rows: int | None
    repeats_together: int


@dataclass(frozen=True, slots=True)
class _RowBytes:
    """Bytes that a labelled row takes while a design is trained.

    Attributes:
        read: hops as read, and prepared for the network; shared by all repeats.
        step: of a training step, a repeat.
        look: of a look at a validation row, a repeat.
    """

    read: int
    step: int
    look: int

    @classmethod
    def of(cls, design: Architecture, sizes: Sizes) -> _RowBytes:
        F, H, C = hop_width(design, sizes.num_features), hidden_width(design, sizes), sizes.num_classes
        k, W = len(required_hops(design)), join_width(design, sizes.num_features)
        learns = design.message in LEARNING_MESSAGES
        hidden = design.k_trans - 1
        # Floats, found by adding up what a step holds, and checked against measured peaks: the input and its mask,
        # which is made of bytes; of each hidden layer its output, residual sum, mask, masked output and gradients; of
        # the scores their logarithms and gradients. A join that learns also has its output and gradient. On CPUs the
        # masked input is no longer made where nothing is learned before it; the margin is left to batches read ahead.
        # A normalisation layer keeps what it normalised and what it scaled, with a gradient each, and so does batch
        # normalisation, also of the input.
        norm = 4 if design.norm else 0
        step = (3 + (norm if design.norm == "batch" else 0)) * W + (7 + norm) * H * hidden + 7 * C
        step += 4 * F + 3 * k if learns else 0
        look = (0, 3, 5)[min(hidden, 2)] * H + 4 * C + (F + 3 * k if learns else 0)
        return cls(FLOAT_BYTES * (k * F + (0 if learns or k == 1 else W)), FLOAT_BYTES * step, FLOAT_BYTES * look)


def plan_training(
    design: Architecture, sizes: Sizes, num_train: int, num_validation: int, num_repeats: int, budget: int
) -> TrainingPlan:
    """How to train within a budget.

    Args:
        num_train, num_validation: rows.
        budget: bytes. A batch has as many rows as one of its blocks at least, whatever the budget.
    """
    row = _RowBytes.of(design, sizes)
    shared = (num_train + num_validation) * row.read
    stepped = num_train
    if design.consistency is not None:
        others = min(sizes.num_nodes - num_train, MOST_NODES)
        shared += 2 * others * row.read  # as read, and prepared
        stepped = NUM_VIEWS * (num_train + min(others, NODES_A_STEP))
    each = max(stepped * row.step, num_validation * row.look)
    if design.adjacency is not None:
        # a weight for each node with its gradient, two moments and the best so far, and a copy of weight and gradient
        first = sizes.num_classes if design.k_trans == 1 else hidden_width(design, sizes)
        each += 7 * FLOAT_BYTES * sizes.num_nodes * first
    if shared + each <= budget:
        return TrainingPlan(None, min(num_repeats, (budget - shared) // max(each, 1)))
    # two batches are held, one in use and one being read, and a copy while that one is shuffled
    batch_rows = max(budget // (3 * row.read + REPEATS_A_BATCH * row.step), BLOCKS_PER_BATCH)
    return TrainingPlan(min(batch_rows, num_train), min(num_repeats, REPEATS_A_BATCH))
