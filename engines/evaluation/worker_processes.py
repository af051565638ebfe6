"""WorkerProcesses: designs evaluated side by side, each in a process of its own with its share of the cores.

Threads of one process would wait for each other's Python code, and trainings that share a thread pool fight over it. A
worker is a fresh interpreter that imports pasca and nothing of the calling program, so scripts need no guard around
their start. Features, adjacency and matrices are files that all of them map, hops lie in the evaluator's hop store, so
however many workers there are, each of these is in memory once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import TracebackType

import numpy as np

from engines.evaluation.local import LocalEvaluator
from engines.evaluation.shared_arrays import save_array, save_csr
from engines.evaluation.worker import ADJACENCY, FEATURES, RAW_FEATURES, READY, Order, Report, Setup
from engines.trial import Outcome
from search_space.architecture import Architecture
from search_space.errors import ConfigError, StorageError, TrialFailure

_SECONDS_TO_DIE = 10
"""How long a process may take to end after its end of the connection has closed."""


class WorkerProcesses:
    """Evaluators that work in processes of their own. Use as a context manager or call `close`.

    Args:
        local: on the CPU, with a hop store. Knows the costs of designs; its task, hops and number of threads are those
            of each worker, so results are bit-equal to its own.
        count: how many.
        folder: where the shared arrays are put, on a disk; None for the system's place for temporary files.
        other_features: whether designs may normalise features other than the recipe says, which takes them raw.
    Attributes:
        evaluators: one for each process, to be called by one thread each.
    Raises:
        ConfigError: the evaluator has no store, or trains on another device than the CPU.
        StorageError: the shared arrays do not fit the disk.
    """

    def __init__(
        self, local: LocalEvaluator, count: int, folder: Path | None = None, *, other_features: bool = False
    ) -> None:
        if local.device.type != "cpu" or local.hop_section is None or local.hop_storage.store is None:
            raise ConfigError(
                f"worker processes train on the CPU and share a hop store, got an evaluator on {local.device} "
                f"{'with' if local.hop_storage.store else 'without'} one"
            )
        store = local.hop_storage.store
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="pasca-workers-", dir=folder)
        except OSError as error:
            raise StorageError(f"no temporary folder can be made for worker processes: {error.strerror}") from error
        shared = Path(self._folder.name)
        self.evaluators: list[WorkerEvaluator] = []
        try:
            save_array(shared / FEATURES, local.hops.hop("augmented", 0.0, 0))
            save_csr(shared / ADJACENCY, local.graph.adjacency)
            raw = local.graph.features
            if other_features and isinstance(raw, np.ndarray):
                save_array(shared / RAW_FEATURES, raw)
            elif other_features:
                save_csr(shared / RAW_FEATURES, raw)
            setup = Setup(
                folder=shared,
                store_folder=store.folder.absolute(),
                store_limit_bytes=store.limit_bytes,
                store_is_durable=store.durable,
                section=local.hop_section,
                dtype=local.hop_storage.dtype,
                task=local.task,
                threads=local.threads,
            )
            for number in range(count):
                self.evaluators.append(WorkerEvaluator(number, setup, local.known_of))
        except OSError as error:
            self.close()
            raise StorageError(f"what worker processes share does not fit {shared}: {error.strerror}") from error

    def close(self) -> None:
        """End the processes, whatever they are doing, and remove what they shared."""
        for evaluator in self.evaluators:
            evaluator.close()
        self._folder.cleanup()

    def __enter__(self) -> WorkerProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class WorkerEvaluator:
    """An Evaluator whose training happens in another process, which is replaced when it dies."""

    def __init__(self, number: int, setup: Setup, known_of: Callable[[Architecture], dict[str, float]]) -> None:
        self.number, self._setup, self._known_of = number, setup, known_of
        self._starting = threading.Lock()
        self._closed = False
        self._worker: _Worker | None = _Worker(setup)

    @property
    def process_id(self) -> int | None:
        """Of the process; None while there is none."""
        worker = self._worker
        return None if worker is None else worker.process.pid

    def evaluate(self, design: Architecture, seeds: Sequence[int]) -> Outcome:
        """Train once per seed and return all objectives; see LocalEvaluator.

        Raises:
            TrialFailure: training diverged, memory ran out, or the process died; the next call starts another.
        """
        worker = self._alive()
        try:
            worker.get_ready()
            worker.connection.send(Order(str(design), tuple(seeds)))
            report: Report = worker.connection.recv()
        except (EOFError, OSError):
            self._worker = None
            raise TrialFailure(f"worker process {self.number} {worker.ending()}") from None
        if report.reason is not None:
            raise TrialFailure(report.reason)
        errors = np.asarray(report.errors)
        variances = {"val_error": float(errors.var(ddof=1) / errors.size)} if errors.size > 1 else {}
        return Outcome(
            values={"val_error": float(errors.mean()), **self._known_of(design)},
            variances=variances,
            details={**report.details, "evaluator": self.number},
        )

    def get_ready(self) -> None:
        """Return once the process waits for a design, or has died, which the next call of `evaluate` says."""
        with contextlib.suppress(EOFError, OSError):
            self._alive().get_ready()

    def give_up(self) -> None:
        """End the process; the evaluation that is going on fails, and the next one starts another."""
        worker = self._worker
        if worker is not None:
            worker.process.kill()

    def close(self) -> None:
        """End the process, if any; no other is started."""
        with self._starting:
            self._closed = True
            if self._worker is not None:
                self._worker.end()

    def _alive(self) -> _Worker:
        with self._starting:
            if self._closed:
                raise TrialFailure(f"worker process {self.number} was closed")
            if self._worker is None:
                self._worker = _Worker(self._setup)
            return self._worker


class _Worker:
    """A process, the connection to it, and what it says on its standard error."""

    def __init__(self, setup: Setup) -> None:
        # a worker imports from where this process does, whatever its own interpreter would look at
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self.connection: Connection
        self.connection, theirs = Pipe()
        self._ending, self._ended, self._ready = threading.Lock(), False, False
        self._said = tempfile.TemporaryFile(dir=setup.folder)  # noqa: SIM115 - closed in `end`
        code = f"from engines.evaluation.worker import main; main({theirs.fileno()})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=self._said,
            pass_fds=(theirs.fileno(),),
            env={**os.environ, "PYTHONPATH": paths},
        )
        theirs.close()
        with contextlib.suppress(OSError):  # it died at once, which whoever asks it for something finds out
            self.connection.send(setup)

    def get_ready(self) -> None:
        """Return once the process waits for an order.

        Raises:
            EOFError, OSError: it died.
        """
        if not self._ready:
            said = self.connection.recv()
            assert said == READY
            self._ready = True

    def ending(self) -> str:
        """How the process ended, after its end of the connection was closed."""
        try:
            code = self.process.wait(_SECONDS_TO_DIE)
        except subprocess.TimeoutExpired:
            code = 0
        with self._ending:
            if self._ended:
                return "was closed"
            self._said.seek(0)
            lines = self._said.read().decode(errors="replace").strip().splitlines()
        self.end()
        if code < 0:
            cause = "; when memory runs out the system does that" if -code == signal.SIGKILL else ""
            return f"was killed by {signal.Signals(-code).name}{cause}"
        return f"ended with code {code}" + (f": {lines[-1]}" if lines else "")

    def end(self) -> None:
        """Kill the process and let go of what belongs to it; may be called again."""
        self.process.kill()
        self.process.wait()
        with self._ending:
            if not self._ended:
                assert self.process.stdin is not None
                self.process.stdin.close()
                self.connection.close()
                self._said.close()
            self._ended = True
