"""Further inputs: what some designs take of a node besides its features and the labels around it.

They are not propagated. The first layer adds their products to those of the joined features; see `Network`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.normalise import Normaliser
from search_space.architecture import Architecture
from search_space.local_structure import local_structure


@dataclass(frozen=True, eq=False)
class FurtherRows:
    """Further inputs of n nodes, on the device of the weights.

    Attributes:
        adjacency: sparse (n, N) rows of the adjacency; None for a design that takes none.
        structure: (n, 6) standardised local structure; None likewise.
    """

    adjacency: torch.Tensor | None = None
    structure: torch.Tensor | None = None

    def followed_by(self, others: FurtherRows) -> FurtherRows:
        """These rows and then others of the same kind."""
        return FurtherRows(_joined(self.adjacency, others.adjacency), _joined(self.structure, others.structure))


@dataclass(frozen=True, eq=False)
class FurtherInputs:
    """Further inputs of all nodes.

    Attributes:
        adjacency: (N, N); None for a design that does not take its rows.
        structure: (N, 6) float32, standardised; None likewise.
    """

    adjacency: sparse.csr_array | None = None
    structure: NDArray[np.float32] | None = None

    def rows(self, nodes: NDArray[np.int64] | slice, device: torch.device | None = None) -> FurtherRows:
        """Those of some nodes, in this order."""
        return FurtherRows(
            None if self.adjacency is None else adjacency_rows(self.adjacency, nodes, device),
            None if self.structure is None else torch.from_numpy(self.structure[nodes]).to(device),
        )


def further_inputs(
    design: Architecture, adjacency: sparse.csr_array, standard: Normaliser | None = None
) -> FurtherInputs | None:
    """What a design takes of the nodes of a graph; None for one that takes nothing.

    Args:
        adjacency: (N, N) as in a Graph.
        standard: how `as_large_as` standardised it in the training, for a design that takes it.
    """
    if design.adjacency is None and design.structure is None:
        return None
    structure = None
    if design.structure is not None:
        assert standard is not None, "local structure is standardised as in the training"
        structure = standard.apply(local_structure(adjacency))
    return FurtherInputs(adjacency if design.adjacency is not None else None, structure)


def standard_structure(adjacency: sparse.csr_array) -> tuple[Normaliser, NDArray[np.float32]]:
    """Local structure (N, 6) of the graph of a training, and what gives each column mean 0 and deviation 1."""
    columns = local_structure(adjacency)
    return Normaliser.fit("standard", columns), columns


def as_large_as(standard: Normaliser, features: NDArray[np.float32]) -> Normaliser:
    """Standardise to columns so large that a row of them is, on average, as large as one of the features (n, F).

    Beside small features, such as those of rows that sum to one, columns of deviation 1 would be all that is learned.
    """
    assert standard.scale is not None
    size = float(np.sqrt(np.einsum("nf,nf->", features, features, dtype=np.float64) / len(features)))
    return replace(standard, scale=standard.scale * np.sqrt(standard.scale.size) / (size or 1.0))


def adjacency_rows(
    adjacency: sparse.csr_array, rows: NDArray[np.int64] | slice, device: torch.device | None = None
) -> torch.Tensor:
    """Rows of the adjacency as a sparse tensor, (n, N)."""
    found = sparse.csr_array(adjacency[rows]).tocoo()
    places = torch.from_numpy(np.stack((found.row, found.col)).astype(np.int64))
    made = torch.sparse_coo_tensor(places, torch.from_numpy(found.data), found.shape, check_invariants=False)
    return made.coalesce().to(device)


def _joined(one: torch.Tensor | None, other: torch.Tensor | None) -> torch.Tensor | None:
    return None if one is None or other is None else torch.cat((one, other))
