"""Opens the database of a run: SQLite in the run's folder, or any URL that Optuna takes."""

from __future__ import annotations

import contextlib
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engines.objectives import Objective
from search_space.errors import RunError, StorageError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

_LOCK_SECONDS = 60.0
"""How long a write waits for another process that writes to the same SQLite file."""


@contextlib.contextmanager
def storage_errors(where: str, error_class: type[StorageError] | type[RunError]) -> Iterator[None]:
    """Turn a database's own errors into one of ours that names the database and the cause."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise error_class(f"{where}: {_cause(error)}") from error


def open_sqlite(path: Path, *, create: bool) -> BaseStorage:
    """Open a SQLite file as an Optuna storage.

    Raises:
        RunError: the file is missing (unless it is to be created), no database, or of another Optuna's format.
    """

    def connect() -> sqlite3.Connection:
        # Without `create` a missing file is an error instead of an empty database. The address is given here because
        # a path may hold signs that mean something in a database URL.
        mode = "rwc" if create else "rw"
        address = f"{path.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(address, uri=True, timeout=_LOCK_SECONDS, check_same_thread=False)

    if not create and not path.is_file():
        raise RunError(f"{path} is missing; the run's record is gone")
    return _open(f"the record {path}", "sqlite:///study.db", {"creator": connect})


def open_url(url: str) -> BaseStorage:
    """Open a database URL, such as `postgresql://user@host/name`, as an Optuna storage.

    Raises:
        RunError: the URL is not one, its driver is not installed, or the database cannot be reached.
    """
    if "://" not in url:
        raise RunError(f"a storage is a database URL such as postgresql://user@host/name, got {url!r}")
    return _open(f"the database {_without_password(url)}", url, {})


def _open(where: str, url: str, engine_options: dict[str, Any]) -> BaseStorage:
    from optuna.storages import RDBStorage

    with storage_errors(f"cannot open {where}", RunError):
        try:
            return RDBStorage(url, engine_kwargs=engine_options)
        except (ImportError, ValueError, RuntimeError, AssertionError) as error:
            # Optuna: a missing driver, a URL without a known dialect, tables of another version, tables cut short.
            raise RunError(f"cannot open {where}: {_cause(error)}") from error


def create_study(storage: BaseStorage, name: str, objectives: Sequence[Objective]) -> int:
    """Make a new study with the objectives' names and directions; returns its number in the storage."""
    import optuna
    from optuna.study import StudyDirection

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study_id = storage.create_new_study(
            [
                StudyDirection.MINIMIZE if objective.direction == "minimise" else StudyDirection.MAXIMIZE
                for objective in objectives
            ],
            name,
        )
    finally:
        optuna.logging.set_verbosity(verbosity)
    with warnings.catch_warnings():
        # The names are for Optuna's dashboard only; nothing of ours reads them back.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.load_study(study_name=name, storage=storage).set_metric_names([o.name for o in objectives])
    return study_id


def find_study(storage: BaseStorage, name: str) -> int | None:
    """The number of the study of that name in the storage, or None."""
    try:
        return storage.get_study_id_from_name(name)
    except KeyError:
        return None


def _cause(error: BaseException) -> str:
    """The innermost explanation, in one line."""
    origin = getattr(error, "orig", None) or error.__cause__ or error
    origin = getattr(origin, "orig", None) or origin
    lines = str(origin).strip().splitlines()
    return lines[0] if lines else type(origin).__name__


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    login, at, host = rest.rpartition("@")
    return f"{scheme}://{login.partition(':')[0]}{at}{host}"
