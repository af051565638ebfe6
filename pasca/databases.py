"""Opens the database of a run: SQLite in the run's folder, or any URL that Optuna takes."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import sqlite3
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from engines.objectives import Objective
from pasca.interrupts import held_back
from search_space.errors import RunError, StorageError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage, RDBStorage
    from sqlalchemy.exc import DBAPIError

T = TypeVar("T")

_LOCK_SECONDS = 2.0
"""How long one attempt waits for another process that writes to the same SQLite file."""

_PATIENCE_SECONDS = 120.0
"""How long attempts are repeated while a database is locked or cannot be reached."""

_PAUSE_SECONDS = 0.5

_NETWORK_OPTIONS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""For PostgreSQL, so that a server which vanished without a word is noticed: seconds, a count, milliseconds."""

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def storage_errors(where: str, error_class: type[StorageError] | type[RunError]) -> Iterator[None]:
    """Turn a database's own errors into one of ours that names the database and the cause."""
    from optuna.exceptions import OptunaError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (OptunaError, SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise error_class(f"{where}: {_cause(error)}") from error


def persistently(act: Callable[[int], T], where: str, may_pass: Callable[[DBAPIError], bool] | None = None) -> T:
    """Do something to a database; while that is locked or cannot be reached, again, for two minutes at most.

    Signals wait while an attempt is made, not between two.

    Args:
        act: given how many attempts there were before. One that failed may have taken effect all the same, where the
            connection was lost while the database answered.
        where: names the database, for the line that says what is being waited for.
        may_pass: whether an error is one that ends by itself; by default, a lock or a lost connection.
    Raises:
        The database's own error: it is of another kind, or there were attempts enough; see `storage_errors`.
    """
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import DBAPIError

    began, attempts = time.monotonic(), 0
    while True:
        try:
            with held_back():
                return act(attempts)
        except (StorageInternalError, DBAPIError) as error:
            cause = error if isinstance(error, DBAPIError) else error.__cause__
            passes = isinstance(cause, DBAPIError) and (may_pass or _is_locked_or_lost)(cause)
            if not passes or time.monotonic() - began >= _PATIENCE_SECONDS:
                raise
            if attempts == 0:
                _log.warning(
                    "%s: %s; trying again for up to %g s, Ctrl-C ends that", where, _cause(error), _PATIENCE_SECONDS
                )
        attempts += 1
        time.sleep(_PAUSE_SECONDS)


def _is_locked(error: DBAPIError) -> bool:
    """Whether another process keeps a SQLite file from being read or written."""
    return isinstance(error.orig, sqlite3.Error) and "is locked" in str(error.orig)


def _is_locked_or_lost(error: DBAPIError) -> bool:
    """Whether a SQLite file is locked, or the connection to a server was lost or is refused."""
    from sqlalchemy.exc import InterfaceError, OperationalError

    if isinstance(error.orig, sqlite3.Error):
        return _is_locked(error)
    return error.connection_invalidated or isinstance(error, (OperationalError, InterfaceError))


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

    PostgreSQL is spoken to through psycopg unless the URL names another driver, as `postgresql+psycopg2://` does.

    Raises:
        RunError: the URL is not one, its driver is not installed, or the database cannot be reached.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise RunError(f"a storage is a database URL such as postgresql://user@host/name, got {url!r}")
    where, options = f"the database {_without_password(url)}", {}
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        if importlib.util.find_spec("psycopg") is None:
            raise RunError(f"cannot open {where}: it needs the package psycopg; pip install 'pasca[postgresql]'")
        scheme, options = "postgresql+psycopg", {"connect_args": _NETWORK_OPTIONS}
    # A connection that was lost since it was last used is replaced without a word.
    engine_options = {} if scheme.startswith("sqlite") else {"pool_pre_ping": True, **options}
    storage = _open(where, f"{scheme}://{rest}", engine_options)
    weakref.finalize(storage, storage.engine.dispose)  # nobody closes a storage, and a server keeps count
    return storage


def _open(where: str, url: str, engine_options: dict[str, Any]) -> RDBStorage:
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    def connect(attempts: int) -> RDBStorage:
        try:
            return RDBStorage(url, engine_kwargs=dict(engine_options))
        except (IntegrityError, ProgrammingError):
            # Another process made the tables at the same moment.
            return RDBStorage(url, engine_kwargs=dict(engine_options))

    with storage_errors(f"cannot open {where}", RunError):
        try:
            # One that cannot be reached is not waited for: the address may be wrong.
            return persistently(connect, where, _is_locked)
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
    """The number of the study of that name in the storage, or None.

    Raises:
        RunError: the storage cannot be read.
    """
    with storage_errors("cannot read the database", RunError):
        try:
            return persistently(lambda attempts: storage.get_study_id_from_name(name), "the database")
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
