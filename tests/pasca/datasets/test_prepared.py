"""Prepared graphs: each rank reads from files what it would cut from the whole graph; other files are refused."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from engines.evaluation.graph_share import CutShare
from engines.graph import Graph, Split, undirected
from pasca.datasets import load, write_folder
from pasca.datasets.prepared import PreparedShare, prepare_ranks, prepared_counts
from pasca.preparing import prepare, prepared_said
from search_space.errors import ConfigError, DataError, RunError

N, F = 40, 3


def made(features: Callable[[Any], Any] = np.asarray) -> Graph:
    """Random edges with triangles among them, and isolated nodes."""
    rng = np.random.default_rng(0)
    order = rng.permutation(N)
    return Graph(
        "made",
        undirected(rng.integers(0, N - 4, 120), rng.integers(0, N - 4, 120), N)[0],
        features(rng.standard_normal((N, F)).astype(np.float32)),
        rng.integers(0, 2, N).astype(np.int64),
        ("a", "b"),
        Split(order[:10], order[10:20], order[20:]),
    )


def prepared(graph: Graph, folder: Path, ranks: int, partition: str = "contiguous") -> Graph:
    write_folder(graph, folder)
    opened = load(folder)
    prepare_ranks(folder, opened, ranks, partition)
    return opened


def rank_of(rank: int, size: int) -> Any:
    return types.SimpleNamespace(rank=rank, size=size)


def equal(one: Any, other: Any) -> None:
    if sparse.issparse(one):
        assert one.shape == other.shape
        one, other = one.toarray(), other.toarray()
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("features", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("ranks", "partition"), [(1, "contiguous"), (3, "hash"), (4, "metis"), (N + 2, "contiguous")])
def test_a_share_from_files_is_the_share_that_is_cut(
    tmp_path: Path, ranks: int, partition: str, features: Callable[[Any], Any]
) -> None:
    graph = prepared(made(features), tmp_path / "out", ranks, partition)
    assert prepared_counts(tmp_path / "out") == [ranks]
    for rank in range(ranks):
        read = PreparedShare(tmp_path / "out", graph, rank, ranks)
        cut = CutShare(rank_of(rank, ranks), graph, partition)
        equal(read.ownership.nodes, cut.ownership.nodes)
        assert read.ownership.num_interior == cut.ownership.num_interior
        equal(read.features(), cut.features())
        assert read.report.as_mapping() == cut.report.as_mapping()
        for kind in ("row", "standard"):
            assert read.normaliser(kind).as_mapping() == cut.normaliser(kind).as_mapping()
        for key in ("augmented", "triangle"):
            one, other = read.block(key), cut.block(key)
            for part in ("interior", "boundary", "near", "halo", "halo_counts"):
                equal(getattr(one, part), getattr(other, part))
            equal(read.matrix(key), cut.matrix(key))


def test_the_row_plan_reads_nothing_of_the_whole_graph(tmp_path: Path) -> None:
    graph = prepared(made(), tmp_path / "out", 2)
    out_of_reach = graph.trusted(
        **{
            **{name: getattr(graph, name) for name in ("name", "labels", "class_names", "split")},
            "adjacency": sparse.csr_array((N, N), dtype=np.float32),
            "features": np.full((N, F), np.nan, np.float32),
            "checksums": (graph.structure_checksum, graph.checksum),
        }
    )
    share = PreparedShare(tmp_path / "out", out_of_reach, 0, 2)
    assert np.isfinite(share.features()).all()
    assert share.block("augmented").interior.nnz > 0


def test_another_number_of_ranks_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    graph = prepared(made(), tmp_path / "out", 2)
    prepare_ranks(tmp_path / "out", graph, 4, "hash")
    assert prepared_counts(tmp_path / "out") == [2, 4]
    with pytest.raises(DataError, match=r"of 2 and 4 ranks, not 3; run pasca prepare .* --ranks 3"):
        PreparedShare(tmp_path / "out", graph, 0, 3)


def test_another_partition_or_graph_is_refused(tmp_path: Path) -> None:
    graph = prepared(made(), tmp_path / "out", 2, "hash")
    PreparedShare(tmp_path / "out", graph, 1, 2, "hash")
    with pytest.raises(DataError, match="is partitioned by hash, not metis"):
        PreparedShare(tmp_path / "out", graph, 0, 2, "metis")
    other = replace(made(), labels=1 - graph.labels)
    with pytest.raises(DataError, match="prepared from another graph"):
        PreparedShare(tmp_path / "out", other, 0, 2)


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    graph = prepared(made(), tmp_path / "out", 2)
    path = tmp_path / "out" / "ranks-2" / "1-features.npy"
    path.write_bytes(path.read_bytes()[:-4])
    PreparedShare(tmp_path / "out", graph, 0, 2).features()
    with pytest.raises(DataError, match=r"1-features\.npy: has \d+ bytes, expected \d+; it is cut off or changed"):
        PreparedShare(tmp_path / "out", graph, 1, 2).features()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "pasca-ranks", "version": 9, "ranks": 2}'])
def test_a_damaged_description_is_refused(tmp_path: Path, text: str) -> None:
    graph = prepared(made(), tmp_path / "out", 2)
    (tmp_path / "out" / "ranks-2" / "ranks.json").write_text(text)
    with pytest.raises(DataError, match=r"ranks\.json: .*; prepare the data again"):
        PreparedShare(tmp_path / "out", graph, 0, 2)


def test_preparing_converts_first_and_adds_to_what_is_converted(tmp_path: Path) -> None:
    out = tmp_path / "out"
    report, folder = prepare("digits", str(out), 2, "contiguous", {})
    assert folder == out
    assert any("halo rows travel each hop" in line for line in prepared_said(report, folder, 2, "contiguous"))
    prepare(str(out), None, 3, "hash", {})
    assert prepared_counts(out) == [2, 3]
    with pytest.raises(RunError, match="exists already"):
        prepare(str(out), None, 2, "contiguous", {})
    assert load(out).checksum == load("digits").checksum


@pytest.mark.parametrize(
    ("data", "out", "ranks", "partition", "said"),
    [
        ("digits", None, 2, "hash", "is no converted folder; name the folder to write"),
        ("digits", "x", 0, "hash", "for 1 rank or more, got 0"),
        ("digits", "x", 2, "luck", "unknown partition 'luck'; choose from: contiguous, hash, metis"),
    ],
)
def test_what_cannot_be_prepared_is_said(
    tmp_path: Path, data: str, out: str | None, ranks: int, partition: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        prepare(data, None if out is None else str(tmp_path / out), ranks, partition, {})
    assert not list(tmp_path.iterdir())
