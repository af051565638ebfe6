"""The life of a worker process: evaluate what is ordered until the process that started it closes the connection."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from search_space.errors import TrialFailure

FEATURES, ADJACENCY, RAW_FEATURES = "features", "adjacency", "raw-features"
"""What the shared folder of a pool holds, besides matrices under their keys."""

READY = "ready"
"""Sent once, before the first order is waited for."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker must know; travels pickled.

    Attributes:
        folder: of shared arrays.
        store_folder, store_limit_bytes, store_is_durable, section: where hops are kept.
        dtype: of kept hops.
        task: what is learned.
        threads: of the numerical libraries.
    """

    folder: Path
    store_folder: Path
    store_limit_bytes: int
    store_is_durable: bool
    section: str
    dtype: str
    task: Any
    threads: int


@dataclass(frozen=True, slots=True)
class Order:
    """A design, in its text form, to be trained once per seed."""

    design: str
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Answer to an order: validation errors and details, or the reason why the trial failed."""

    errors: tuple[float, ...]
    details: Mapping[str, Any]
    reason: str | None = None


def main(handle: int) -> None:
    """Serve one connection, then return.

    Args:
        handle: of the connection, inherited. Standard input is a pipe that nobody writes to: it ends with the process
            that holds its other end, and so does this one, whatever it is doing then.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches everybody in a terminal; who started us decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection = Connection(handle)
    try:
        trainer = _trainer(connection.recv())
        connection.send(READY)
        while True:
            connection.send(_report(trainer, connection.recv()))
    except EOFError:
        return


def _end_with_parent() -> None:
    os.read(0, 1)  # not through sys.stdin, whose lock must be free when the interpreter ends
    os._exit(1)


def _trainer(setup: Setup) -> Any:
    import torch

    from engines.evaluation.design_training import DesignTrainer
    from engines.evaluation.hop_cache import HopCache
    from engines.evaluation.hop_store import HopStore
    from engines.evaluation.normalise import Normaliser
    from engines.evaluation.shared_arrays import map_array, map_csr, shared_csr
    from engines.evaluation.threads import set_threads
    from search_space.graph_operators import graph_operator

    set_threads(setup.threads)
    store = HopStore(setup.store_folder, setup.store_limit_bytes, setup.store_is_durable)
    hops = HopCache(
        lambda key: shared_csr(
            setup.folder / key, lambda: graph_operator(key).matrix(map_csr(setup.folder / ADJACENCY))
        ),
        map_array(setup.folder / FEATURES),
        0,
        setup.folder,
        store=store.section(setup.section),
        dtype=setup.dtype,
    )
    others: dict[str, tuple[Normaliser, HopCache]] = {}

    def other_features(kind: str) -> tuple[Normaliser, HopCache]:
        """Features normalised in another way, and their hops in files of this process."""
        if kind not in others:
            path = setup.folder / RAW_FEATURES
            raw = map_csr(path) if path.is_dir() else map_array(path)
            normaliser = Normaliser.fit(kind, raw)
            own = HopCache(hops.matrix, normaliser.apply(raw), 0, setup.folder, dtype=setup.dtype)
            others[kind] = normaliser, own
        return others[kind]

    # With the first optimiser torch loads much more of itself; those seconds are no trial's.
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    has_raw = (setup.folder / RAW_FEATURES).exists()
    return DesignTrainer(
        setup.task,
        hops,
        torch.device("cpu"),
        other_features=other_features if has_raw else None,
        adjacency=map_csr(setup.folder / ADJACENCY),
    )


def _report(trainer: Any, order: Order) -> Report:
    """What comes of a trial. An error ends the trial, not the worker."""
    from search_space.architecture import Architecture

    try:
        trained = trainer.train(Architecture.parse(order.design), order.seeds)
    except TrialFailure as failure:
        return Report((), {}, str(failure))
    except Exception as error:
        return Report((), {}, f"{type(error).__name__}: {error}")
    return Report(tuple(trained.val_errors.tolist()), trained.details)
