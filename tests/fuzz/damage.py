"""Ways to damage the files of a data set or model: in their bytes, or in what a container holds."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Files = dict[str, bytes]

NUMBERS = (b"-1", b"0", b"1e400", b"nan", b"-inf", b"99999999999999999999", b"2147483648", b"0x10", b"1_000", b"")
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1e308, float("nan"), "", "x", "../../x", "/etc/passwd", "\u0000", "\ud83d\ude00", [], {},
    [[]], ["a", 1], {"a": 1}, "augmented^1000000/mean/mlp-1/-", 2**31, "9" * 400,
)  # fmt: skip


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    """Cut, changed, repeated, emptied, or with another number in a text."""
    at = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    kind = rng.choice(("cut", "change", "repeat", "remove", "insert", "flip", "number", "number", "lines"))
    if kind == "cut":
        return content[: at[0]]
    if kind == "change":
        return content[: at[0]] + rng.randbytes(min(4, len(content) - at[0])) + content[at[0] + 4 :]
    if kind == "repeat":
        return content[: at[1]] + content[at[0] : at[1]] * rng.choice((1, 3, 50)) + content[at[1] :]
    if kind == "remove":
        return content[: at[0]] + content[at[1] :]
    if kind == "insert":
        return (
            content[: at[0]]
            + rng.choice((b"\x00", b"\n", b",", b'"', b"\xff\xfe", rng.randbytes(5)))
            + content[at[0] :]
        )
    if kind == "flip" and at[0] < len(content):
        return content[: at[0]] + bytes([content[at[0]] ^ (1 << rng.randrange(8))]) + content[at[0] + 1 :]
    if kind == "lines":
        lines = content.split(b"\n")
        rng.shuffle(lines)
        return b"\n".join(lines)
    found = list(re.finditer(rb"-?\d+(\.\d+)?", content[:4000]))
    if not found:
        return content
    number = rng.choice(found)
    return content[: number.start()] + rng.choice(NUMBERS) + content[number.end() :]


def damaged_array(rng: random.Random, array: Any) -> Any:
    """Another type, shape or values."""
    array = np.asarray(array)
    kind = rng.randrange(9)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == 0:
            return array.astype(rng.choice(("int8", "uint64", "float16", "float64", "complex64", "bool", "S3", "U5")))
        if kind == 1:
            return array.reshape(-1)[: rng.randrange(array.size + 1)]
        if kind == 2:
            return array[np.newaxis] if rng.random() < 0.5 else array.T
        if kind == 3:
            return np.array(array.reshape(-1)[0]) if array.size else array
        if kind == 4 and array.dtype.kind in "iufb" and array.size:
            changed = array.astype(np.float64 if rng.random() < 0.5 else np.int64).copy()
            value = rng.choice((-1, 10**9, 2**31, 2**62))
            changed.reshape(-1)[rng.randrange(array.size)] = value
            return changed
        if kind == 5 and array.dtype.kind in "iufb" and array.size:
            changed = array.astype(np.float64)
            changed.reshape(-1)[rng.randrange(array.size)] = rng.choice((np.nan, np.inf, -np.inf, 1e308, 0.5))
            return changed
        if kind == 6:
            return np.empty((0, *array.shape[1:]), array.dtype)
        if kind == 7:
            return np.array([f"v{value}" for value in array.reshape(-1)[:20]])
        return array.reshape(-1)[::-1]


def damaged_value(rng: random.Random, value: Any, depth: int = 0) -> Any:
    """One value of a tree of lists and mappings replaced, removed or repeated."""
    if isinstance(value, dict) and value and rng.random() < 0.9 - 0.1 * depth:
        key = rng.choice(list(value))
        if rng.random() < 0.15:
            return {name: inner for name, inner in value.items() if name != key}
        return {**value, key: damaged_value(rng, value[key], depth + 1)}
    if isinstance(value, list) and value and rng.random() < 0.8 - 0.1 * depth:
        place = rng.randrange(len(value))
        if rng.random() < 0.2:
            return value[:place] + value[place + 1 :] if rng.random() < 0.5 else value * 3
        return [*value[:place], damaged_value(rng, value[place], depth + 1), *value[place + 1 :]]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rng.random() < 0.5:
        return rng.choice((-value, value + 1, value * 10**9, float(value), str(value), 10**6))
    return rng.choice(ODD)


def damaged_npz(rng: random.Random, content: bytes) -> bytes:
    """An archive in which one array is another one, missing, or an unknown one more."""
    with np.load(io.BytesIO(content), allow_pickle=False) as npz:
        arrays = dict(npz)
    name = rng.choice(list(arrays))
    kind = rng.random()
    if kind < 0.1:
        del arrays[name]
    elif kind < 0.15:
        arrays["../other"] = arrays[name]
    elif kind < 0.25:
        arrays[name] = np.array([{"an": "object"}], dtype=object)
    else:
        arrays[name] = damaged_array(rng, arrays[name])
    out = io.BytesIO()
    rng.choice((np.savez, np.savez_compressed))(out, **arrays)
    return out.getvalue()


def damaged_npy(rng: random.Random, content: bytes) -> bytes:
    """Another array."""
    out = io.BytesIO()
    np.save(out, damaged_array(rng, np.load(io.BytesIO(content), allow_pickle=False)))
    return out.getvalue()


def damaged_json(rng: random.Random, content: bytes) -> bytes:
    """Another value somewhere; a model's description gets the checksum that fits."""
    value = damaged_value(rng, json.loads(content))
    if rng.random() < 0.3:
        value = damaged_value(rng, value)
    if isinstance(value, dict) and "checksum" in value and value.get("format") == "pasca-model":
        from pasca.model_folder import description_checksum

        value["checksum"] = description_checksum(value)
    return json.dumps(value).encode("utf-8", errors="replace")


def damaged_pickle(rng: random.Random, content: bytes) -> bytes:
    """Another object of harmless types, which is the project's own file and not one from elsewhere."""
    from scipy import sparse

    value = pickle.loads(content.replace(b"numpy.core.multiarray", b"numpy._core.multiarray"), encoding="latin1")
    kind = rng.randrange(5)
    if sparse.issparse(value):
        if kind < 3:
            part = rng.choice(("data", "indices", "indptr"))
            setattr(value, part, damaged_array(rng, getattr(value, part)))
        elif kind == 3:
            value._shape = rng.choice(((-1, 4), (10**9, 10**9), (3,), ("a", 4), (0, 0)))
        else:
            value = value.toarray()
    elif isinstance(value, np.ndarray):
        value = damaged_array(rng, value)
    else:
        value = damaged_value(rng, value)
    return pickle.dumps(value, protocol=rng.choice((2, 2, 4)))


def damaged_torch(rng: random.Random, content: bytes) -> bytes:
    """Tensors of other types, shapes and values, or other things in their place."""
    import torch

    value = torch.load(io.BytesIO(content), weights_only=True)
    key = rng.choice(list(value))
    kind = rng.random()
    if kind < 0.2:
        del value[key]
    elif kind < 0.4:
        value[key] = rng.choice(ODD)
    else:
        changed = damaged_array(rng, value[key].numpy())
        value[key] = (
            torch.from_numpy(np.ascontiguousarray(changed))
            if changed.dtype.kind in "iufb" and changed.dtype != np.uint64
            else 7
        )
    out = io.BytesIO()
    torch.save(value, out)
    return out.getvalue()


def damaged_parquet(rng: random.Random, content: bytes) -> bytes:
    """A column of another type, with nulls, or named otherwise."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(content))
    place = rng.randrange(table.num_columns)
    size, name = table.num_rows, table.column_names[place]
    columns = (
        pa.nulls(size),
        pa.array([None, *range(1, size)]),
        pa.array([[i] for i in range(size)]),
        pa.array([float("nan")] * size),
        pa.array([f"n{i}" for i in range(size)]).dictionary_encode(),
        pa.array(range(size), pa.timestamp("ns")),
        pa.array([b"\xff\x00"] * size),
        pa.array([{"a": i} for i in range(size)]),
        pa.array([True] * size),
        pa.array([10**18 + i for i in range(size)]),
    )
    table = table.set_column(place, rng.choice((name, name, "", "other")), rng.choice(columns))
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


INSIDE: dict[str, Callable[[random.Random, bytes], bytes]] = {
    ".npz": damaged_npz, ".npy": damaged_npy, ".json": damaged_json, ".pt": damaged_torch, ".parquet": damaged_parquet,
    **dict.fromkeys((".x", ".y", ".tx", ".ty", ".allx", ".ally", ".graph"), damaged_pickle),
}  # fmt: skip


def damaged(rng: random.Random, files: Files) -> Files:
    """A copy with one file damaged, seldom two, or one missing, doubled or exchanged for another."""
    found = dict(files)
    for _ in range(1 if rng.random() < 0.8 else 2):
        name = rng.choice(list(found))
        kind, inside = rng.random(), INSIDE.get(Path(name).suffix)
        if kind < 0.04 and len(found) > 1:
            del found[name]
        elif kind < 0.08:
            found[name] = rng.choice(list(found.values()))
        elif inside is not None and kind < 0.7 and found[name] is files[name]:
            found[name] = inside(rng, files[name])
        elif found[name]:
            found[name] = damaged_bytes(rng, found[name])
    if "graph.json" in files and "graph.json" in found:
        found["graph.json"] = resealed_folder(found)
    elif "model.json" in files and "model.json" in found:
        found["model.json"] = resealed_model(found)
    return found


def resealed_folder(files: Files) -> bytes:
    """The description of a converted folder with the sizes and checksums of its files as they are now."""
    try:
        described = json.loads(files["graph.json"])
        for name, record in described["files"].items():
            if name in files and isinstance(record, dict):
                record.update(bytes=len(files[name]), sha256=hashlib.sha256(files[name]).hexdigest())
        return json.dumps(described).encode()
    except (ValueError, TypeError, KeyError, AttributeError):
        return files["graph.json"]


def resealed_model(files: Files) -> bytes:
    """The same for a model."""
    from pasca.model_folder import description_checksum

    try:
        described = json.loads(files["model.json"])
        described["files"].update({n: hashlib.sha256(files[n]).hexdigest() for n in described["files"] if n in files})
        described["checksum"] = description_checksum(described)
        return json.dumps(described).encode()
    except (ValueError, TypeError, KeyError, AttributeError):
        return files["model.json"]
