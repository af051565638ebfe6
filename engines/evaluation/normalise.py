"""Feature normalisation: fitted once on the graph of the search, applied unchanged to any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.recipe import NORMALISATIONS
from engines.graph import Features
from search_space.errors import ConfigError, ShapeError


@dataclass(frozen=True, eq=False)
class Normaliser:
    """One way of normalising features, with what it has learned from them.

    Attributes:
        kind: `row`, `l2`, `standard` or `none`.
        mean, scale: (F,) float64 of `standard`; None otherwise.
    """

    kind: str
    mean: NDArray[np.float64] | None = None
    scale: NDArray[np.float64] | None = None

    @classmethod
    def fit(cls, kind: str, features: Features) -> Normaliser:
        """Learn the statistics of `standard` from (N, F) features; the others have none.

        Columns are measured over all nodes: features, unlike labels, are known for every node. A constant column is
        centred and not scaled.

        Raises:
            ConfigError: the kind is unknown.
        """
        if kind not in NORMALISATIONS:
            raise ConfigError(f"unknown normalisation {kind!r}; choose from: {', '.join(NORMALISATIONS)}")
        if kind != "standard":
            return cls(kind)
        N = features.shape[0]
        mean = np.asarray(features.sum(axis=0, dtype=np.float64)).ravel() / N
        if isinstance(features, sparse.csr_array):
            squares = np.asarray(features.astype(np.float64).power(2).sum(axis=0)).ravel() / N
        else:
            squares = np.einsum("nf,nf->f", features, features, dtype=np.float64) / N
        deviation = np.sqrt(np.maximum(squares - mean**2, 0.0))
        return cls(kind, mean, np.where(deviation > 1e-12, deviation, 1.0))

    def apply(self, features: Features) -> NDArray[np.float32]:
        """Normalise.

        Args:
            features: (n, F), dense or CSR; not modified.
        Returns:
            (n, F) float32, dense and C-contiguous. A row of zeros stays zero under `row`, `l2` and `none`.
        Raises:
            ShapeError: F differs from what the statistics were fitted on.
        """
        dense = features.toarray() if isinstance(features, sparse.csr_array) else np.array(features)
        dense = np.ascontiguousarray(dense, dtype=np.float32)
        if self.kind == "row":
            _divide_rows(dense, np.abs(dense).sum(axis=1, dtype=np.float64))
        elif self.kind == "l2":
            _divide_rows(dense, np.sqrt(np.einsum("nf,nf->n", dense, dense, dtype=np.float64)))
        elif self.kind == "standard":
            assert self.mean is not None
            assert self.scale is not None
            if dense.shape[1] != self.mean.size:
                raise ShapeError(f"expected {self.mean.size} features, found {dense.shape[1]}")
            dense -= self.mean.astype(np.float32)
            dense /= self.scale.astype(np.float32)
        return dense

    def as_mapping(self) -> dict[str, Any]:
        """JSON types; `from_mapping` reads them back."""
        if self.mean is None or self.scale is None:
            return {"kind": self.kind}
        return {"kind": self.kind, "mean": self.mean.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Normaliser:
        """Read what `as_mapping` wrote.

        Raises:
            ConfigError: the kind is unknown.
        """
        if values["kind"] not in NORMALISATIONS:
            raise ConfigError(f"unknown normalisation {values['kind']!r}; choose from: {', '.join(NORMALISATIONS)}")
        if values["kind"] != "standard":
            return cls(values["kind"])
        return cls("standard", np.asarray(values["mean"], np.float64), np.asarray(values["scale"], np.float64))


def _divide_rows(dense: NDArray[np.float32], divisor: NDArray[np.float64]) -> None:
    dense /= np.where(divisor > 0.0, divisor, 1.0).astype(np.float32)[:, None]
