"""Consistency: of a node without a label, a network is to say the same whatever its dropout masks.

Each step looks at some nodes outside the training part M = 2 times, with fresh masks each time. With p_m (C,) what it
says of a node the m-th time, and p̄ the mean, the aim is the mean made sharper, q_c = p̄_c^(1/T) / Σ p̄^(1/T) with
T = 1/2, and

    loss = λ · mean over nodes and m of Σ_c (p_m,c - q_c)²

is added to that of the labels, of which it reads none; q is not differentiated. A few labels go further this way: what
the network is sure of becomes its teacher where it is not.

Source: Feng et al. 2020 (GRAND), equations (3) to (5), with dropout of propagated features in place of whole nodes, so
that features are propagated once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from engines.evaluation.further_inputs import FurtherInputs, FurtherRows
from search_space.assembly import Network

NUM_VIEWS, TEMPERATURE = 2, 0.5
MOST_NODES = 4096
"""Nodes that are looked at in a training at most, drawn once where there are more."""
NODES_A_STEP = 256


class Consistency:
    """What consistency adds to the trainings of one design.

    Args:
        weight: λ.
        nodes: (U,) nodes outside the training part, as from `unlabelled`.
        hops: (k, U, F) of these nodes, the hops that `required_hops` names.
        further: of all nodes, for a design that takes them.
    """

    def __init__(
        self,
        weight: float,
        nodes: NDArray[np.int64],
        hops: torch.Tensor,
        device: torch.device,
        further: FurtherInputs | None = None,
    ) -> None:
        self._weight, self._nodes, self._hops = weight, nodes, hops
        self._device, self._further = device, further

    def prepare(self, network: Network) -> torch.Tensor:
        """What the network takes for these nodes."""
        with torch.no_grad():
            return network.prepare(self._hops.to(self._device)).contiguous()

    def places(self, epoch: int) -> NDArray[np.int64]:
        """Which of the nodes a step of that epoch looks at, ascending; the same for all repeats."""
        U = self._nodes.size
        if U <= NODES_A_STEP:
            return np.arange(U)
        return np.sort(np.random.default_rng([U, epoch]).choice(U, NODES_A_STEP, replace=False))

    def nodes(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Node numbers."""
        return self._nodes[places]

    def further(self, places: NDArray[np.int64]) -> FurtherRows:
        """Their further inputs."""
        assert self._further is not None, "there are no further inputs"
        return self._further.rows(self._nodes[places], self._device)

    def losses(self, views: Sequence[torch.Tensor]) -> torch.Tensor:
        """λ times the disagreement of M views (S, b, C), before their softmax, for each repeat: (S,)."""
        said = torch.stack([torch.softmax(view, dim=2) for view in views])
        sharper = said.detach().mean(dim=0) ** (1.0 / TEMPERATURE)
        aim = sharper / sharper.sum(dim=2, keepdim=True)
        return self._weight * ((said - aim) ** 2).sum(dim=3).mean(dim=(0, 2))


def unlabelled(num_nodes: int, train: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending nodes outside the training part, at most `MOST_NODES` of them, the same for the same graph."""
    outside = np.setdiff1d(np.arange(num_nodes), train)
    if outside.size <= MOST_NODES:
        return outside
    return np.sort(np.random.default_rng(num_nodes).choice(outside, MOST_NODES, replace=False))
