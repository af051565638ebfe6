"""Label reuse: the labels of training nodes as further inputs, masked so that no label predicts itself.

With Y (N, C) one-hot on the nodes whose labels are shown and 0 elsewhere, a node's further inputs are Z = Â^k Y, k
steps of the augmented adjacency; the first layer adds Z V to its products, with weights V of its own. In every epoch
each training node's label is shown with probability 1/2, and only the nodes whose labels are not shown are learned
from: what a node is taught is never among its inputs, by whatever path. Afterwards all training labels are shown, to
all nodes; labels of validation and test nodes never are.

Source: Wang et al. 2021 (bag of tricks, label usage) and Shi et al. 2021 (UniMP, masked label prediction), decoupled as
in Sun et al. 2021 (SAGN).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Step = Callable[[Floats], Floats]
"""One step of Â, (N, w) to (N, w)."""


def label_inputs(
    num_nodes: int, num_classes: int, nodes: NDArray[np.int64], classes: NDArray[np.int64], steps: int, step: Step
) -> Floats:
    """Z for shown labels that are the same for all repeats.

    Args:
        nodes, classes: (n,) whose labels are shown, and what they are.
    Returns:
        (N, C).
    """
    shown = np.zeros((num_nodes, num_classes), np.float32)
    shown[nodes, classes] = 1.0
    for _ in range(steps):
        shown = step(shown)
    return shown


class LabelReuse:
    """What label reuse adds to one training of S repeats.

    Args:
        num_nodes, num_classes: N, C.
        nodes, classes: (n,) training nodes in the order of the training rows, and their labels.
        validation: (n_val,) validation nodes.
        steps: k.
        step: one step of Â.
    """

    def __init__(
        self,
        num_nodes: int,
        num_classes: int,
        nodes: NDArray[np.int64],
        classes: NDArray[np.int64],
        validation: NDArray[np.int64],
        steps: int,
        step: Step,
    ) -> None:
        self._shape, self._nodes, self._classes = (num_nodes, num_classes), nodes, classes
        self._steps, self._step = steps, step
        everything = label_inputs(num_nodes, num_classes, nodes, classes, steps, step)
        self.validation = torch.from_numpy(everything[validation])

    def draw(
        self, generators: Sequence[torch.Generator], further: NDArray[np.int64] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Show half of the labels, each repeat its own half.

        Args:
            generators: one a repeat.
            further: (b,) nodes outside the training part whose inputs are wanted, too.
        Returns:
            Inputs of the training rows, then of the further nodes (S, n + b, C), and which training rows are learned
            from, (S, n) of 0 and 1.
        """
        n, S = self._nodes.size, len(generators)
        shown = torch.stack([torch.rand(n, generator=one, device=one.device) < 0.5 for one in generators]).cpu()
        return self.inputs(shown, further), (~shown).float().reshape(S, n)

    def inputs(self, shown: torch.Tensor, further: NDArray[np.int64] | None = None) -> torch.Tensor:
        """Inputs of the training rows, then of further nodes, (S, n + b, C), where the labels shown are (S, n)."""
        (N, C), S = self._shape, len(shown)
        start = np.zeros((N, S, C), np.float32)
        start[self._nodes, :, self._classes] = shown.numpy().T
        current = start.reshape(N, S * C)
        for _ in range(self._steps):
            current = self._step(current)
        wanted = self._nodes if further is None else np.concatenate((self._nodes, further))
        rows = current[wanted].reshape(-1, S, C)
        return torch.from_numpy(np.ascontiguousarray(rows.transpose(1, 0, 2)))
