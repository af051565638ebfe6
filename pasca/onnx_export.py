"""The network of a design as an ONNX model: message aggregation, transform, softmax, and the mean over repeats.

Written node by node rather than traced: the formulas are few, the file is the same on every machine and names no
source lines, and an operator set of 2022 runs wherever an ONNX runtime does. Tests hold every message aggregator
against torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from search_space.architecture import Architecture, decay_rate
from search_space.errors import ModelError

OPSET, IR_VERSION = 17, 8
LARGEST_BYTES = 2**31 - 2**20
"""An ONNX file is one protocol buffer, whose format ends at 2 GB."""

INPUT, OUTPUT = "hops", "probabilities"

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

    Its input `hops` is the stack (K_pre + 1, n, F) of normalised, propagated features, hop 0 first, for any n; for
    `none` it reads the last hop only. Its output `probabilities` (n, C) comes before post-processing; rows sum to one.

    Args:
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
    scores = _transform(graph, joined, design.k_trans, weights)
    each = graph.add("Softmax", scores, name="repeat_probabilities", axis=2)
    graph.add("ReduceMean", each, name=OUTPUT, axes=[0], keepdims=0)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "pasca",
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [design.k_pre + 1, "n", num_features])],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["n", num_classes])],
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


def _join(graph: _Nodes, design: Architecture, F: int, weights: Weights) -> str:
    """(K + 1, n, F) to (n, width), or (S, n, width) where the join learns."""
    K, message = design.k_pre, design.message
    if message in (None, "none"):
        return graph.add("Gather", INPUT, graph.constant(np.asarray(K, np.int64), "last_hop"), name="joined", axis=0)
    if message in ("mean", "max"):
        operator = "ReduceMean" if message == "mean" else "ReduceMax"
        return graph.add(operator, INPUT, name="joined", axes=[0], keepdims=0)
    if message == "concat":
        # (K+1, n, F) -> (n, K+1, F) -> (n, (K+1)·F)
        by_node = graph.add("Transpose", INPUT, name="by_node", perm=[1, 0, 2])
        return graph.reshape(by_node, (-1, (K + 1) * F), "joined")
    if message == "adaptive":
        return _adaptive(graph, weights["join.gate"])
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
    opened = graph.add("Sigmoid", scores, name="gates")
    shares = graph.add("Softmax", opened, name="hop_weights", axis=0)
    # for each node: (S, K+1) @ (K+1, F) -> (n, S, F) -> (S, n, F)
    by_node = graph.add("Transpose", shares, name="weights_by_node", perm=[1, 2, 0])
    hops = graph.add("Transpose", INPUT, name="hops_by_node", perm=[1, 0, 2])
    summed = graph.add("MatMul", by_node, hops, name="summed")
    return graph.add("Transpose", summed, name="joined", perm=[1, 0, 2])


def _transform(graph: _Nodes, h: str, num_layers: int, weights: Weights) -> str:
    """(n, width) or (S, n, width) to class scores (S, n, C)."""
    for layer in range(num_layers):
        weight = weights[f"transform.weights.{layer}"]
        product = graph.add("MatMul", h, graph.constant(weight, f"weight_{layer}"), name=f"product_{layer}")
        bias = graph.constant(weights[f"transform.biases.{layer}"], f"bias_{layer}")
        y = graph.add("Add", product, bias, name=f"scores_{layer}")
        if layer < num_layers - 1:
            y = graph.add("Relu", y, name=f"hidden_{layer}")
            if layer > 0 and weight.shape[1] == weight.shape[2]:
                y = graph.add("Add", y, h, name=f"residual_{layer}")
        h = y
    return h


__all__ = ["INPUT", "OUTPUT", "onnx_model"]
