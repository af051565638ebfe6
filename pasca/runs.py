"""Run folders: their names, where they are, and the list of them."""

from __future__ import annotations

import os
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

from pasca.atomic import leftovers
from pasca.members import is_lock
from search_space.errors import RunError

RESULTS = Path("results")
"""Where runs are kept by name, relative to the working folder."""

RESERVED = ("reference",)
STUDY_FILE, MANIFEST_FILE = "study.db", "manifest.json"

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def run_folder(run: str | None, out: str | os.PathLike[str] | None) -> Path:
    """The folder meant by `--run NAME` or `--out DIR`.

    Raises:
        RunError: both or neither are given, or the name is not a plain name.
    """
    if (run is None) == (out is None):
        raise RunError(f"a run has either a name or a folder of its own, got run={run!r} and out={out!r}")
    if out is not None:
        return Path(out)
    assert run is not None
    return RESULTS / plain_name(run)


def plain_name(name: str) -> str:
    """Return a run's name if it is a plain one.

    Raises:
        RunError: it could mean another folder, is reserved, or holds other signs than letters, digits, `.`, `_`, `+`
            and `-`.
    """
    if _PLAIN.fullmatch(name) is None:
        raise RunError(
            f"a run's name has letters, digits, '.', '_', '+' and '-', begins with a letter or digit and has at most "
            f"100 signs, got {name!r}; --out takes any path"
        )
    if name in RESERVED:
        raise RunError(f"the run name {name!r} is reserved; choose another")
    return name


def fresh_name(data_name: str, now: datetime | None = None) -> str:
    """A name for a new run: the data's name and the time, with a counter if that is taken."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", data_name).strip("-._")[:60] or "run"
    stem = f"{stem}-{(now or datetime.now(UTC)).strftime('%Y%m%d-%H%M%S')}"
    name, count = stem, 1
    while (RESULTS / name).exists():
        count += 1
        name = f"{stem}-{count}"
    return name


def data_label(data: str) -> str:
    """A short name for the data, for run names: `cora` for /graphs/cora, `cora-tiny` for /graphs/cora:tiny."""
    return Path(data).name.removesuffix(".npz").replace(":", "-")


def find_run(run: str | os.PathLike[str]) -> Path:
    """The existing run folder meant by a name or a path.

    Raises:
        RunError: there is none; the message lists the runs there are.
    """
    candidates = [Path(run)]
    if _PLAIN.fullmatch(str(run)):
        candidates.insert(0, RESULTS / run)
    for folder in candidates:
        if (folder / MANIFEST_FILE).is_file():
            return folder
    names = ", ".join(folder.name for folder in list_runs()) or "none yet"
    raise RunError(
        f"no run {str(run)!r}: neither {RESULTS}/NAME nor a folder with a {MANIFEST_FILE}; runs here: {names}"
    )


def argument_for(folder: Path) -> str:
    """What to write for RUN on a command line to mean this folder, from where the run can be seen now."""
    name = folder.name
    if _PLAIN.fullmatch(name) and (RESULTS / name).resolve() == folder.resolve():
        return name
    return shlex.quote(str(folder))


def list_runs(results: Path = RESULTS) -> list[Path]:
    """Folders of `results` that hold a run, by name."""
    if not results.is_dir():
        return []
    return sorted(folder for folder in results.iterdir() if (folder / MANIFEST_FILE).is_file())


def is_free(folder: Path) -> bool:
    """Whether a new run may start in a folder: it is missing, or holds only what a killed start left behind.

    Raises:
        RunError: it is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; a run needs a folder of its own")
    if not folder.exists():
        return True
    return {path for path in folder.iterdir() if not is_lock(path)} <= set(leftovers(folder))
