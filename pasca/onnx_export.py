"""The network of a design as an ONNX model: message aggregation, transform, softmax, and the mean over repeats.

Written node by node rather than traced: the formulas are few, the file is the same on every machine and names no
source lines, and an operator set of 2022 runs wherever an ONNX runtime does. Tests hold every message aggregator
against torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from search_space.architecture import Architecture, decay_rate
from search_space.errors import ModelError
from search_space.local_structure import STRUCTURE_WIDTH
from search_space.transform import NORM_EPSILON

OPSET, IR_VERSION = 17, 8
LARGEST_BYTES = 2**31 - 2**20
"""An ONNX file is one protocol buffer, whose format ends at 2 GB."""

INPUT, OUTPUT = "hops", "probabilities"
LABELS, ROWS, NEIGHBOURS, WEIGHTS = "labels", "neighbour_rows", "neighbours", "neighbour_weights"
STRUCTURE = "structure"

Weights = Mapping[str, NDArray[np.float32]]


class _Nodes:
    """ONNX nodes and constants in the order of their making; every value gets a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: NDArray[Any], name: str) -> str:
        """Store an array; returns its name."""
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, operator: str, *inputs: str, name: str, **attributes: Any) -> str:
        """Apply an operator with one output; returns the output's name."""
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def reshape(self, value: str, shape: tuple[int, ...], name: str) -> str:
        """Reshape; 0 keeps a dimension and -1 takes what is left."""
        return self.add("Reshape", value, self.constant(np.asarray(shape, np.int64), f"{name}_shape"), name=name)


def onnx_model(design: Architecture, num_features: int, num_classes: int, weights: Weights) -> bytes:
    """Build the model.

    Its input `hops` is the stack (K_pre + 1, n, F), F columns of a hop, of normalised, propagated features, hop 0
    first, for any n; for `none` it reads the last hop only. Its output `probabilities` (n, C) comes before
    post-processing; rows sum to one. A design that corrects and smooths does so with each repeat, whose probabilities
    (S, n, C) then leave apart.

    A design that reuses labels has the further input `labels` (n, C), one that takes local structure `structure`
    (n, 6). One that takes adjacency rows has their e entries: `neighbour_rows` (e, 1), 0 to n - 1, `neighbours` (e,),
    node numbers of the training graph, and `neighbour_weights` (e, 1).

    Args:
        num_features: columns of a hop: those of the features for each channel of the pre-aggregator.
        weights: the network's `state_dict` as arrays, each with a leading repeat dimension S.
    Raises:
        ModelError: the weights take 2 GB or more.
    """
    if sum(array.nbytes for array in weights.values()) > LARGEST_BYTES:
        raise ModelError(
            f"one ONNX file holds less than 2 GB of weights, but those of {design} take "
            f"{sum(array.nbytes for array in weights.values()) / 1e9:.1f} GB; reduce the features or the hidden width"
        )
    graph = _Nodes()
    joined = _join(graph, design, num_features, weights)
    scores = _transform(graph, joined, design, weights, _added(graph, design, weights))
    each = graph.add("Softmax", scores, name=OUTPUT if design.corrects else "repeat_probabilities", axis=2)
    if not design.corrects:
        graph.add("ReduceMean", each, name=OUTPUT, axes=[0], keepdims=0)
    repeats = [len(weights["transform.weights.0"])] if design.corrects else []
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "pasca",
            [
                helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [design.k_pre + 1, "n", num_features]),
                *_further_inputs(design, num_classes),
            ],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [*repeats, "n", num_classes])],
            graph.constants,
            doc_string=str(design),
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="pasca",
    )
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _further_inputs(design: Architecture, C: int) -> list[onnx.ValueInfoProto]:
    """What the first layer adds to its products is made from these."""
    found = []
    if design.label_steps is not None:
        found.append(helper.make_tensor_value_info(LABELS, TensorProto.FLOAT, ["n", C]))
    if design.adjacency is not None:
        found += [
            helper.make_tensor_value_info(ROWS, TensorProto.INT64, ["e", 1]),
            helper.make_tensor_value_info(NEIGHBOURS, TensorProto.INT64, ["e"]),
            helper.make_tensor_value_info(WEIGHTS, TensorProto.FLOAT, ["e", 1]),
        ]
    if design.structure is not None:
        found.append(helper.make_tensor_value_info(STRUCTURE, TensorProto.FLOAT, ["n", STRUCTURE_WIDTH]))
    return found


def _added(graph: _Nodes, design: Architecture, weights: Weights) -> list[str]:
    """Values (S, n, width) that the first layer adds to its products."""
    found = []
    if design.label_steps is not None:
        # (n, C) @ (S, C, width)
        constant = graph.constant(weights["label_weight"], "label_weight")
        found.append(graph.add("MatMul", LABELS, constant, name="of_labels"))
    if design.structure is not None:
        # (n, 6) @ (S, 6, width)
        constant = graph.constant(weights["structure_weight"], "structure_weight")
        found.append(graph.add("MatMul", STRUCTURE, constant, name="of_structure"))
    if design.adjacency is not None:
        W = weights["adjacency.weights"]
        S, N, width = W.shape
        by_node = graph.constant(W.transpose(1, 0, 2).reshape(N, S * width), "node_weights")
        # (e, S·width): each entry's share, added up into the row that it stands in
        gathered = graph.add("Gather", by_node, NEIGHBOURS, name="of_neighbours", axis=0)
        weighed = graph.add("Mul", gathered, WEIGHTS, name="weighed_neighbours")
        size = graph.add("Shape", INPUT, name="stack_shape")
        count = graph.add("Gather", size, graph.constant(np.asarray([1]), "row_axis"), name="num_rows", axis=0)
        wide = graph.constant(np.asarray([S * width]), "row_width")
        shape = graph.add("Concat", count, wide, name="sum_shape", axis=0)
        zeros = graph.add(
            "ConstantOfShape", shape, name="zeros", value=numpy_helper.from_array(np.zeros(1, np.float32), "zero")
        )
        summed = graph.add("ScatterND", zeros, ROWS, weighed, name="neighbour_sums", reduction="add")
        # (n, S·width) -> (n, S, width) -> (S, n, width)
        apart = graph.reshape(summed, (-1, S, width), "sums_by_node")
        found.append(graph.add("Transpose", apart, name="of_rows", perm=[1, 0, 2]))
    return found


def _join(graph: _Nodes, design: Architecture, F: int, weights: Weights) -> str:
    """(K + 1, n, F) to (n, width), or (S, n, width) where the join learns."""
    K, message = design.k_pre, design.message
    if message in (None, "none"):
        return graph.add("Gather", INPUT, graph.constant(np.asarray(K, np.int64), "last_hop"), name="joined", axis=0)
    if message in ("mean", "max"):
        operator = "ReduceMean" if message == "mean" else "ReduceMax"
        return graph.add(operator, INPUT, name="joined", axes=[0], keepdims=0)
    if message == "sum":
        # from operator set 13 on a sum takes its axes as an input
        return graph.add("ReduceSum", INPUT, graph.constant(np.asarray([0]), "hop_axis"), name="joined", keepdims=0)
    if message == "concat":
        # (K+1, n, F) -> (n, K+1, F) -> (n, (K+1)·F)
        by_node = graph.add("Transpose", INPUT, name="by_node", perm=[1, 0, 2])
        return graph.reshape(by_node, (-1, (K + 1) * F), "joined")
    if message == "adaptive":
        return _adaptive(graph, weights["join.gate"])
    if message == "recursive":
        return _recursive(graph, weights["join.gates"], K)
    if message == "jk":
        return _jumping_knowledge(graph, weights)
    assert message is not None
    alpha = decay_rate(message)
    if message == "weighted":
        logits = weights["join.logits"].astype(np.float64)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    else:
        assert alpha is not None
        shares = (1.0 - alpha) ** np.arange(K + 1, dtype=np.float64)[None, :]
    shares = (shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)
    # (S, K+1) @ (K+1, n·F) -> (S, n·F) -> (S, n, F)
    flat = graph.reshape(INPUT, (K + 1, -1), "flat")
    summed = graph.add("MatMul", graph.constant(shares, "hop_weights"), flat, name="summed")
    return graph.reshape(summed, (shares.shape[0], -1, F), "joined")


def _adaptive(graph: _Nodes, gate: NDArray[np.float32]) -> str:
    # (K+1, n, F) @ (F, S) -> (K+1, n, S)
    scores = graph.add("MatMul", INPUT, graph.constant(gate.T, "gate"), name="gate_scores")
    return _gated(graph, graph.add("Sigmoid", scores, name="gates"))


def _recursive(graph: _Nodes, gates: NDArray[np.float32], K: int) -> str:
    # (K+1, n, F) @ (F, S) -> (K+1, n, S), once for what a hop adds to the history and once for the hop itself
    of_history = graph.add("MatMul", INPUT, graph.constant(gates[:, 0].T, "history_gate"), name="history_scores")
    of_hop = graph.add("MatMul", INPUT, graph.constant(gates[:, 1].T, "hop_gate"), name="hop_scores")
    axis = graph.constant(np.asarray([0]), "hop_axis")
    places = [graph.constant(np.asarray([k]), f"place_{k}") for k in range(K + 1)]
    opened = ""
    for k in range(K + 1):
        own = graph.add("Gather", of_hop, places[k], name=f"hop_score_{k}", axis=0)
        if k == 0:
            history = graph.add("Gather", of_history, places[0], name="history_0", axis=0)
        else:
            shares = graph.add("Softmax", opened, name=f"shares_{k}", axis=0)
            before = graph.add("Slice", of_history, places[0], places[k], name=f"before_{k}")
            weighed = graph.add("Mul", shares, before, name=f"weighed_{k}")
            history = graph.add("ReduceSum", weighed, axis, name=f"history_{k}", keepdims=1)
        gate = graph.add("Sigmoid", graph.add("Add", history, own, name=f"score_{k}"), name=f"gate_{k}")
        opened = graph.add("Concat", opened, gate, name=f"gates_{k}", axis=0) if k else gate
    return _gated(graph, opened)


def _jumping_knowledge(graph: _Nodes, weights: Weights) -> str:
    reference, gate = weights["join.reference"], weights["join.gate"]
    S, hops, F, d = reference.shape
    # (K+1, n, F) @ (K+1, F, S·d), summed over hops: what all hops of a node come to
    wide = graph.constant(reference.transpose(1, 2, 0, 3).reshape(hops, F, S * d), "reference")
    parts = graph.add("MatMul", INPUT, wide, name="reference_parts")
    summed = graph.add(
        "ReduceSum", parts, graph.constant(np.asarray([0]), "hop_axis"), name="reference_sum", keepdims=0
    )
    open_sum = graph.reshape(graph.add("Relu", summed, name="reference_relu"), (-1, S, d), "node_reference")
    weighed = graph.add(
        "Mul", open_sum, graph.constant(weights["join.reference_gate"], "reference_gate"), name="reference_weighed"
    )
    of_node = graph.add("ReduceSum", weighed, graph.constant(np.asarray([2]), "last_axis"), name="of_node", keepdims=0)
    of_hop = graph.add("MatMul", INPUT, graph.constant(gate.T, "gate"), name="gate_scores")
    both = graph.add("Add", of_hop, of_node, name="gate_sums")
    return _gated(graph, graph.add("Sigmoid", both, name="gates"))


def _gated(graph: _Nodes, opened: str) -> str:
    """Hops added with the softmax of gates (K+1, n, S) as weights: (S, n, F)."""
    shares = graph.add("Softmax", opened, name="hop_weights", axis=0)
    # for each node: (S, K+1) @ (K+1, F) -> (n, S, F) -> (S, n, F)
    by_node = graph.add("Transpose", shares, name="weights_by_node", perm=[1, 2, 0])
    hops = graph.add("Transpose", INPUT, name="hops_by_node", perm=[1, 0, 2])
    summed = graph.add("MatMul", by_node, hops, name="summed")
    return graph.add("Transpose", summed, name="joined", perm=[1, 0, 2])


def _transform(graph: _Nodes, h: str, design: Architecture, weights: Weights, added: Sequence[str]) -> str:
    """(n, width) or (S, n, width) to class scores (S, n, C); `added` goes to the products of the first layer."""
    num_layers = design.k_trans
    for layer in range(num_layers):
        weight = weights[f"transform.weights.{layer}"]
        product = graph.add("MatMul", h, graph.constant(weight, f"weight_{layer}"), name=f"product_{layer}")
        bias = graph.constant(weights[f"transform.biases.{layer}"], f"bias_{layer}")
        y = graph.add("Add", product, bias, name=f"scores_{layer}")
        for value in added if layer == 0 else ():
            y = graph.add("Add", y, value, name=f"with_{value}")
        if layer < num_layers - 1:
            if design.has_norm_layers:
                y = _norm(graph, y, layer, weights)
            y = graph.add("Relu", y, name=f"hidden_{layer}")
            if layer > 0 and design.residual is None and weight.shape[1] == weight.shape[2]:
                y = graph.add("Add", y, h, name=f"residual_{layer}")
        h = y
    return h


def _norm(graph: _Nodes, y: str, layer: int, weights: Weights) -> str:
    """A normalisation layer; gains differ by repeat, which the operator of ONNX does not know, so they come after."""
    gains, shifts = weights[f"transform.gains.{layer}"], weights[f"transform.shifts.{layer}"]
    ones = graph.constant(np.ones(gains.shape[-1], np.float32), f"ones_{layer}")
    normed = graph.add("LayerNormalization", y, ones, name=f"normed_{layer}", axis=-1, epsilon=NORM_EPSILON)
    scaled = graph.add("Mul", normed, graph.constant(gains, f"gain_{layer}"), name=f"scaled_{layer}")
    return graph.add("Add", scaled, graph.constant(shifts, f"shift_{layer}"), name=f"shifted_{layer}")


__all__ = ["INPUT", "OUTPUT", "onnx_model"]
