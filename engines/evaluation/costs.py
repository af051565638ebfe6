"""Objectives that are known without training: parameters, macs, peak memory, and inference time from stage times.

A design's cost is put together from its front (pre-processing, join, transform), its back (post-processing) and the
matrices that both need, so the whole space is priced from a few thousand fronts and a few dozen backs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.evaluation.inference import BLOCK_ROWS
from search_space.architecture import Architecture
from search_space.graph_operators import graph_operator
from search_space.space import SearchSpace

FLOAT_BYTES = 4
ENTRY_BYTES = 8
"""A stored matrix entry: a float32 value and an int32 column."""

Plan = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the costs of a design depend on besides the design.

    Attributes:
        num_nodes, num_features, num_classes, hidden_width: N, F, C and the width of hidden layers.
        adjacency_entries: non-zeros of the raw adjacency.
    """

    num_nodes: int
    num_features: int
    num_classes: int
    hidden_width: int
    adjacency_entries: int

    @property
    def block_rows(self) -> int:
        """Rows transformed together."""
        return min(self.num_nodes, BLOCK_ROWS)

    @property
    def num_blocks(self) -> float:
        """Blocks of rows, the last one counted by its share."""
        return self.num_nodes / self.block_rows


def join_width(design: Architecture, num_features: int) -> int:
    """Input width of the transform."""
    return num_features * (design.k_pre + 1) if design.message == "concat" else num_features


def matrix_keys(design: Architecture) -> tuple[str | None, str | None]:
    """Which matrix pre-processing and post-processing multiply by; None for a stage that is off."""
    pre, post = design.pre_aggregator, design.post_aggregator
    return (
        None if pre is None else graph_operator(pre).matrix_key,
        None if post is None else graph_operator(post).matrix_key,
    )


def hop_key(aggregator: str, width: int) -> str:
    """Stage name of one propagation step; a restart is part of the step's kernel."""
    operator = graph_operator(aggregator)
    return f"hop/{operator.matrix_key}{'+restart' if operator.restart else ''}/{width}"


def front_plan(design: Architecture, sizes: Sizes) -> Plan:
    """Timed stages of a design up to the softmax, building matrices excluded: (stage, how often)."""
    F, blocks = sizes.num_features, sizes.num_blocks
    plan: Plan = [("normalise", 1.0)]
    if design.pre_aggregator is not None:
        plan.append((hop_key(design.pre_aggregator, F), design.k_pre))
        if design.message != "none":
            plan.append((f"join/{design.message}/{design.k_pre}", blocks))
    width = join_width(design, F)
    if design.k_trans == 1:
        plan.append((f"only-layer/{width}", blocks))
    else:
        plan.append((f"first-layer/{width}", blocks))
        if design.k_trans > 2:
            plan.append(("hidden-layer", blocks * (design.k_trans - 2)))
        plan.append(("last-layer", blocks))
    return plan


def back_plan(design: Architecture, sizes: Sizes) -> Plan:
    """Timed stages of a design after the softmax, building matrices excluded."""
    if design.post_aggregator is None:
        return []
    return [(hop_key(design.post_aggregator, sizes.num_classes), design.k_post)]


def stages(design: Architecture, sizes: Sizes) -> Plan:
    """All timed stages of a design; a matrix that both graph stages share is built once."""
    builds: Plan = [(f"build/{key}", 1.0) for key in dict.fromkeys(matrix_keys(design)) if key]
    return [*builds, *front_plan(design, sizes), *back_plan(design, sizes)]


def parameters(design: Architecture, sizes: Sizes) -> int:
    """Trainable numbers of one repeat."""
    width = join_width(design, sizes.num_features)
    join = {"weighted": design.k_pre + 1, "adaptive": sizes.num_features}.get(design.message or "", 0)
    widths = [width, *[sizes.hidden_width] * (design.k_trans - 1), sizes.num_classes]
    return join + sum(a * b + b for a, b in itertools.pairwise(widths))


def front_macs(design: Architecture, sizes: Sizes, entries: Mapping[str, int]) -> int:
    """Multiply-accumulates up to the softmax, for all nodes.

    nnz(M)·F a step; a join that reads hops costs N·F for each (twice for `adaptive`, which scores and sums them),
    `none` and `concat` cost nothing; a layer costs N times its weights.
    """
    N, F = sizes.num_nodes, sizes.num_features
    key, _ = matrix_keys(design)
    hops = entries[key] * F * design.k_pre if key else 0
    times = {None: 0, "none": 0, "concat": 0, "adaptive": 2}.get(design.message, 1)
    join = times * N * F * (design.k_pre + 1)
    widths = [join_width(design, F), *[sizes.hidden_width] * (design.k_trans - 1), sizes.num_classes]
    return hops + join + N * sum(a * b for a, b in itertools.pairwise(widths))


def back_macs(design: Architecture, sizes: Sizes, entries: Mapping[str, int]) -> int:
    """Multiply-accumulates after the softmax: nnz(M)·C a step."""
    _, key = matrix_keys(design)
    return entries[key] * sizes.num_classes * design.k_post if key else 0


def _matrix_bytes(entries: int, sizes: Sizes) -> int:
    return entries * ENTRY_BYTES + (sizes.num_nodes + 1) * 4


def _building_bytes(entries: int, sizes: Sizes) -> int:
    """While a matrix is made: itself and its float64 forerunner (8-byte values, 4-byte columns), twice."""
    return _matrix_bytes(entries, sizes) + 2 * entries * 12


def held_features(design: Architecture, *, propagating: bool) -> int:
    """How many (N, F) arrays inference holds: while it propagates, or when it transforms."""
    if design.k_pre == 0:
        return 1
    if design.message != "none":
        return design.k_pre + 1
    if not propagating:
        return 2  # the features themselves stay with the caller
    return 3 if design.k_pre > 1 else 2


def front_bytes(design: Architecture, sizes: Sizes, entries: Mapping[str, int]) -> tuple[int, int]:
    """Peak bytes of propagation and of the transform, in that order; the raw graph is held throughout."""
    N, F, C = sizes.num_nodes, sizes.num_features, sizes.num_classes
    key, _ = matrix_keys(design)
    features = N * F * FLOAT_BYTES
    raw = _matrix_bytes(sizes.adjacency_entries, sizes)
    matrix = _matrix_bytes(entries[key], sizes) if key else 0
    building = _building_bytes(entries[key], sizes) + features if key else 0
    propagating = max(building, matrix + held_features(design, propagating=True) * features)
    width, B = join_width(design, F), sizes.block_rows
    stacked = design.k_pre + 1 if design.message not in (None, "none") else 0
    hidden = 3 * sizes.hidden_width if design.k_trans > 1 else 0
    block = B * (stacked * F + (width if design.message not in (None, "none") else 0) + hidden + 3 * C)
    transforming = (
        matrix
        + held_features(design, propagating=False) * features
        + FLOAT_BYTES * (block + 2 * N * C + parameters(design, sizes))
    )
    return raw + propagating, raw + transforming


def back_bytes(design: Architecture, sizes: Sizes, entries: Mapping[str, int]) -> int:
    """Peak bytes of post-processing: the features stay with the caller, four (N, C) arrays travel."""
    _, key = matrix_keys(design)
    if key is None:
        return 0
    raw = _matrix_bytes(sizes.adjacency_entries, sizes)
    base = raw + FLOAT_BYTES * sizes.num_nodes * (sizes.num_features + sizes.num_classes)
    working = _matrix_bytes(entries[key], sizes) + FLOAT_BYTES * 4 * sizes.num_nodes * sizes.num_classes
    return base + max(working, _building_bytes(entries[key], sizes))


def cost_of(
    design: Architecture, sizes: Sizes, seconds: Mapping[str, float], entries: Mapping[str, int]
) -> dict[str, float]:
    """Every known objective of one design.

    Args:
        seconds: time of each stage that `stages` names.
        entries: non-zeros of each matrix the design multiplies by.
    """
    return {
        "inference_seconds": sum(seconds[stage] * count for stage, count in stages(design, sizes)),
        "parameters": float(parameters(design, sizes)),
        "macs": float(front_macs(design, sizes, entries) + back_macs(design, sizes, entries)),
        "peak_memory_bytes": float(max(*front_bytes(design, sizes, entries), back_bytes(design, sizes, entries))),
    }


def cost_table(
    space: SearchSpace, sizes: Sizes, seconds: Mapping[str, float], entries: Mapping[str, int]
) -> dict[str, NDArray[np.float64]]:
    """`cost_of` every design of the space, arrays of shape (len(space),) in the order of its rows."""
    codes = space.codes()
    _, front_rows, front_of = np.unique(codes[:, :4], axis=0, return_index=True, return_inverse=True)
    _, back_rows, back_of = np.unique(codes[:, 4:], axis=0, return_index=True, return_inverse=True)
    fronts = [space.design(int(row)) for row in front_rows]
    backs = [space.design(int(row)) for row in back_rows]

    def total(plan: Plan) -> float:
        return sum(seconds[stage] * count for stage, count in plan)

    front_seconds = np.array([total(front_plan(design, sizes)) for design in fronts])
    back_seconds = np.array([total(back_plan(design, sizes)) for design in backs])
    inference = front_seconds[front_of] + back_seconds[back_of]
    for key in entries:
        in_front = np.array([matrix_keys(design)[0] == key for design in fronts])
        in_back = np.array([matrix_keys(design)[1] == key for design in backs])
        inference += np.where(in_front[front_of] | in_back[back_of], seconds.get(f"build/{key}", 0.0), 0.0)
    macs = (
        np.array([front_macs(design, sizes, entries) for design in fronts], dtype=np.float64)[front_of]
        + np.array([back_macs(design, sizes, entries) for design in backs], dtype=np.float64)[back_of]
    )
    peak = np.maximum(
        np.array([max(front_bytes(design, sizes, entries)) for design in fronts], dtype=np.float64)[front_of],
        np.array([back_bytes(design, sizes, entries) for design in backs], dtype=np.float64)[back_of],
    )
    return {
        "inference_seconds": inference,
        "parameters": np.array([parameters(design, sizes) for design in fronts], dtype=np.float64)[front_of],
        "macs": macs,
        "peak_memory_bytes": peak,
    }
