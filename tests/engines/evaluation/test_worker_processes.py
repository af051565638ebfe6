"""Worker processes: the results of one process, nothing copied, deaths that cost one trial, no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engines.evaluation.hop_store import HopStore
from engines.evaluation.local import HopStorage, LocalEvaluator
from engines.evaluation.recipe import Recipe
from engines.evaluation.shared_arrays import map_csr, save_csr, shared_csr
from engines.evaluation.worker_processes import WorkerEvaluator, WorkerProcesses
from engines.graph import Graph, Split, undirected
from engines.trial import Outcome
from search_space.architecture import Architecture
from search_space.errors import ConfigError, TrialFailure

ROOT = Path(__file__).resolve().parents[3]
RECIPE = Recipe(hidden_width=8, max_epochs=20, normalise="row")
DESIGNS = [Architecture.parse(text) for text in ("ppr0.1^3/adaptive/mlp-2/triangle^2", "triangle^1/none/mlp-1/-")]
LONG = Architecture.parse("augmented^1/none/mlp-2/-")


def graph(N: int = 80) -> Graph:
    rng = np.random.default_rng(0)
    labels = (np.arange(N) % 3).astype(np.int64)
    one, other = rng.integers(N - 1, size=(2, 10 * N))
    kept = (labels[one] == labels[other]) | (rng.random(one.size) < 0.1)
    adjacency, _, _ = undirected(one[kept], other[kept], N)
    features = (0.5 * rng.random(size=(N, 5)) + np.eye(5)[labels]).astype(np.float32)
    order = rng.permutation(N)
    return Graph(
        "communities", adjacency, features, labels, ("a", "b", "c"), Split(order[:20], order[20:50], order[50:])
    )


def evaluator(recipe: Recipe = RECIPE, dtype: str = "float32") -> LocalEvaluator:
    return LocalEvaluator(
        graph(), recipe=recipe, threads=1, hop_storage=HopStorage(dtype, HopStore.temporary()), trainings_at_once=2
    )


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerProcesses]:
    with WorkerProcesses(evaluator(), 2) as processes:
        yield processes


def test_another_normalisation_is_made_from_the_raw_features_and_refused_without_them(pool: WorkerProcesses) -> None:
    design = Architecture.parse("augmented^2/mean/mlp-1/-@features=l2")
    with pytest.raises(TrialFailure, match="normalises features by l2, but only row is at hand"):
        pool.evaluators[0].evaluate(design, [1])
    alone = LocalEvaluator(graph(), recipe=RECIPE, threads=1)
    with WorkerProcesses(evaluator(), 1, other_features=True) as processes:
        found = processes.evaluators[0].evaluate(design, [1, 2])
    assert found.details["val_errors"] == alone.evaluate(design, [1, 2]).details["val_errors"]


def test_results_are_bit_equal_to_one_process(pool: WorkerProcesses) -> None:
    alone = LocalEvaluator(graph(), recipe=RECIPE, threads=1)
    for design, worker in zip(DESIGNS, pool.evaluators, strict=True):
        expected = alone.evaluate(design, [1, 2])
        for _ in range(2):
            found = worker.evaluate(design, [1, 2])
            assert found.values["val_error"] == expected.values["val_error"]
            assert found.variances == expected.variances
            for figure in ("val_errors", "val_losses", "best_epochs", "curve"):
                assert found.details[figure] == expected.details[figure]
            assert found.values.keys() == expected.values.keys()
            assert found.details["evaluator"] == worker.number


def test_a_killed_worker_fails_its_trial_with_a_reason_and_is_replaced() -> None:
    endless = Recipe(hidden_width=8, max_epochs=10**7, patience=10**7)
    with WorkerProcesses(evaluator(endless), 1) as processes:
        (worker,) = processes.evaluators
        before = worker.process_id
        assert before is not None
        threading.Timer(1.0, os.kill, (before, signal.SIGKILL)).start()
        with pytest.raises(
            TrialFailure, match=r"^worker process 0 was killed by SIGKILL; when memory runs out the system does that$"
        ):
            worker.evaluate(LONG, [0])
        threading.Timer(1.0, lambda: os.kill(worker.process_id or 0, signal.SIGTERM)).start()
        with pytest.raises(TrialFailure, match=r"^worker process 0 was killed by SIGTERM$"):
            worker.evaluate(LONG, [0])
        assert worker.process_id != before


def test_closing_ends_processes_that_are_at_work_and_removes_the_files(tmp_path: Path) -> None:
    endless = Recipe(hidden_width=8, max_epochs=10**7, patience=10**7)
    processes = WorkerProcesses(evaluator(endless), 1, tmp_path)
    (worker,) = processes.evaluators
    reasons: list[str] = []

    def work() -> None:
        try:
            worker.evaluate(LONG, [0])
        except TrialFailure as failure:
            reasons.append(str(failure))

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.2)
    number = worker.process_id
    assert number is not None
    processes.close()
    thread.join(10)
    assert not thread.is_alive()
    assert len(reasons) == 1
    assert not Path(f"/proc/{number}").exists()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TrialFailure, match="was closed"):
        worker.evaluate(LONG, [0])


def test_a_failed_trial_has_its_own_reason() -> None:
    with WorkerProcesses(evaluator(Recipe(learning_rate=1e30)), 1) as processes:
        (worker,) = processes.evaluators
        for _ in range(2):
            with pytest.raises(TrialFailure, match=r"^training diverged"):
                worker.evaluate(Architecture.parse("augmented^1/none/mlp-3/-"), [0])


@pytest.mark.slow
def test_half_precision_reaches_the_workers() -> None:
    with WorkerProcesses(evaluator(dtype="float16"), 1) as processes:
        found = processes.evaluators[0].evaluate(DESIGNS[0], [1])
    alone = LocalEvaluator(graph(), recipe=RECIPE, threads=1, hop_storage=HopStorage("float16"))
    assert found.details["val_losses"] == alone.evaluate(DESIGNS[0], [1]).details["val_losses"]


@pytest.mark.slow
def test_each_hop_is_made_once_for_all() -> None:
    local = evaluator()
    with WorkerProcesses(local, 2) as processes:
        outcomes: list[Outcome] = []
        threads = [
            threading.Thread(target=lambda w=worker: outcomes.append(w.evaluate(DESIGNS[0], [0])))  # type: ignore[misc]
            for worker in processes.evaluators
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 2
        assert local.hop_storage.store is not None
        files = list(local.hop_storage.store.folder.rglob("hop-*"))
        assert len(files) == 3
        written = {path: path.stat().st_mtime_ns for path in files}
        local.train(DESIGNS[0], [0])
        assert local.hops.num_steps == 0, "the parent reads what its workers made"
        assert {path: path.stat().st_mtime_ns for path in files} == written


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    code = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
from test_worker_processes import LONG, Recipe, WorkerProcesses, evaluator
processes = WorkerProcesses(evaluator(Recipe(hidden_width=8, max_epochs=10**7, patience=10**7)), 1)
(worker,) = processes.evaluators
threading.Thread(target=worker.evaluate, args=(LONG, [0]), daemon=True).start()
time.sleep(1)
print(worker.process_id, flush=True)
time.sleep(60)
"""
    starter = subprocess.Popen(
        [sys.executable, "-c", code, str(Path(__file__).parent)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert starter.stdout is not None
    worker = Path("/proc", starter.stdout.readline().strip())
    assert worker.exists()
    starter.kill()
    starter.wait()
    starter.stdout.close()
    deadline = time.monotonic() + 10
    while worker.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not worker.exists()


def test_a_worker_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('no numpy today')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with (
        WorkerProcesses(evaluator(), 1) as processes,
        pytest.raises(TrialFailure, match=r"^worker process 0 ended with code 1: ImportError: no numpy today$"),
    ):
        processes.evaluators[0].evaluate(LONG, [0])


def test_an_evaluator_without_a_store_has_no_workers() -> None:
    with pytest.raises(ConfigError, match="share a hop store, got an evaluator on cpu without one"):
        WorkerProcesses(LocalEvaluator(graph(), recipe=RECIPE, threads=1), 2)


def test_a_shared_matrix_is_built_once_and_mapped(tmp_path: Path) -> None:
    built = []

    def build() -> object:
        built.append(1)
        return graph().adjacency

    first, second = (shared_csr(tmp_path / "m", build) for _ in range(2))  # type: ignore[arg-type]
    assert built == [1]
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(second, part), getattr(graph().adjacency, part))
        assert getattr(second, part).dtype == getattr(graph().adjacency, part).dtype
    save_csr(tmp_path / "n", first)
    assert (map_csr(tmp_path / "n") != graph().adjacency).nnz == 0


__all__ = ["LONG", "Recipe", "WorkerEvaluator", "WorkerProcesses", "evaluator"]
