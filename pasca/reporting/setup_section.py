"""What was searched, how, and with what: data, settings, recipe, versions, hardware."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pasca.reporting.gathered import Gathered
from pasca.reporting.parts import Block, Section
from pasca.reporting.wording import time_text
from pasca.tables import Cells, value_text


def setup_section(found: Gathered) -> Section:
    """The section."""
    manifest = found.manifest
    blocks = [_data(manifest["data"])]
    classes = _classes(manifest["data"])
    if classes is not None:
        blocks.append(classes)
    blocks += [
        _pairs("Configuration", manifest["config"]),
        _pairs("Training recipe", manifest["identity"].get("recipe") or {}),
        _pairs("Search space", manifest["identity"].get("space") or {}),
        _pairs("Machine", {"threads": manifest.get("threads"), **manifest.get("hardware", {})}),
        _pairs("Versions", {**manifest.get("versions", {}), "commit": manifest.get("commit")}),
    ]
    started = f"Started {time_text(manifest.get('created'))}"
    written = f", last written {time_text(manifest['updated'])}" if manifest.get("updated") else ""
    texts = (f"{started}{written}.",)
    return Section("setup", "Data and set-up", "Set-up", texts, tuple(block for block in blocks if block.table))


def _data(data: Mapping[str, Any]) -> Block:
    rows = [("source", str(data.get("source")))]
    if data.get("name") is not None:
        kind = "directed" if data.get("directed") else "undirected"
        kind += ", weighted" if data.get("weighted") else ", unweighted"
        split = data.get("split", {})
        rows += [
            ("name", str(data["name"])),
            ("nodes", f"{data['num_nodes']:,}, of which {data.get('num_isolated', 0):,} without an edge"),
            ("edges", f"{data['num_edges']:,}, {kind}"),
            ("features", f"{data['num_features']:,}"),
            ("classes", f"{data['num_classes']:,}"),
            ("labelled nodes", f"{data.get('num_labelled', 0):,}"),
            (
                "split",
                f"{split.get('name')}: {split.get('train', 0):,} training, {split.get('validation', 0):,} validation, "
                f"{split.get('test', 0):,} test",
            ),
            ("checksum", str(data.get("checksum"))),
            *(("note", str(note)) for note in data.get("notes", [])),
        ]
    return Block(title="Data", table=Cells(("", ""), tuple(rows)), narrow=True)


def _classes(data: Mapping[str, Any]) -> Block | None:
    counts = data.get("split", {}).get("classes")
    if not counts:
        return None
    rows = tuple(
        (str(name), str(train), str(validation))
        for name, train, validation in zip(data["class_names"], counts["train"], counts["validation"], strict=True)
    )
    return Block(
        title="Labelled nodes by class",
        table=Cells(("class", "training", "validation"), rows, frozenset((1, 2))),
        summary=f"{len(rows)} classes" if len(rows) > 12 else None,
        narrow=True,
    )


def _pairs(title: str, values: Mapping[str, Any]) -> Block:
    rows = tuple((str(name), _value(name, value)) for name, value in values.items() if value not in (None, "", {}, []))
    return Block(title=title, table=Cells(("", ""), rows) if rows else None, narrow=True)


def _value(name: str, value: Any) -> str:
    """A setting as text, a size in a handy unit."""
    sized = isinstance(value, int) and name in ("memory", "memory_bytes", "hop_store_limit")
    return value_text("peak_memory_bytes", value) if sized else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return json.dumps(value, ensure_ascii=False)
