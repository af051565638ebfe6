"""The project's own folder: what goes in comes out, mapped and not read; changed files are noticed."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from engines.graph import Graph, Split
from pasca.datasets import convert, load, native, write_folder
from search_space.errors import DataError, RunError, StorageError

Writer = Callable[..., Path]
Files = Callable[[dict[str, Any]], Path]


def made(**changes: Any) -> Graph:
    """Four nodes on a path, one more alone; features, ids and a split."""
    path = np.diag(np.ones(4), 1)[:5, :5]
    path[3, 4] = 0
    parts: dict[str, Any] = {
        "name": "made",
        "adjacency": sparse.csr_array((path + path.T).astype(np.float32)),
        "features": np.arange(10, dtype=np.float32).reshape(5, 2),
        "labels": np.array([0, 1, 0, -1, 1]),
        "class_names": ("a&b", "ü"),
        "split": Split(np.array([0, 1]), np.array([2]), np.array([4]), "public"),
        "node_ids": np.array(["a#1", "007", "7", "NA", "é"]),
        "feature_names": ("f1", "f2"),
        "notes": ("a note",),
    }
    return Graph(**{**parts, **changes})


def same(one: Graph, other: Graph) -> None:
    assert one.checksum == other.checksum
    for field in (
        "name",
        "class_names",
        "feature_names",
        "directed",
        "weighted",
        "num_self_loops",
        "notes",
        "made_features",
    ):
        assert getattr(one, field) == getattr(other, field)
    assert one.original_ids().tolist() == other.original_ids().tolist()
    assert one.split.name == other.split.name


@pytest.fixture(params=[True, False], ids=["small folders verified", "opened on trust"])
def trust(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(native, "ALWAYS_VERIFIED_BYTES", 0)


@pytest.mark.usefixtures("trust")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"features": sparse.csr_array(np.eye(5, 2, dtype=np.float32))},
        {"node_ids": None, "feature_names": None, "made_features": "svd"},
        {"adjacency": sparse.csr_array(np.eye(5, k=1, dtype=np.float32) * 2), "directed": True, "weighted": True},
        {"adjacency": sparse.csr_array((5, 5), dtype=np.float32)},
    ],
)
def test_a_graph_comes_back_as_it_was(tmp_path: Path, changes: dict[str, Any]) -> None:
    graph = made(**changes)
    write_folder(graph, tmp_path / "out")
    opened = load(tmp_path / "out")
    same(graph, opened)
    fresh = Graph(**{name: getattr(opened, name) for name in Graph.__dataclass_fields__})
    assert fresh.checksum == graph.checksum  # of the arrays, not only of what was noted down


def test_an_unlabelled_graph_comes_back(tmp_path: Path) -> None:
    nobody = np.zeros(0, dtype=np.int64)
    graph = made(labels=np.full(5, -1), class_names=(), split=Split(nobody, nobody, nobody, "none"))
    write_folder(graph, tmp_path / "out")
    same(graph, load(tmp_path / "out"))


def test_large_folders_are_mapped_and_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "ALWAYS_VERIFIED_BYTES", 0)
    write_folder(made(), tmp_path / "out")
    opened = load(tmp_path / "out")
    for array in (opened.adjacency.indices, opened.adjacency.indptr, opened.features, opened.labels, opened.node_ids):
        base = array
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
        assert array.flags.writeable  # torch warns about arrays that are not
    opened.features[0, 0] = 99
    assert load(tmp_path / "out", verify=True).features[0, 0] == 0


def test_opening_takes_little_memory_at_any_size(tmp_path: Path) -> None:
    N, degree = 200_000, 30
    indices = (np.arange(N)[:, None] + np.arange(1, degree + 1)[None, :]) % N
    adjacency = sparse.csr_array(
        (np.ones(N * degree, np.float32), indices.reshape(-1), degree * np.arange(N + 1)), (N, N)
    )
    adjacency.sort_indices()
    nobody = np.zeros(0, dtype=np.int64)
    split = Split(nobody, nobody, nobody, "none")
    features, labels = np.ones((N, 1), np.float32), np.full(N, -1)
    write_folder(Graph("ring", adjacency, features, labels, (), split, directed=True), tmp_path / "out")
    program = (
        "import resource, sys; import pasca.datasets as d;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        f"g = d.load({str(tmp_path / 'out')!r});"
        "print(g.num_edges, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    edges, grown_kib = map(int, done.stdout.split())
    assert edges == N * degree
    assert grown_kib < 10_000  # the arrays take 50 MB


@pytest.mark.usefixtures("trust")
@pytest.mark.parametrize("name", ["adjacency_indices.npy", "features.npy", "split_0_train.npy", "node_ids.npy"])
def test_a_file_that_is_cut_off_or_missing_is_named(tmp_path: Path, name: str) -> None:
    write_folder(made(), tmp_path / "out")
    path = tmp_path / "out" / name
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match=rf"{name}: has .* bytes, expected"):
        load(tmp_path / "out")
    path.unlink()
    with pytest.raises(DataError, match=f"file {name} is missing"):
        load(tmp_path / "out")


@pytest.mark.parametrize("verify", [True, False])
def test_a_changed_byte_is_found_by_verifying(tmp_path: Path, verify: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(made(), tmp_path / "out")
    path = tmp_path / "out" / "adjacency_indices.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 0x40
    path.write_bytes(bytes(content))
    if verify:
        monkeypatch.setattr(native, "ALWAYS_VERIFIED_BYTES", 0)
    with pytest.raises(DataError, match=r"adjacency_indices\.npy: its SHA-256 differs"):
        load(tmp_path / "out", verify=verify)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version 99 is not 1"),
        ({"format": "other"}, "expected the description of a pasca-graph folder"),
        ({"num_nodes": 6}, "does not describe this folder|disagree|rows"),
        ({"num_nodes": "five"}, "does not describe this folder"),
        ({"num_features": 3}, None),
        ({"class_names": ["a"]}, "labels run from 0 to 0"),
        ({"class_names": 3}, "does not describe this folder"),
        ({"feature_names": ["f1"]}, "features have 2 columns but 1 names"),
        ({"splits": []}, "does not describe this folder"),
        ({"split": "other"}, "does not describe this folder"),
        ({"sparse_features": True}, r"lists no file features_indptr\.npy"),
        ({"files": {}}, r"lists no file adjacency_indptr\.npy"),
        ({"files": {"../x": {"bytes": 1}}}, r"file \.\./x is missing"),
        ({"files": 3}, "lists no files"),
    ],
)
def test_a_changed_description_is_refused(tmp_path: Path, change: dict[str, Any], message: str | None) -> None:
    write_folder(made(), tmp_path / "out")
    path = tmp_path / "out" / "graph.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    if message is None:
        assert load(tmp_path / "out").num_features == 2  # a count for people; the array decides
        return
    with pytest.raises(DataError, match=message) as caught:
        load(tmp_path / "out")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 200_000])
def test_a_damaged_description_is_refused(tmp_path: Path, content: bytes) -> None:
    write_folder(made(), tmp_path / "out")
    (tmp_path / "out" / "graph.json").write_bytes(content)
    with pytest.raises(DataError, match=r"graph\.json"):
        load(tmp_path / "out")


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    write_folder(made(), tmp_path / "out")
    with pytest.raises(RunError, match="exists already"):
        write_folder(made(), tmp_path / "out")


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    features = np.ones((5, 100_000), dtype=np.float32)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StorageError, match=r"cannot write .*out"):
            write_folder(made(features=features, feature_names=None), tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert os.listdir(tmp_path) == []


def test_convert_keeps_every_split_of_the_source(write_hetero: Writer, tmp_path: Path) -> None:
    without_overlap = np.roll(np.eye(6, dtype=np.uint8)[:3], 1, axis=1)
    path = write_hetero(
        train_masks=without_overlap, val_masks=np.roll(without_overlap, 1, 1), test_masks=np.roll(without_overlap, 2, 1)
    )
    converted = convert(path, tmp_path / "out", split="1")
    same(converted, load(tmp_path / "out"))
    for number in "012":
        assert load(tmp_path / "out", split=number).checksum == load(path, split=number).checksum


def test_another_split_and_other_features_can_be_chosen_on_opening(tmp_path: Path) -> None:
    write_folder(made(), tmp_path / "out")
    assert load(tmp_path / "out", train_per_class=1, val_per_class=1).split.name == "1/1 per class, seed 0"
    opened = load(tmp_path / "out", features="degree")
    assert opened.made_features == "degree"
    assert opened.structure_checksum != made().structure_checksum


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directed": True}, "was converted without --directed"),
        ({"weighted": True}, "was converted without --weighted"),
        ({"features": "f.npy"}, "was converted without a features file"),
        ({"split": "7"}, "no split '7'; choose from: public, random"),
    ],
)
def test_what_only_the_source_could_answer_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    write_folder(made(), tmp_path / "out")
    with pytest.raises(DataError, match=message):
        load(tmp_path / "out", **options)


def test_only_converted_folders_can_be_verified(write_csr: Writer) -> None:
    with pytest.raises(DataError, match="convert it first"):
        load(write_csr(), verify=True)


def test_a_converted_folder_is_not_converted_again(tmp_path: Path) -> None:
    write_folder(made(), tmp_path / "out")
    with pytest.raises(DataError, match="is converted already"):
        convert(tmp_path / "out", tmp_path / "again")


def test_an_array_whose_header_is_no_header_is_refused(tmp_path: Path) -> None:
    """NumPy's own reader goes through such a header as through a program, and raises what that parser raises."""
    np.save(tmp_path / "a.npy", np.arange(3))
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content.replace(b"}", b"("))
    with pytest.raises(DataError, match=r"a\.npy"):
        native.map_array(tmp_path / "a.npy")
