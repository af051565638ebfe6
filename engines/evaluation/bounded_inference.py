"""Inference within a memory budget: hops in files, propagated a few columns at a time, joined a few rows at a time.

No column of the features depends on another until hops are joined, and no row of a join on another row. So where the
hops that a design reads do not fit, features are cut into tiles of columns, each of which is propagated alone, three
arrays at a time in memory, and leaves its hops in files; then rows are read from all tiles at once. Only hops that the
design reads are kept. The results are those of `classify`, bit by bit.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from engines.evaluation.costs import BLOCK_ROWS, ENTRY_BYTES, FLOAT_BYTES, held_features
from engines.evaluation.further_inputs import further_inputs
from engines.evaluation.hop_files import ColumnTiles, HopFile, HopRows, hop_bytes, new_file, writable
from engines.evaluation.inference import (
    TrainingLabels,
    post_process,
    reused_labels,
    side_by_side,
    transform,
)
from engines.evaluation.normalise import Normaliser
from engines.evaluation.propagation import propagate_step
from search_space.architecture import Architecture
from search_space.assembly import Network
from search_space.errors import ConfigError, StorageError
from search_space.graph_operators import channels, graph_operator
from search_space.hops import required_hops

ReadRows = Callable[[slice], NDArray[np.float32]]
Walk = tuple[sparse.csr_array, float]
"""The matrix and the restart of one channel of the pre-aggregator."""

POST_ARRAYS_WITH_LABELS = 7
"""Arrays of scores at once in Correct & Smooth: errors and corrected predictions beside what travels."""

ARRAYS_AT_ONCE = 3
"""Of a tile, while it is propagated: hop 0, the hop before and the one that is written."""


def classify_within(
    design: Architecture,
    network: Network,
    adjacency: sparse.csr_array,
    num_features: int,
    read_features: ReadRows,
    memory_bytes: int,
    *,
    known: TrainingLabels | None = None,
    structure: Normaliser | None = None,
    at_any_cost: bool = False,
    folder: Path | None = None,
) -> NDArray[np.float32]:
    """Class probabilities of all nodes; see `classify`.

    Args:
        network: trained for S repeats, on the CPU.
        num_features: F.
        read_features: given a range of rows, returns their normalised features, (n, F).
        memory_bytes: what all this may take, the adjacency and what `read_features` reads from not counted.
        known: for designs that need it.
        structure: how local structure is standardised, for designs that take it.
        at_any_cost: where even one column at a time takes more, take that instead of refusing.
        folder: where hops are put that do not fit, on a disk; None for the system's place for temporary files.
    Returns:
        (S, N, C); each row sums to one.
    Raises:
        ConfigError: one column at a time takes more than the budget; the message has both figures.
        StorageError: the hops do not fit the disk.
    """
    N, S = adjacency.shape[0], len(next(network.parameters()))
    C = network.transform.biases[-1].shape[-1]
    scores_bytes = S * N * C * FLOAT_BYTES
    built = _matrix_bytes(adjacency)
    building = built + 2 * (adjacency.nnz + N) * 12 if design.k_pre or design.k_post else 0
    num_channels = len(channels(design.pre_aggregator)) if design.pre_aggregator is not None else 1
    matrix_bytes = num_channels * built if design.k_pre else 0
    if design.label_steps is not None:
        matrix_bytes += built + 2 * N * C * FLOAT_BYTES
    if network.adjacency is not None:
        matrix_bytes += network.adjacency.weights.numel() * FLOAT_BYTES  # a copy with all repeats side by side
    block_bytes = BLOCK_ROWS * FLOAT_BYTES * (2 * len(required_hops(design)) + 1) * num_features * num_channels
    left = memory_bytes - max(matrix_bytes + block_bytes, scores_bytes)
    least = max(
        building + (scores_bytes if design.k_post else 0),
        matrix_bytes + ARRAYS_AT_ONCE * N * FLOAT_BYTES + block_bytes,
        matrix_bytes + scores_bytes + block_bytes,
        built + (POST_ARRAYS_WITH_LABELS if design.needs_labels else 5) * scores_bytes if design.k_post else 0,
    )
    if least > memory_bytes and not at_any_cost:
        raise ConfigError(
            f"classifying {N} nodes with {design} takes {least / 1e6:.1f} MB at least, but the memory budget is "
            f"{memory_bytes / 1e6:.1f} MB; raise it with --memory, or classify fewer nodes (--only)"
        )
    matrices: dict[str, sparse.csr_array] = {}
    walks: list[Walk] = []
    if design.pre_aggregator is not None:
        for operator in channels(design.pre_aggregator):
            matrix = matrices.setdefault(operator.matrix_key, operator.matrix(adjacency))
            walks.append((matrix, operator.restart))
    shown = reused_labels(design, known, adjacency, matrices, C)
    further = further_inputs(design, adjacency, structure)
    with propagated(design, walks, (N, num_features), read_features, left, folder) as hops:
        probabilities = transform(network, hops, shown=shown, further=further)
        del hops
    if design.post_aggregator is None:
        return probabilities
    operator = graph_operator(design.post_aggregator)
    if operator.matrix_key not in matrices:
        walks.clear()
        matrices = {operator.matrix_key: operator.matrix(adjacency)}
    return post_process(probabilities, matrices[operator.matrix_key], operator, design.k_post, known)


@contextlib.contextmanager
def propagated(
    design: Architecture,
    walks: Sequence[Walk],
    shape: tuple[int, int],
    read_features: ReadRows,
    memory_bytes: int,
    folder: Path | None = None,
) -> Iterator[list[HopRows]]:
    """The hops that a design joins, in memory where they fit; files go when the context ends.

    Args:
        walks: one a channel of the pre-aggregator; none for a design without one.
        shape: (N, F) of the features.
        memory_bytes: what features and hops may take, channels sharing it alike; one column at a time is taken in any
            case.
    """
    with contextlib.ExitStack() as held:
        share = memory_bytes // max(len(walks), 1)
        found = [
            held.enter_context(_channel(design, matrix, restart, shape, read_features, share, folder))
            for matrix, restart in (walks or [(None, 0.0)])
        ]
        yield side_by_side(found)


@contextlib.contextmanager
def _channel(
    design: Architecture,
    matrix: sparse.csr_array | None,
    restart: float,
    shape: tuple[int, int],
    read_features: ReadRows,
    memory_bytes: int,
    folder: Path | None = None,
) -> Iterator[list[HopRows]]:
    """The hops of one channel; see `propagated`."""
    N, F = shape
    # 2: what is read may be made by copying
    held = max(held_features(design.k_pre, design.message, propagating=True), 2)
    if held * N * F * FLOAT_BYTES <= memory_bytes:
        yield _in_memory(design, matrix, restart, read_features(slice(0, N)))
        return
    width = min(max(memory_bytes // (ARRAYS_AT_ONCE * N * FLOAT_BYTES), 1), F)
    tiles = [range(first, min(first + width, F)) for first in range(0, F, width)]
    try:
        place = tempfile.TemporaryDirectory(prefix="pasca-inference-", dir=folder)
    except OSError as error:
        raise StorageError(f"no temporary folder can be made for hops: {error.strerror or error}") from error
    with place as name:
        try:
            _write_features(Path(name), shape, tiles, read_features)
            for tile in tiles:
                _propagate_tile(design, matrix, restart, Path(name), N, tile)
        except OSError as error:
            raise StorageError(
                f"hops past the memory budget go to {place.name}, which could not take them: "
                f"{error.strerror or error}; raise the budget or set TMPDIR to a larger disk"
            ) from error
        yield [
            ColumnTiles(tuple(HopFile(_path(Path(name), k, tile), (N, len(tile))) for tile in tiles))
            for k in required_hops(design)
        ]


def _in_memory(
    design: Architecture, matrix: sparse.csr_array | None, restart: float, features: NDArray[np.float32]
) -> list[HopRows]:
    wanted = set(required_hops(design))
    hops: list[HopRows] = [features] if 0 in wanted else []
    current = features
    for k in range(1, design.k_pre + 1):
        assert matrix is not None
        current = propagate_step(matrix, current, restart=restart, start=features)
        if k in wanted:
            hops.append(current)
    return hops


def _write_features(folder: Path, shape: tuple[int, int], tiles: list[range], read_features: ReadRows) -> None:
    """Write hop 0 of each tile, a few megabytes of rows at a time, without mapping what is written."""
    N, F = shape
    step = max((4 << 20) // (F * FLOAT_BYTES), 1)
    with contextlib.ExitStack() as opened:
        files = [opened.enter_context(_path(folder, 0, tile).open("wb")) for tile in tiles]
        for first in range(0, N, step):
            rows = read_features(slice(first, min(first + step, N)))
            for file, tile in zip(files, tiles, strict=True):
                file.write(np.ascontiguousarray(rows[:, tile.start : tile.stop]).data)


def _propagate_tile(
    design: Architecture, matrix: sparse.csr_array | None, restart: float, folder: Path, N: int, tile: range
) -> None:
    """Write the hops 1, 2, ... of a tile, and remove those that the design does not read."""
    shape, wanted = (N, len(tile)), set(required_hops(design))
    start = HopFile(_path(folder, 0, tile), shape).array()
    current = start
    for k in range(1, design.k_pre + 1):
        assert matrix is not None
        path = _path(folder, k, tile)
        new_file(path, hop_bytes(shape, "float32"))
        out = writable(path, shape, "float32")
        current = propagate_step(matrix, current, restart=restart, start=start, out=out)
        if k - 1 not in wanted:
            _path(folder, k - 1, tile).unlink()  # what is mapped of it stays readable


def _path(folder: Path, k: int, tile: range) -> Path:
    return folder / f"{k}-{tile.start}"


def _matrix_bytes(adjacency: sparse.csr_array) -> int:
    """Of a matrix with the adjacency's entries and its diagonal."""
    N = adjacency.shape[0]
    return int((adjacency.nnz + N) * ENTRY_BYTES + 4 * (N + 1))
