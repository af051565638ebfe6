"""Random bytes and mutated files: read, or refused in one line; never a traceback, a hang or memory without bound."""

from __future__ import annotations

import gzip
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse

from pasca.datasets import load, write_folder
from search_space.errors import InputError

Writer = Callable[..., Path]
EXAMPLES = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
NODES = "id,f1,f2,label,split\n" + "".join(
    f"n{i},{i},{i / 3},{'ab'[i % 2]},{('train', 'val')[i % 2]}\n" for i in range(6)
)
EDGES = "source,target,weight\n" + "".join(f"n{i},n{(i + 1) % 6},{i + 1}\n" for i in range(6))


def load_or_message(data: Path) -> str:
    """Load, or return the one line that refuses; bounded in time and memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    try:
        load(data, for_training=False)
        message = ""
    except InputError as error:
        message = str(error)
    # CPU time, since a busy machine is no fault of the reader; the first call imports libraries.
    assert time.process_time() - begun < 60
    # Resident memory in KiB, which native code counts into; the first call imports libraries here too. Not tracemalloc:
    # stopping it while another library's thread enters Python crashes the interpreter.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 800_000
    assert "\n" not in message
    assert "Traceback" not in message
    return message


@st.composite
def damage(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """A way to damage a file: cut it, change bytes, repeat or remove a piece."""
    kind = draw(st.sampled_from(["cut", "change", "repeat", "remove", "insert"]))
    places = draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=2, max_size=4))
    values = draw(st.binary(min_size=4, max_size=4))

    def apply(content: bytes) -> bytes:
        at = sorted(int(place * len(content)) for place in places)
        if kind == "cut":
            return content[: at[0]]
        if kind == "change":
            changed = bytearray(content)
            for place, value in zip(at, values, strict=False):
                changed[place] = value
            return bytes(changed)
        if kind == "repeat":
            return content[: at[1]] + content[at[0] : at[1]] * 3 + content[at[1] :]
        if kind == "remove":
            return content[: at[0]] + content[at[1] :]
        return content[: at[0]] + values + content[at[0] :]

    return apply


@pytest.fixture(
    params=["planetoid", "csr", "csr compressed", "hetero", "geom", "musae", "linqs", "csv", "csv.gz", "parquet",
            "features.npy", "features.npz", "features.mtx", "pt", "native"]
)  # fmt: skip
def data_set(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, list[Path]]]:
    """A folder with one small data set, and the files of it that get damaged."""
    kind = request.param
    if kind == "planetoid":
        request.getfixturevalue("write_planetoid")()
    elif kind.startswith("csr"):
        path = request.getfixturevalue("write_csr")()
        if kind == "csr compressed":
            with np.load(path) as npz:
                np.savez_compressed(path, **dict(npz))
    elif kind == "hetero":
        request.getfixturevalue("write_hetero")()
    elif kind == "musae":
        request.getfixturevalue("write_musae")()
    elif kind == "geom":
        (tmp_path / "out1_graph_edges.txt").write_text("node_id\tnode_id\n0\t1\n1\t2\n")
        (tmp_path / "out1_node_feature_label.txt").write_text(
            "node_id\tfeature\tlabel\n0\t1,0\t0\n1\t0,1\t1\n2\t1,1\t0\n"
        )
    elif kind == "linqs":
        (tmp_path / "set.content").write_text("35\t1\t0\tAI\nx1\t0\t1\tDB\n007\t0\t0\tAI\n")
        (tmp_path / "set.cites").write_text("35\tx1\n007\t35\n")
    elif kind == "pt":
        torch = pytest.importorskip("torch")
        torch.save({"x": torch.ones(3, 2), "edge_index": torch.tensor([[0, 1], [1, 2]]), "y": torch.tensor([0, 1, 0])},
                   tmp_path / "d.pt")  # fmt: skip
    elif kind == "native":
        source = tmp_path / "source.npz"
        request.getfixturevalue("write_csr")(source)
        write_folder(load(source), tmp_path / "out")
        source.unlink()
        yield tmp_path / "out", sorted((tmp_path / "out").iterdir())
        return
    else:
        plain(kind, tmp_path)
    yield tmp_path, sorted(path for path in tmp_path.iterdir() if path.is_file())


def plain(kind: str, folder: Path) -> None:
    if kind == "csv.gz":
        (folder / "edges.csv.gz").write_bytes(gzip.compress(EDGES.encode()))
        (folder / "nodes.csv.gz").write_bytes(gzip.compress(NODES.encode()))
        return
    if kind == "parquet":
        ids = [f"n{i}" for i in range(6)]
        parquet.write_table(pa.table({"source": ids, "target": ids[::-1]}), folder / "edges.parquet")
        parquet.write_table(
            pa.table({"id": ids, "f": np.arange(6.0), "label": list("ababab")}), folder / "nodes.parquet"
        )
        return
    (folder / "edges.csv").write_text(EDGES if kind == "csv" else EDGES.replace("n", "").replace("weight\n", "w\n"))
    if kind == "csv":
        (folder / "nodes.csv").write_text(NODES)
        return
    (folder / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    matrix = np.array([[1.0, 0], [0, 2], [0, 0]])
    if kind == "features.npy":
        np.save(folder / kind, matrix)
    elif kind == "features.npz":
        sparse.save_npz(folder / kind, sparse.csr_array(matrix))
    else:
        (folder / kind).write_text("%%MatrixMarket matrix coordinate real general\n3 2 2\n1 1 1.0\n2 2 2.0\n")


@pytest.mark.slow
@EXAMPLES
@given(data=st.data())
def test_damaged_files_are_read_or_refused_in_one_line(data_set: tuple[Path, list[Path]], data: st.DataObject) -> None:
    folder, files = data_set
    path = data.draw(st.sampled_from(files))
    content = path.read_bytes()
    try:
        path.write_bytes(data.draw(damage())(content))
        load_or_message(folder)
    finally:
        path.write_bytes(content)


def test_the_undamaged_files_are_read(data_set: tuple[Path, list[Path]]) -> None:
    assert load_or_message(data_set[0]) == ""


NAMES = ("edges.csv", "edges.csv.gz", "edges.parquet", "a.npz", "d.pt", "musae_x_features.json", "set.content", "s.zip",
         "ind.x.graph", "out1_graph_edges.txt", "graph.json", "features.npy", "features.mtx")  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(NAMES), content=st.binary(max_size=300))
def test_random_bytes_are_refused_in_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    try:
        path.write_bytes(content)
        load_or_message(tmp_path)
        load_or_message(path)
    finally:
        path.unlink()


@pytest.mark.slow
@EXAMPLES
@given(edges=st.text(max_size=80), nodes=st.text(max_size=80))
def test_random_texts_are_read_or_refused_in_one_line(tmp_path: Path, edges: str, nodes: str) -> None:
    (tmp_path / "edges.csv").write_text(edges, encoding="utf-8", errors="replace", newline="")
    (tmp_path / "nodes.csv").write_text("id,f,label\n" + nodes, encoding="utf-8", errors="replace", newline="")
    load_or_message(tmp_path)


@pytest.mark.parametrize("claim", ["3 2 999999999999", "999999999999 999999999999 2", "3 2", "-3 2 2", "3 2 x"])
def test_a_matrix_market_size_is_not_believed(tmp_path: Path, claim: str) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    text = f"%%MatrixMarket matrix coordinate real general\n{claim}\n1 1 1.0\n"
    (tmp_path / "features.mtx").write_text(text)
    assert "features.mtx" in load_or_message(tmp_path)


def test_bytes_are_not_read_as_more_than_they_are(tmp_path: Path) -> None:
    content: Any = parquet.write_table(pa.table({"source": [0] * 5}), tmp_path / "edges.parquet")
    assert content is None
    assert "two columns" in load_or_message(tmp_path)
