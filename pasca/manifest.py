"""The manifest of a run: what it was asked to do, on what, with what; enough to repeat it.

`identity` holds what a resumed run must share with the one it continues.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from engines.graph import Graph, class_counts
from pasca.atomic import write_json
from pasca.plain import plain
from pasca.runs import MANIFEST_FILE
from search_space.errors import RunError

FORMAT = 1
"""Raised whenever a reader of the old form would misunderstand the new one."""

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "botorch", "gpytorch", "optuna", "numba")


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a run folder, whole or not at all.

    Raises:
        StorageError: it could not be written; the earlier one is intact.
    """
    write_json(folder / MANIFEST_FILE, plain({**content, "format": FORMAT, "updated": now()}))


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a run folder.

    Raises:
        RunError: there is none, it is not one, or a newer pasca wrote it.
    """
    path = folder / MANIFEST_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise RunError(f"{path} is not a manifest: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise RunError(f"{path} is not a manifest: it states no format")
    if content["format"] > FORMAT:
        raise RunError(f"{path} has format {content['format']}, this pasca reads up to {FORMAT}; use a newer pasca")
    missing = [key for key in ("run", "config", "identity", "data") if key not in content]
    if missing:
        raise RunError(f"{path} is not a manifest: {', '.join(missing)} is missing")
    return content


def check_identity(folder: Path, recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Make sure that a run is continued on the same terms.

    Raises:
        RunError: a part differs; the message names the part and both values.
    """
    asked = plain(asked)
    for part in (*recorded, *(part for part in asked if part not in recorded)):
        before, after = recorded.get(part), asked.get(part)
        if before != after:
            if isinstance(before, Mapping) and isinstance(after, Mapping):
                inner = next(name for name in (*before, *after) if before.get(name) != after.get(name))
                part, before, after = f"{part} {inner}", before.get(inner), after.get(inner)
            raise RunError(
                f"{folder} was started with another {part}: {_brief(before)} there, {_brief(after)} asked for now; "
                "resume with the same settings or choose another run"
            )


def data_statement(graph: Graph | None, source: str) -> dict[str, Any]:
    """What the manifest says of the data."""
    if graph is None:
        return {"source": source, "checksum": None}
    return {
        "source": source,
        "name": graph.name,
        "checksum": graph.checksum,
        "structure_checksum": graph.structure_checksum,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_isolated": graph.num_isolated,
        "num_labelled": graph.num_labelled,
        "adjacency_entries": int(graph.adjacency.nnz),
        "directed": graph.directed,
        "weighted": graph.weighted,
        "num_features": graph.num_features,
        "num_classes": graph.num_classes,
        "class_names": list(graph.class_names),
        "split": {
            "name": graph.split.name,
            "train": int(graph.split.train.size),
            "validation": int(graph.split.validation.size),
            "test": int(graph.split.test.size),
            # Not of the test part: a search has no business with test labels.
            "classes": {
                part: class_counts(graph, getattr(graph.split, part)).tolist() for part in ("train", "validation")
            },
        },
        "notes": list(graph.notes),
    }


def environment(device: str) -> dict[str, Any]:
    """Versions, source commit and hardware."""
    return {"versions": _versions(), "commit": _commit(), "hardware": _hardware(device), "ranks": 1}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    import pasca

    found = {"pasca": pasca.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


def _commit() -> str | None:
    """The commit of the source tree this package runs from; None for an installed package or without git."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", "pasca", "engines", "search_space")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit} with changes" if changed else commit


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def _hardware(device: str) -> dict[str, Any]:
    from engines.evaluation.stage_times import hardware
    from engines.evaluation.threads import available_cores

    found: dict[str, Any] = {
        "processor": hardware(),
        "cores": available_cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "host": platform.node(),
        "device": device,
    }
    if device.startswith("cuda"):
        import torch

        found["gpu"] = torch.cuda.get_device_name(device)
    return found


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
