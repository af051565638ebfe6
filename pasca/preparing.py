"""Preparing a graph for ranks: convert it where it is not converted yet, and add each rank's part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engines.evaluation.partition import PARTITIONS, PartitionReport
from pasca.datasets import convert, load
from pasca.datasets.native import is_native
from pasca.datasets.prepared import prepare_ranks
from search_space.errors import ConfigError


def prepare(
    data: str, out: str | None, num_ranks: int, partition: str, options: Mapping[str, Any]
) -> tuple[PartitionReport, Path]:
    """Prepare a graph.

    Args:
        data: anything that `pasca.load` takes.
        out: the new folder; None where `data` is a converted folder, which is added to.
        num_ranks: that evaluate a design together.
        partition: of the nodes.
        options: of reading.
    Returns:
        What the partition costs, and the prepared folder.
    Raises:
        ConfigError: a number or name is not legal, or it is unclear where to write.
        DataError: as for `pasca.load`.
        RunError: `out` exists, or is prepared for that number of ranks already.
        StorageError: something could not be written.
    """
    if num_ranks < 1:
        raise ConfigError(f"a graph is prepared for 1 rank or more, got {num_ranks}")
    if partition not in PARTITIONS:
        raise ConfigError(f"unknown partition {partition!r}; choose from: {', '.join(PARTITIONS)}")
    converted = is_native(Path(data))
    if converted and out is not None:
        raise ConfigError(f"{data} is converted already and is added to; leave {out} out")
    if not converted and out is None:
        raise ConfigError(f"{data} is no converted folder; name the folder to write: pasca prepare {data} OUT")
    folder = Path(data if out is None else out)
    if not converted:
        convert(data, folder, **options)
    graph = load(folder, for_training=False)
    return prepare_ranks(folder, graph, num_ranks, partition), folder


def prepared_said(report: PartitionReport, folder: Path, num_ranks: int, partition: str) -> list[str]:
    """Lines for people."""
    halo = sum(report.halo)
    a_node = halo / max(sum(report.nodes), 1)
    lines = [
        f"prepared for {num_ranks} rank(s), {partition}: {min(report.nodes)} to {max(report.nodes)} nodes a rank, "
        f"imbalance {report.imbalance:.2f}",
        f"{report.cut_edges} entries between ranks; {halo} halo rows travel each hop ({a_node:.2f} a node)",
    ]
    if report.idle:
        lines.append(f"no nodes for rank(s) {', '.join(map(str, report.idle))}; they stay idle")
    return [*lines, f"written to {folder}"]
