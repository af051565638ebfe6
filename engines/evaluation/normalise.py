"""Feature normalisation: fitted once on the graph of the search, applied unchanged to any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.graph import Features
from search_space.errors import ConfigError, ShapeError
from search_space.names import NORMALISATIONS


@dataclass(frozen=True, eq=False)
class Normaliser:
    """One way of normalising features, with what it has learned from them.

    Attributes:
        kind: `row`, `symmetric`, `l2`, `standard` or `none`.
        mean, scale: (F,) float64 of `standard`, and the scale of `symmetric`; None otherwise.
    """

    kind: str
    mean: NDArray[np.float64] | None = None
    scale: NDArray[np.float64] | None = None

    @classmethod
    def fit(cls, kind: str, features: Features) -> Normaliser:
        """Learn the statistics of `standard` and `symmetric` from (N, F) features; the others have none.

        Columns are measured over all nodes: features, unlike labels, are known for every node. A constant column is
        centred and not scaled. `symmetric` is D_r^(-1/2) X D_c^(-1/2) with the sums of absolute values of rows and
        columns (Dhillon 2001): words that are everywhere count less.

        Raises:
            ConfigError: the kind is unknown.
        """
        if kind not in NORMALISATIONS:
            raise ConfigError(f"unknown normalisation {kind!r}; choose from: {', '.join(NORMALISATIONS)}")
        if kind == "symmetric":
            sums = np.asarray(abs(features).sum(axis=0, dtype=np.float64)).ravel()
            return cls(kind, None, np.sqrt(np.where(sums > 0.0, sums, 1.0)))
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
        elif self.kind == "symmetric":
            assert self.scale is not None
            _check_width(dense, self.scale)
            _divide_rows(dense, np.sqrt(np.abs(dense).sum(axis=1, dtype=np.float64)))
            dense /= self.scale.astype(np.float32)
        elif self.kind == "l2":
            _divide_rows(dense, np.sqrt(np.einsum("nf,nf->n", dense, dense, dtype=np.float64)))
        elif self.kind == "standard":
            assert self.mean is not None
            assert self.scale is not None
            _check_width(dense, self.scale)
            dense -= self.mean.astype(np.float32)
            dense /= self.scale.astype(np.float32)
        return dense

    def as_mapping(self) -> dict[str, Any]:
        """JSON types; `from_mapping` reads them back."""
        learned = {"mean": self.mean, "scale": self.scale}
        return {"kind": self.kind, **{name: one.tolist() for name, one in learned.items() if one is not None}}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Normaliser:
        """Read what `as_mapping` wrote.

        Raises:
            ConfigError: the kind is unknown.
        """
        if values["kind"] not in NORMALISATIONS:
            raise ConfigError(f"unknown normalisation {values['kind']!r}; choose from: {', '.join(NORMALISATIONS)}")
        learned = {"standard": ("mean", "scale"), "symmetric": ("scale",)}.get(values["kind"], ())
        return cls(values["kind"], **{name: np.asarray(values[name], np.float64) for name in learned})


def _check_width(dense: NDArray[np.float32], statistics: NDArray[np.float64]) -> None:
    if dense.shape[1] != statistics.size:
        raise ShapeError(f"expected {statistics.size} features, found {dense.shape[1]}")


def _divide_rows(dense: NDArray[np.float32], divisor: NDArray[np.float64]) -> None:
    dense /= np.where(divisor > 0.0, divisor, 1.0).astype(np.float32)[:, None]
