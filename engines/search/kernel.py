"""Similarity of designs: a kernel that knows ordinal, numeric, categorical and conditional choices.

The kernel is a product over choices, so that it needs one small table a choice: entry (a, b) is the similarity of the
values in positions a and b, and position 0 stands for "inactive" (code -1).

- ordinal, number: 1 - ρ + ρ·Matérn-5/2(|u_a - u_b| / ℓ). u is the position (ordinal) or value (number) on a
  logarithmic scale from 0 to 1, because the first steps change a design more than the tenth. With relevance ρ below 1
  designs far apart stay correlated: expanded over the product, this is an additive
  model with interactions of every order.
- categorical: exp(-(θ_a + θ_b)) for a ≠ b, so that one odd value (triangle) need not make the others strangers.
- inactive: two inactive values are equal; inactive and active are exp(-θ_0) apart, whatever the active value adds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import NormalPrior
from torch import Tensor

from engines.objectives import Floats
from search_space.space import Choice


class DesignKernel(Kernel):  # type: ignore[misc]
    """Correlation of designs given by their codes; 1 on the diagonal.

    Args:
        choices: the d choices; inputs have shape (..., n, d) and hold codes as float64.
    """

    def __init__(self, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._choices = tuple(choices)
        for j, choice in enumerate(self._choices):
            self.register_buffer(f"positions_{j}", torch.from_numpy(positions(choice)))
            if choice.kind == "categorical":
                self._positive(f"theta_{j}", len(choice.values) + 1, median=0.2, spread=1.0)
            else:
                self._positive(f"lengthscale_{j}", 1, median=0.5, spread=0.8)
                self._positive(f"theta_{j}", 1, median=0.2, spread=1.0)
                self.register_parameter(f"raw_relevance_{j}", torch.nn.Parameter(torch.zeros(1, dtype=torch.float64)))
                self.register_prior(f"relevance_{j}_prior", NormalPrior(0.0, 1.5), f"raw_relevance_{j}")
        self.double()

    def _positive(self, name: str, size: int, median: float, spread: float) -> None:
        """A positive parameter kept as its logarithm, with a log-normal prior of the given median."""
        start = torch.full((size,), math.log(median), dtype=torch.float64)
        self.register_parameter(f"log_{name}", torch.nn.Parameter(start))
        self.register_prior(f"{name}_prior", NormalPrior(math.log(median), spread), f"log_{name}")

    def table(self, j: int) -> Tensor:
        """Similarities of the values of choice j, shape (values + 1, values + 1); row 0 is "inactive"."""
        theta = getattr(self, f"log_theta_{j}").exp()
        if self._choices[j].kind == "categorical":
            table = torch.exp(-(theta[:, None] + theta[None, :]))
            return table - torch.diag_embed(torch.diagonal(table)) + torch.eye(len(theta), dtype=torch.float64)
        place = getattr(self, f"positions_{j}")
        distance = (place[:, None] - place[None, :]).abs() / getattr(self, f"log_lengthscale_{j}").exp()
        root = math.sqrt(5.0) * distance
        relevance = torch.sigmoid(getattr(self, f"raw_relevance_{j}"))
        active = 1.0 - relevance + relevance * (1.0 + root + root * root / 3.0) * torch.exp(-root)
        edge = torch.exp(-theta).expand(len(place))
        one = torch.ones(1, 1, dtype=torch.float64)
        return torch.cat((torch.cat((one, edge[None, :]), 1), torch.cat((edge[:, None], active), 1)))

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Correlations of shape (..., n1, n2), or (..., n) of the diagonal."""
        if diag:
            return torch.ones(x1.shape[:-1], dtype=x1.dtype)
        product: Tensor | None = None
        for j in range(len(self._choices)):
            left, right = x1[..., j].long() + 1, x2[..., j].long() + 1
            factor = self.table(j)[left.unsqueeze(-1), right.unsqueeze(-2)]
            product = factor if product is None else product * factor
        assert product is not None
        return product

    def tables(self) -> list[Floats]:
        """All tables as float64 arrays, detached from the graph."""
        with torch.no_grad():
            return [self.table(j).numpy().copy() for j in range(len(self._choices))]


def positions(choice: Choice) -> Floats:
    """Places of a choice's values on a scale from 0 to 1 (zeros where there is one value or no order)."""
    if choice.kind == "categorical" or len(choice.values) < 2:
        return np.zeros(len(choice.values))
    if choice.kind == "number":
        values: Floats = np.asarray(choice.values, dtype=np.float64)
        scaled: Floats = (values - values[0]) / (values[-1] - values[0])
        return scaled
    steps: Floats = np.log1p(np.arange(len(choice.values), dtype=np.float64))
    steps /= steps[-1]
    return steps
