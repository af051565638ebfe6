"""Architecture -> the trainable network of its middle stage."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from search_space.adjacency_layer import AdjacencyLayer
from search_space.architecture import Architecture
from search_space.local_structure import STRUCTURE_WIDTH
from search_space.message_operators import message_operator
from search_space.transform import Dropout, InputDropout, Normalise, Transform, glorot, repeat_product


class Network(nn.Module):
    """Message aggregator and transform of one design, for S repeats at once.

    Args:
        num_features: columns of a hop, see `hop_width`.
        num_nodes: N, for a design that takes adjacency rows.
    Attributes:
        join: the message aggregator, or None for a design without pre-processing.
        transform: the MLP.
    """

    def __init__(
        self,
        design: Architecture,
        num_features: int,
        num_classes: int,
        hidden_width: int,
        generators: Sequence[torch.Generator],
        num_nodes: int | None = None,
    ) -> None:
        super().__init__()
        self.join = message_operator(design.message, design.k_pre, num_features, generators) if design.message else None
        in_width = self.join.width if self.join else num_features
        self.transform = Transform(
            in_width,
            hidden_width,
            num_classes,
            design.k_trans,
            generators,
            norm=design.has_norm_layers,
            residual=design.residual is None,
        )
        # last, so that the other weights start as they would without it
        self.label_weight: nn.Parameter | None = None
        self.adjacency: AdjacencyLayer | None = None
        first = num_classes if design.k_trans == 1 else hidden_width
        if design.adjacency is not None:
            assert num_nodes is not None, "adjacency rows have a weight for each node"
            self.adjacency = AdjacencyLayer(num_nodes, first, generators)
        if design.label_steps is not None:
            self.label_weight = nn.Parameter(glorot(num_classes, first, generators))
        self.structure_weight: nn.Parameter | None = None
        if design.structure is not None:
            self.structure_weight = nn.Parameter(glorot(STRUCTURE_WIDTH, first, generators))

    def prepare(self, hops: torch.Tensor) -> torch.Tensor:
        """Do once what does not depend on weights.

        Args:
            hops: (K_pre + 1, n, F), F columns of a hop.
        Returns:
            What `forward` takes: (n, width) already joined, or the hops themselves when the join learns.
        """
        if self.join is None:
            return hops[0]
        if self.join.learns:
            return hops
        joined: torch.Tensor = self.join(hops)
        return joined

    def forward(
        self,
        prepared: torch.Tensor,
        input_dropout: InputDropout | None = None,
        hidden_dropout: Dropout | None = None,
        label_inputs: torch.Tensor | None = None,
        adjacency_rows: torch.Tensor | None = None,
        structure: torch.Tensor | None = None,
        normalise: Normalise | None = None,
    ) -> torch.Tensor:
        """Class scores (S, n, C) before the softmax; dropouts and `normalise` are given while training only.

        Args:
            label_inputs: (n, C) or (S, n, C), for a design that reuses labels.
            adjacency_rows: sparse (n, N), for a design that takes them.
            structure: (n, 6) standardised `local_structure`, for a design that takes it.
        """
        x = self.join(prepared) if self.join is not None and self.join.learns else prepared
        added = None
        if self.label_weight is not None:
            assert label_inputs is not None, "a design that reuses labels needs them"
            added = repeat_product(label_inputs, self.label_weight)
        if self.adjacency is not None:
            assert adjacency_rows is not None, "a design that takes adjacency rows needs them"
            of_rows = self.adjacency(adjacency_rows)
            added = of_rows if added is None else added + of_rows
        if self.structure_weight is not None:
            assert structure is not None, "a design that takes local structure needs it"
            of_structure = repeat_product(structure, self.structure_weight)
            added = of_structure if added is None else added + of_structure
        scores: torch.Tensor = self.transform(x, input_dropout, hidden_dropout, added, normalise)
        return scores

    def first_layer_parameters(self) -> list[nn.Parameter]:
        """(S, in, width) of all that the first layer's outputs are sums of, but for its biases."""
        others = (self.label_weight, self.structure_weight, self.adjacency.weights if self.adjacency else None)
        return [self.transform.weights[0], *(weight for weight in others if weight is not None)]

    def undecayed_parameters(self) -> list[nn.Parameter]:
        """Weights trained without weight decay: the hop weights of `weighted`."""
        return [parameter for name, parameter in self.named_parameters() if name == "join.logits"]
