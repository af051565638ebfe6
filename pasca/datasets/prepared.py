"""Prepared graphs: a converted folder with what each of P ranks needs of it, so that no rank reads the whole graph.

Beside the files of the graph (`native.py`) lies a folder `ranks-P`: for each rank its nodes, their features, and its
rows of every propagation matrix, cut into interior and boundary with the columns renumbered. The matrices themselves
lie in `matrices`, for the plan that propagates all nodes for some features. Everything is mapped into memory and read
when it is used.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.normalise import Normaliser
from engines.evaluation.partition import PartitionReport, make_partition, partition_report
from engines.evaluation.plans import Ownership
from engines.evaluation.row_blocks import RowBlock
from engines.graph import Features, Graph
from pasca.atomic import new_folder, write_file
from pasca.datasets.native import file_record, is_native, map_array, map_csr, save_csr
from search_space.errors import ConfigError, DataError
from search_space.graph_operators import graph_operator

FORMAT, VERSION = "pasca-ranks", 1
DESCRIPTION, MATRICES = "ranks.json", "matrices"
MATRIX_KEYS = ("augmented", "triangle")
_BLOCK_ARRAYS = ("near", "halo", "halo_counts")


def prepare_ranks(folder: Path, graph: Graph, num_ranks: int, partition: str) -> PartitionReport:
    """Add to a converted folder what each rank needs; it appears whole or not at all.

    Args:
        folder: of a graph that was written by `native.write_folder`.
        graph: opened from it.
        num_ranks: P, the ranks that will evaluate a design together.
        partition: `contiguous`, `hash` or `metis`.
    Raises:
        ConfigError: the partition is unknown, or P is below 1.
        RunError: the folder is prepared for P ranks already.
        StorageError: something could not be written.
    """
    parts = make_partition(partition, graph.adjacency, num_ranks)
    report = partition_report(parts, graph.adjacency)
    with new_folder(ranks_folder(folder, num_ranks)) as out:
        if not (folder / MATRICES).exists():
            with new_folder(folder / MATRICES) as matrices:
                for key in MATRIX_KEYS:
                    save_csr(matrices, key, graph_operator(key).matrix(graph.adjacency))
        owned = [Ownership.of(parts, graph.adjacency, rank) for rank in range(num_ranks)]
        for rank, ownership in enumerate(owned):
            _write_rows(out, f"{rank}-features", graph.features[ownership.nodes])
            np.save(out / f"{rank}-nodes.npy", ownership.nodes, allow_pickle=False)
        for key in MATRIX_KEYS:
            matrix = _open_matrix(folder, key, graph.num_nodes)
            for rank, ownership in enumerate(owned):
                _write_block(out, f"{rank}-{key}", RowBlock.of(matrix, ownership, parts.owner, rank, num_ranks))
        standard = Normaliser.fit("standard", graph.features)
        np.savez(out / "standard.npz", mean=_array(standard.mean), scale=_array(standard.scale))
        description = {
            "format": FORMAT,
            "version": VERSION,
            "ranks": num_ranks,
            "partition": partition,
            "checksum": graph.checksum,
            "interior": [ownership.num_interior for ownership in owned],
            "report": report.as_mapping(),
            "files": {path.name: file_record(path) for path in sorted(out.iterdir())},
        }
        write_file(out / DESCRIPTION, json.dumps(description, indent=1) + "\n")
    return report


def ranks_folder(folder: Path, num_ranks: int) -> Path:
    """Where a converted folder keeps what P ranks need."""
    return folder / f"ranks-{num_ranks}"


def prepared_counts(folder: Path) -> list[int]:
    """The numbers of ranks that a folder is prepared for."""
    if not is_native(folder):
        return []
    named = (re.fullmatch(r"ranks-([1-9][0-9]*)", path.name) for path in folder.iterdir())
    return sorted(int(match[1]) for match in named if match)


def describe_ranks(folder: Path, num_ranks: int, partition: str | None = None) -> dict[str, Any]:
    """What a prepared folder says of its part for P ranks.

    Args:
        partition: that is asked for; None takes the prepared one.
    Raises:
        DataError: it is prepared for other numbers of ranks, by another partition, or by another version.
    """
    path = ranks_folder(folder, num_ranks) / DESCRIPTION
    if not path.is_file():
        counts = " and ".join(map(str, prepared_counts(folder)))
        raise DataError(
            f"{folder}: is prepared for evaluators of {counts} ranks, not {num_ranks}; "
            f"run pasca prepare {folder} --ranks {num_ranks}"
        )
    try:
        described: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        known = described["format"] == FORMAT and described["version"] == VERSION and described["ranks"] == num_ranks
        stored = str(described["partition"])
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise DataError(f"{path}: cannot be read ({str(error)[:120]}); prepare the data again") from None
    if not known:
        raise DataError(f"{path}: is not version {VERSION} of a {FORMAT} folder; prepare the data again")
    if partition not in (None, stored):
        raise DataError(
            f"{path.parent}: is partitioned by {stored}, not {partition}; "
            "leave --partition out, or prepare the data again"
        )
    return described


class PreparedShare:
    """A GraphShare read from a prepared folder; see engines.evaluation.graph_share.

    Args:
        folder: prepared for this number of ranks.
        graph: opened from the folder.
        rank, num_ranks: of the group.
        partition: that is asked for; None takes the prepared one.
    Raises:
        DataError: the folder is prepared for other numbers of ranks or another partition, or a file is missing, cut off
            or not of this graph.
    """

    def __init__(self, folder: Path, graph: Graph, rank: int, num_ranks: int, partition: str | None = None) -> None:
        self._folder, self._matrices, self._rank = ranks_folder(folder, num_ranks), folder, rank
        described = describe_ranks(folder, num_ranks, partition)
        if described["checksum"] != graph.checksum:
            raise DataError(f"{self._folder}: was prepared from another graph or split; prepare the data again")
        self._files: dict[str, Any] = described["files"]
        self.graph, self.partition = graph, str(described["partition"])
        self.report = PartitionReport.from_mapping(described["report"])
        self.ownership = Ownership(self._array(f"{rank}-nodes.npy"), int(described["interior"][rank]))

    def features(self) -> Features:
        """See GraphShare."""
        name, shape = f"{self._rank}-features", (self.ownership.nodes.size, self.graph.num_features)
        if not sparse.issparse(self.graph.features):
            return self._array(f"{name}.npy")
        return self._csr(name, shape)

    def normaliser(self, kind: str) -> Normaliser:
        """See GraphShare.

        Raises:
            ConfigError: the kind is `symmetric`.
        """
        if kind == "symmetric":
            raise ConfigError(
                "prepared data knows the features row by row and not the sums of columns that symmetric takes; "
                "choose another normalise"
            )
        if kind != "standard":
            return Normaliser(kind)
        self._check("standard.npz")
        with np.load(self._folder / "standard.npz", allow_pickle=False) as stored:
            return Normaliser(kind, stored["mean"], stored["scale"])

    def block(self, key: str) -> RowBlock:
        """See GraphShare."""
        name, n, n_int = f"{self._rank}-{key}", self.ownership.nodes.size, self.ownership.num_interior
        near, halo, counts = (self._array(f"{name}-{part}.npy") for part in _BLOCK_ARRAYS)
        interior = self._csr(f"{name}-interior", (n_int, n))
        boundary = self._csr(f"{name}-boundary", (n - n_int, near.size + halo.size))
        return RowBlock(interior, boundary, near, halo, counts)

    def matrix(self, key: str) -> sparse.csr_array:
        """See GraphShare."""
        return _open_matrix(self._matrices, key, self.graph.num_nodes)

    def _array(self, name: str) -> NDArray[Any]:
        self._check(name)
        return map_array(self._folder / name)

    def _csr(self, name: str, shape: tuple[int, int]) -> sparse.csr_array:
        for part in ("indptr", "indices", "data"):
            self._check(f"{name}_{part}.npy")
        return map_csr(self._folder, name, shape)

    def _check(self, name: str) -> None:
        path, record = self._folder / name, self._files.get(name, {})
        size = path.stat().st_size if path.is_file() else None
        if size is None or size != record.get("bytes"):
            raise DataError(
                f"{path}: has {'no' if size is None else size} bytes, expected {record.get('bytes')}; "
                "it is cut off or changed; prepare the data again"
            )


def _write_rows(folder: Path, name: str, rows: Features) -> None:
    if isinstance(rows, sparse.csr_array):
        save_csr(folder, name, rows)
    else:
        np.save(folder / f"{name}.npy", rows, allow_pickle=False)


def _write_block(folder: Path, name: str, block: RowBlock) -> None:
    save_csr(folder, f"{name}-interior", block.interior)
    save_csr(folder, f"{name}-boundary", block.boundary)
    for part in _BLOCK_ARRAYS:
        np.save(folder / f"{name}-{part}.npy", getattr(block, part), allow_pickle=False)


def _open_matrix(folder: Path, key: str, num_nodes: int) -> sparse.csr_array:
    return map_csr(folder / MATRICES, key, (num_nodes, num_nodes))


def _array(values: NDArray[np.float64] | None) -> NDArray[np.float64]:
    assert values is not None
    return values
