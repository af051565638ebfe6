"""Keeps stage times between runs: one small file for each graph, machine and number of threads."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pasca.atomic import write_json
from pasca.manifest import read_manifest
from pasca.runs import find_run
from search_space.errors import ConfigError, RunError

if TYPE_CHECKING:
    from engines.evaluation.stage_times import StageTimes


def cache_folder() -> Path:
    """Where pasca keeps what can be made again: $PASCA_CACHE, else pasca in $XDG_CACHE_HOME, else ~/.cache/pasca."""
    own, shared = os.environ.get("PASCA_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if own:
        return Path(own)
    return Path(shared) / "pasca" if shared else Path.home() / ".cache" / "pasca"


def stored_times(key: str) -> StageTimes | None:
    """The stage times stored under a key, or None.

    Raises:
        ConfigError: the file is damaged; the message names it.
    """
    from engines.evaluation.stage_times import StageTimes

    path = _path(key)
    try:
        times = StageTimes.from_mapping(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ConfigError) as error:
        raise ConfigError(f"the stored stage times {path} cannot be read ({error}); remove the file") from None
    return times if times.key == key else None


def store_times(times: StageTimes) -> None:
    """Store stage times under their key.

    Raises:
        StorageError: they cannot be written.
        OSError: the cache folder cannot be made.
    """
    path = _path(times.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, times.as_mapping())


def times_of_run(run: str, structure_checksum: str) -> StageTimes:
    """The stage times that another run was searched with.

    Raises:
        RunError: there is no such run, it has none, or it was on another graph.
    """
    from engines.evaluation.stage_times import StageTimes

    manifest = read_manifest(find_run(run))
    if manifest["data"].get("structure_checksum") != structure_checksum:
        raise RunError(f"the run {run!r} is on another graph, so its stage times say nothing about this one")
    if not manifest.get("stage_times"):
        raise RunError(f"the run {run!r} has no stage times; leave --stage-times out to measure them")
    return StageTimes.from_mapping(manifest["stage_times"])


def _path(key: str) -> Path:
    return cache_folder() / "stage-times" / f"{key}.json"
