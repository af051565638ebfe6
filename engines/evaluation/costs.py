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

from search_space.architecture import Architecture
from search_space.graph_operators import CorrectAndSmooth, GraphOperator, graph_operator
from search_space.hops import REFERENCE_WIDTH, hop_width, pre_operators
from search_space.local_structure import STRUCTURE_WIDTH
from search_space.names import AggregatorName, decay_rate
from search_space.space import SearchSpace

BLOCK_ROWS = 1024
"""Rows that inference joins and transforms together: a block of wide features stays near the last-level cache."""
FLOAT_BYTES = 4
ENTRY_BYTES = 8
"""A stored matrix entry: a float32 value and an int32 column."""

_MACS_A_HOP = {None: 0, "none": 0, "concat": 0, "adaptive": 2, "recursive": 3, "jk": 2 + REFERENCE_WIDTH}
"""Multiply-accumulates of a join for each number of each hop; 1 for a join that is not listed."""

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


def _all_keys(design: Architecture) -> tuple[str, ...]:
    """Keys of the matrices that a design multiplies by, each once."""
    pre, post = matrix_keys(design)
    labels = "augmented" if design.label_steps is not None else None
    return tuple(dict.fromkeys(key for key in (*pre, labels, post) if key is not None))


def hidden_width(design: Architecture, sizes: Sizes) -> int:
    """Width of the hidden layers."""
    return sizes.hidden_width if design.hidden_width is None else design.hidden_width


def join_width(design: Architecture, num_features: int) -> int:
    """Input width of the transform."""
    width = hop_width(design, num_features)
    return width * (design.k_pre + 1) if design.message == "concat" else width


def matrix_keys(design: Architecture) -> tuple[tuple[str, ...], str | None]:
    """Which matrices pre-processing multiplies by, and which one post-processing; none for a stage that is off."""
    post = design.post_aggregator
    return (
        tuple(operator.matrix_key for operator in pre_operators(design)),
        None if post is None else graph_operator(post).matrix_key,
    )


def cost_key(matrix_key: str) -> str:
    """Under which key times and entries of a matrix are kept; see `AggregatorName.cost_key`."""
    return AggregatorName.parse(matrix_key).cost_key


def hop_key(operator: GraphOperator, width: int) -> str:
    """Stage name of one propagation step; a restart is part of the step's kernel."""
    return f"hop/{cost_key(operator.matrix_key)}{'+restart' if operator.restart else ''}/{width}"


def front_plan(design: Architecture, sizes: Sizes) -> Plan:
    """Timed stages of a design up to the softmax, building matrices excluded: (stage, how often)."""
    F, blocks = sizes.num_features, sizes.num_blocks
    plan: Plan = [("normalise" if design.normalise is None else f"normalise/{design.normalise}", 1.0)]
    operators, message = pre_operators(design), design.message or ""
    if decay_rate(message) is not None:
        message = "decay0.1"  # every rate takes as long
    plan += [(hop_key(operator, F), float(design.k_pre)) for operator in operators]
    if len(operators) > 1:
        plan.append((f"join-channels/{message}/{design.k_pre}", blocks))
    elif operators and design.message != "none":
        plan.append((f"join/{message}/{design.k_pre}", blocks))
    width = join_width(design, F)
    first = sizes.num_classes if design.k_trans == 1 else hidden_width(design, sizes)
    if design.label_steps is not None:
        plan.append((f"hop/augmented/{sizes.num_classes}", float(design.label_steps)))
        plan.append((f"label-layer/{first}", blocks))
    if design.adjacency is not None:
        plan.append((f"adjacency-layer/{first}", blocks))
    if design.structure is not None:
        plan += [("count-structure", 1.0), (f"structure-layer/{first}", blocks)]
    if design.k_trans == 1:
        plan.append((f"only-layer/{width}", blocks))
        return plan
    # the recipe's width is not in the name: the times of a run without others are as they always were
    H = hidden_width(design, sizes)
    hidden = "" if sizes.hidden_width == H else f"/{H}"
    plan.append((f"first-layer/{width}{hidden}", blocks))
    if design.k_trans > 2:
        kind = "hidden-layer" if design.residual is None else "plain-layer"
        plan.append((f"{kind}{hidden}", blocks * (design.k_trans - 2)))
    if design.has_norm_layers:
        plan.append((f"norm-layer{hidden}", blocks * (design.k_trans - 1)))
    plan.append((f"last-layer{hidden}", blocks))
    return plan


def back_plan(design: Architecture, sizes: Sizes) -> Plan:
    """Timed stages of a design after the softmax, building matrices excluded."""
    if design.post_aggregator is None:
        return []
    operator = graph_operator(design.post_aggregator)
    if isinstance(operator, CorrectAndSmooth):
        # two propagations, each step followed by cutting off what is out of range
        step = f"cs-step/{cost_key(operator.matrix_key)}/{sizes.num_classes}"
        return [(step, 2.0 * design.k_post), ("cs-scale", 1.0)]
    return [(hop_key(operator, sizes.num_classes), float(design.k_post))]


def stages(design: Architecture, sizes: Sizes) -> Plan:
    """All timed stages of a design; a matrix that both graph stages share is built once."""
    builds: Plan = [(f"build/{cost_key(key)}", 1.0) for key in _all_keys(design)]
    return [*builds, *front_plan(design, sizes), *back_plan(design, sizes)]


def parameters(design: Architecture, sizes: Sizes) -> int:
    """Trainable numbers of one repeat."""
    width = join_width(design, sizes.num_features)
    join = _join_parameters(design, hop_width(design, sizes.num_features))
    H = hidden_width(design, sizes)
    norms = 2 * H * (design.k_trans - 1) if design.has_norm_layers else 0
    widths = [width, *[H] * (design.k_trans - 1), sizes.num_classes]
    labels = sizes.num_classes * widths[1] if design.label_steps is not None else 0
    rows = sizes.num_nodes * widths[1] if design.adjacency is not None else 0
    structure = STRUCTURE_WIDTH * widths[1] if design.structure is not None else 0
    return join + norms + labels + rows + structure + sum(a * b + b for a, b in itertools.pairwise(widths))


def _join_parameters(design: Architecture, width: int) -> int:
    """Trainable numbers of the join of hops of some width, of one repeat."""
    hops = design.k_pre + 1
    learned = {
        "weighted": hops,
        "adaptive": width,
        "recursive": 2 * width,
        "jk": hops * width * REFERENCE_WIDTH + width + REFERENCE_WIDTH,
    }
    return learned.get(design.message or "", 0)


def front_macs(design: Architecture, sizes: Sizes, entries: Mapping[str, int]) -> int:
    """Multiply-accumulates up to the softmax, for all nodes.

    nnz(M)·F a step; a join that reads hops costs N·F for each (twice for `adaptive`, which scores and sums them, three
    times for `recursive`, which scores them twice, 2 + d times for `jk` with its layer of width d), `none` and
    `concat` cost nothing; a layer costs N times its weights, a normalisation layer N times its width.
    """
    N, F = sizes.num_nodes, sizes.num_features
    keys, _ = matrix_keys(design)
    hops = sum(entries[cost_key(key)] for key in keys) * F * design.k_pre
    times = _MACS_A_HOP.get(design.message, 1)
    join = times * N * hop_width(design, F) * (design.k_pre + 1)
    H = hidden_width(design, sizes)
    widths = [join_width(design, F), *[H] * (design.k_trans - 1), sizes.num_classes]
    norms = N * H * (design.k_trans - 1) if design.has_norm_layers else 0
    labels = 0
    if design.label_steps is not None:
        C = sizes.num_classes
        labels = entries["augmented"] * C * design.label_steps + N * C * widths[1]
    rows = sizes.adjacency_entries * widths[1] if design.adjacency is not None else 0
    structure = N * STRUCTURE_WIDTH * widths[1] if design.structure is not None else 0
    return hops + join + norms + labels + rows + structure + N * sum(a * b for a, b in itertools.pairwise(widths))


def back_macs(design: Architecture, sizes: Sizes, entries: Mapping[str, int]) -> int:
    """Multiply-accumulates after the softmax: nnz(M)·C a step, of which Correct & Smooth takes K_post twice."""
    if design.post_aggregator is None:
        return 0
    operator = graph_operator(design.post_aggregator)
    steps = design.k_post * (2 if isinstance(operator, CorrectAndSmooth) else 1)
    return entries[cost_key(operator.matrix_key)] * sizes.num_classes * steps


def _matrix_bytes(entries: int, sizes: Sizes) -> int:
    return entries * ENTRY_BYTES + (sizes.num_nodes + 1) * 4


def _building_bytes(entries: int, sizes: Sizes) -> int:
    """While a matrix is made: itself and its float64 forerunner (8-byte values, 4-byte columns), twice."""
    return _matrix_bytes(entries, sizes) + 2 * entries * 12


def held_features(k_pre: int, message: str | None, num_channels: int = 1, *, propagating: bool) -> int:
    """How many (N, F) arrays inference holds: while it propagates, or when it transforms."""
    if k_pre == 0:
        return 1
    if message != "none":
        return num_channels * k_pre + 1
    if not propagating:
        return num_channels + 1  # the features themselves stay with the caller
    return num_channels + (2 if k_pre > 1 else 1)  # the last hops of the channels before, and what a step needs


def front_bytes(design: Architecture, sizes: Sizes, entries: Mapping[str, int]) -> tuple[int, int]:
    """Peak bytes of propagation and of the transform, in that order; the raw graph is held throughout."""
    N, F, C = sizes.num_nodes, sizes.num_features, sizes.num_classes
    keys = [cost_key(key) for key in matrix_keys(design)[0]]
    features = N * F * FLOAT_BYTES
    raw = _matrix_bytes(sizes.adjacency_entries, sizes)
    matrix = sum(_matrix_bytes(entries[key], sizes) for key in keys)
    held = held_features(design.k_pre, design.message, max(len(keys), 1), propagating=True)
    building = 0
    for place, key in enumerate(keys):
        # a channel's matrix is made when those before have propagated
        before = sum(_matrix_bytes(entries[other], sizes) for other in keys[:place])
        ready = held_features(design.k_pre, design.message, place, propagating=False) if place else 1
        building = max(building, before + _building_bytes(entries[key], sizes) + ready * features)
    propagating = max(building, matrix + held * features)
    width, B = join_width(design, F), sizes.block_rows
    stacked = (design.k_pre + 1) * max(len(keys), 1) if design.message not in (None, "none") else 0
    if len(keys) > 1:
        stacked += len(keys)  # the channels of a hop are put side by side before they are stacked
    hidden = (4 if design.has_norm_layers else 3) * hidden_width(design, sizes) if design.k_trans > 1 else 0
    block = B * (stacked * F + (width if design.message not in (None, "none") else 0) + hidden + 3 * C)
    further = N * STRUCTURE_WIDTH if design.structure is not None else 0
    transforming = (
        matrix
        + held_features(design.k_pre, design.message, max(len(keys), 1), propagating=False) * features
        + FLOAT_BYTES * (block + further + (2 if design.label_steps is None else 4) * N * C + parameters(design, sizes))
    )
    return raw + propagating, raw + transforming


def back_bytes(design: Architecture, sizes: Sizes, entries: Mapping[str, int]) -> int:
    """Peak bytes of post-processing: the features stay with the caller, four (N, C) arrays travel.

    Correct & Smooth has seven of them, errors and corrected predictions beside what travels.
    """
    _, key = matrix_keys(design)
    if key is None:
        return 0
    raw = _matrix_bytes(sizes.adjacency_entries, sizes)
    base = raw + FLOAT_BYTES * sizes.num_nodes * (sizes.num_features + sizes.num_classes)
    arrays = 7 if isinstance(graph_operator(design.post_aggregator or ""), CorrectAndSmooth) else 4
    key = cost_key(key)
    working = _matrix_bytes(entries[key], sizes) + FLOAT_BYTES * arrays * sizes.num_nodes * sizes.num_classes
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
    for key in dict.fromkeys(key for design in (*fronts, *backs) for key in _all_keys(design)):
        in_front = np.array([key in matrix_keys(design)[0] for design in fronts])
        in_back = np.array([matrix_keys(design)[1] == key for design in backs])
        inference += np.where(in_front[front_of] | in_back[back_of], seconds[f"build/{cost_key(key)}"], 0.0)
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
