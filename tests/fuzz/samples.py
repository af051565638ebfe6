"""Small sound data sets of every format that pasca reads, and an exported model, as contents by file name."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from damage import Files
from scipy import sparse

NUM_NODES = 6
RING = [(i, (i + 1) % NUM_NODES) for i in range(NUM_NODES)]


def samples() -> dict[str, Files]:
    """All of them, by format."""
    return {
        "planetoid": planetoid(),
        "csr": {"set.npz": csr()},
        "hetero": {"set.npz": hetero()},
        "geom": {
            "out1_graph_edges.txt": b"node_id\tnode_id\n0\t1\n1\t2\n",
            "out1_node_feature_label.txt": b"node_id\tfeature\tlabel\n0\t1,0\t0\n1\t0,1\t1\n2\t1,1\t0\n",
        },
        "musae": musae(),
        "musae zip": {"musae.zip": zipped(musae())},
        "linqs": {
            "set.content": b"35\t1\t0\tAI\nx1\t0\t1\tDB\n007\t0\t0\tAI\n",
            "set.cites": b"35\tx1\n007\t35\n",
        },
        "csv": tables(),
        "csv.gz": {f"{name}.gz": gzip.compress(content) for name, content in tables().items()},
        "parquet": parquet_tables(),
        "npy": {**numbered_edges(), "features.npy": array_file(np.eye(NUM_NODES, 3))},
        "sparse npz": {**numbered_edges(), "features.npz": sparse_file()},
        "matrix market": {
            **numbered_edges(),
            "features.mtx": b"%%MatrixMarket matrix coordinate real general\n6 2 2\n1 1 1.0\n2 2 2.0\n",
        },
        "torch": {"set.pt": torch_file()},
        "native": native(),
        "model": model(),
    }


def planetoid() -> Files:
    """Six nodes, of which 5 and 3 are tested and 4 is nowhere."""
    one_hot = np.eye(2, dtype=np.int32)
    parts: dict[str, Any] = {
        "x": sparse.csr_matrix(np.eye(4, dtype=np.float32)[:2]),
        "y": one_hot[[0, 1]],
        "allx": sparse.csr_matrix(np.eye(4, dtype=np.float32)[:3]),
        "ally": one_hot[[0, 1, 1]],
        "tx": sparse.csr_matrix(np.eye(4, dtype=np.float32)[2:]),
        "ty": one_hot[[0, 1]],
        "graph": {0: [1, 1, 5], 1: [0, 2], 2: [1, 3, 2], 3: [2], 4: [], 5: [0]},
    }
    return {
        **{f"ind.tiny.{part}": pickle.dumps(value, protocol=2) for part, value in parts.items()},
        "ind.tiny.test.index": b"5\n3\n",
    }


def csr() -> bytes:
    """Three nodes with arcs in both directions and a loop."""
    return arrays_file(
        adj_data=np.array([1, 1, 2, 1], dtype=np.float32),
        adj_indices=np.array([1, 2, 0, 2], dtype=np.int32),
        adj_indptr=np.array([0, 2, 3, 4], dtype=np.int32),
        adj_shape=np.array([3, 3]),
        attr_data=np.ones(3, dtype=np.float32),
        attr_indices=np.arange(3, dtype=np.int32),
        attr_indptr=np.arange(4, dtype=np.int32),
        attr_shape=np.array([3, 3]),
        labels=np.array([0, 1, 0]),
    )


def hetero() -> bytes:
    """A path of six nodes with two splits."""
    masks = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]], dtype=np.uint8)
    return arrays_file(
        node_features=np.eye(NUM_NODES, dtype=np.float32),
        node_labels=np.array([0, 1, 0, 1, 0, 1]),
        edges=np.array(RING[:-1]),
        train_masks=masks[[0, 1]],
        val_masks=masks[[1, 2]],
        test_masks=masks[[2, 0]],
    )


def musae() -> Files:
    """Four nodes."""
    return {
        "musae_tiny_edges.csv": b"id_1,id_2\n0,1\n1,2\n2,2\n",
        "musae_tiny_features.json": json.dumps({"2": [0, 4], "0": [1, 1], "1": [], "3": [2]}).encode(),
        "musae_tiny_target.csv": b"id,page_name,page_type\n3,d,b\n0,a,a\n2,c,b\n1,e,a\n",
    }


def tables() -> Files:
    """Edges with weights, and nodes with features, labels and a split."""
    edges = "source,target,weight\n" + "".join(f"n{a},n{b},{a + 1}\n" for a, b in RING)
    nodes = "id,f1,f2,label,split\n" + "".join(
        f"n{i},{i},{i / 3},{'ab'[i // 2 % 2]},{('train', 'val')[i % 2]}\n" for i in range(NUM_NODES)
    )
    return {"edges.csv": edges.encode(), "nodes.csv": nodes.encode()}


def numbered_edges() -> Files:
    """Edges between numbers."""
    return {"edges.csv": ("source,target\n" + "".join(f"{a},{b}\n" for a, b in RING)).encode()}


def parquet_tables() -> Files:
    """The same two tables in Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    ids = [f"n{i}" for i in range(NUM_NODES)]
    made = {}
    for name, table in (
        ("edges", pa.table({"source": ids, "target": ids[::-1]})),
        ("nodes", pa.table({"id": ids, "f": np.arange(6.0), "label": list("ababab")})),
    ):
        out = io.BytesIO()
        parquet.write_table(table, out)
        made[f"{name}.parquet"] = out.getvalue()
    return made


def torch_file() -> bytes:
    """A dictionary of tensors."""
    import torch

    out = io.BytesIO()
    torch.save({"x": torch.ones(3, 2), "edge_index": torch.tensor([[0, 1], [1, 2]]), "y": torch.tensor([0, 1, 0])}, out)
    return out.getvalue()


def native() -> Files:
    """What `pasca convert` makes of the tables."""
    from pasca.datasets import load, write_folder

    with tempfile.TemporaryDirectory() as folder:
        for name, content in tables().items():
            Path(folder, name).write_bytes(content)
        write_folder(load(folder), Path(folder, "out"))
        return contents(Path(folder, "out"))


def model() -> Files:
    """A design trained for three epochs."""
    from engines.evaluation.local import LocalEvaluator
    from engines.evaluation.recipe import Recipe
    from pasca.datasets import load
    from pasca.export import export_design
    from search_space.architecture import Architecture

    with tempfile.TemporaryDirectory() as folder:
        for name, content in tables().items():
            Path(folder, name).write_bytes(content)
        graph, recipe = load(folder), Recipe(hidden_width=3, max_epochs=3)
        trained = LocalEvaluator(graph, recipe=recipe, threads=1).train(
            Architecture.parse("augmented^2/concat/mlp-2/ppr0.1^2"), (0, 1)
        )
        export_design(
            trained, graph, recipe, Path(folder, "model"), metrics={"val_error": 0.5}, protocol={"split": "x"}
        )
        return contents(Path(folder, "model"))


def contents(folder: Path) -> Files:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def zipped(files: Files) -> bytes:
    """One archive of them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def arrays_file(**arrays: Any) -> bytes:
    """An .npz."""
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def array_file(array: Any) -> bytes:
    """An .npy."""
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def sparse_file() -> bytes:
    """A CSR matrix as SciPy saves it."""
    out = io.BytesIO()
    sparse.save_npz(out, sparse.csr_array(np.eye(NUM_NODES, 3)))
    return out.getvalue()
