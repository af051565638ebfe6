"""What a search is to do and where: settings, the run that is resumed or joined, and this process's place in it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pasca.config import RunConfig
from pasca.databases import find_study, open_url
from pasca.manifest import read_manifest
from pasca.members import Member, joined, occupied, refuse_held
from pasca.runs import MANIFEST_FILE, data_label, fresh_name, is_free, run_folder
from search_space.errors import ConfigError, RunError

STARTING = "starting"
"""Status of a run whose record may not exist yet."""

_SETTLED = ("evaluations", "retrain", "storage", "deterministic")
"""Settings, besides those of a run's identity, that a process which joins it cannot change."""

_POLL_SECONDS = 0.2


def settled_config(settings: Mapping[str, Any]) -> RunConfig:
    """The configuration that settings lead to: over the defaults, or over those of the run that is resumed.

    Raises:
        ConfigError: a setting does not exist or has no legal value.
        RunError: the run to be resumed does not exist.
    """
    config = RunConfig().with_settings(settings)
    if not config.resume and not config.join:
        return config
    doing, do, option = ("joining", "join", "--join") if config.join else ("resuming", "resume", "--resume")
    if config.run is None and config.out is None:
        raise RunError(f"{doing} needs the run's name or folder; give --run NAME or --out DIR")
    folder = run_folder(config.run, config.out)
    if not (folder / MANIFEST_FILE).is_file():
        raise RunError(f"there is no run in {folder} to {do}; leave {option} out to start one")
    manifest = read_manifest(folder)
    # Where the run is and that it is resumed are said now; the rest is as it was unless said otherwise now. The recipe
    # is taken whole, so that a run goes on as it began when the defaults of a recipe have changed since.
    stored = {name: value for name, value in manifest["config"].items() if name not in ("run", "out", "resume", "join")}
    stored["recipe"] = manifest["identity"].get("recipe") or {}
    before = RunConfig().with_settings(stored, f"the manifest of {folder}")
    settled = before.with_settings(settings)
    if config.join:
        _check_joinable(folder, before, settled)
    return settled


def _check_joinable(folder: Path, before: RunConfig, settled: RunConfig) -> None:
    """A process that joins takes a run as it is.

    Raises:
        ConfigError: the run cannot be joined, or on other terms only.
    """
    if before.deterministic:
        raise ConfigError(
            f"{folder} is deterministic: its seed and workers alone decide which designs are tried, which nobody may "
            "join; wait for it, or start another run without --deterministic"
        )
    for name in _SETTLED:
        there, asked = getattr(before, name), getattr(settled, name)
        if there != asked:
            raise ConfigError(
                f"whoever joins {folder} takes {name} as it is, {there} there, {asked} asked for; leave it out"
            )


def settle(
    settings: Mapping[str, Any], held: contextlib.ExitStack
) -> tuple[RunConfig, Path, Mapping[str, Any] | None, Member | None]:
    """Configuration and folder of the run, and the manifest of the one that is resumed, in which this process is then.

    The configuration's time budget is what is left of it, where this process joins a run that has one.
    """
    config = settled_config(settings)
    config = config.with_settings({"data": _absolute(config.data)})
    if config.run is None and config.out is None:
        config = config.with_settings({"run": fresh_name(data_label(config.data))})
    folder = run_folder(config.run, config.out)
    if not config.resume and not config.join:
        refuse_held(folder)
        check_free(folder)
        if config.storage is not None and find_study(open_url(config.storage), folder.absolute().name) is not None:
            raise RunError(f"the database of --storage has a study of the name {folder.name!r} already; choose another")
        return config, folder, None, None
    member = held.enter_context((joined if config.join else occupied)(folder))
    manifest = read_manifest(folder)
    while manifest.get("status") == STARTING and member.others():
        time.sleep(_POLL_SECONDS)  # whoever began the run is about to make its record
        manifest = read_manifest(folder)
    return config, folder, manifest, member


def check_free(folder: Path) -> None:
    """Make sure that a new run may start in a folder.

    Raises:
        RunError: it holds something.
    """
    if not is_free(folder):
        if (folder / MANIFEST_FILE).is_file():
            raise RunError(f"the run {folder} exists already; continue it with --resume or choose another name")
        raise RunError(f"{folder} is not empty and holds no run; choose another folder or name")


def _absolute(data: str) -> str:
    """A path made absolute, so that the run can be resumed from elsewhere; a name stays as it is."""
    head = data if Path(data).exists() else data.rpartition(":")[0]
    return os.path.abspath(data) if head and Path(head).exists() else data
