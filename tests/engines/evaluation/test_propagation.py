from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from engines.evaluation import propagation
from engines.evaluation.propagation import (
    device_matrix,
    propagate,
    propagate_step,
    propagate_step_reference,
    set_threads,
)
from search_space.errors import ConfigError, ShapeError

ROOT = Path(__file__).resolve().parents[3]
# Row 0 gathers twice its own row; row 1 half of row 0 and all of row 2; row 2 nothing at all.
MATRIX = sparse.csr_array(np.array([[2.0, 0, 0], [0.5, 0, 1.0], [0, 0, 0]], np.float32))
ROWS = np.array([[1.0, 10], [3, 30], [5, 50]], np.float32)
CUDA = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"))


def skewed(N: int, seed: int = 0) -> sparse.csr_array:
    """A matrix whose first row gathers from every node and whose last quarter gathers from none."""
    rng = np.random.default_rng(seed)
    dense = (rng.random((N, N)) < 0.05) * rng.standard_normal((N, N))
    dense[0] = 1.0
    dense[3 * N // 4 :] = 0.0
    return sparse.csr_array(dense.astype(np.float32))


def rows(N: int, F: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).standard_normal((N, F), dtype=np.float32)


def dense_step(matrix: Any, x: Any, restart: float, start: Any) -> Any:
    """The same sum, dense and in float64."""
    return (1 - restart) * matrix.toarray().astype(np.float64) @ x.astype(np.float64) + restart * start


def test_a_step_worked_by_hand() -> None:
    np.testing.assert_array_equal(propagate_step(MATRIX, ROWS), [[2, 20], [5.5, 55], [0, 0]])


def test_a_step_with_restart_worked_by_hand() -> None:
    start = np.array([[4.0, 0], [0, 8], [12, -4]], np.float32)
    result = propagate_step(MATRIX, ROWS, restart=0.25, start=start)
    np.testing.assert_allclose(result, [[2.5, 15], [4.125, 43.25], [3, -1]], rtol=1e-6)


@given(
    N=st.integers(1, 30),
    F=st.integers(0, 40),
    density=st.floats(0, 1),
    restart=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    index=st.sampled_from([np.int32, np.int64]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60)
def test_a_step_is_the_dense_sum(N: int, F: int, density: float, restart: float, index: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = ((rng.random((N, N)) < density) * rng.standard_normal((N, N))).astype(np.float32)
    matrix = sparse.csr_array(dense)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    x, start = rows(N, F, seed + 1), rows(N, F, seed + 2)
    expected = dense_step(matrix, x, restart, start)
    np.testing.assert_allclose(propagate_step(matrix, x, restart=restart, start=start), expected, atol=2e-5)
    np.testing.assert_allclose(propagate_step_reference(matrix, x, restart=restart, start=start), expected, atol=2e-5)


@pytest.mark.parametrize("F", [1, 3, 4, 31, 32, 33, 129, 500])
def test_every_width_agrees_with_the_dense_sum(F: int) -> None:
    matrix, x = skewed(120), rows(120, F)
    np.testing.assert_allclose(propagate_step(matrix, x), dense_step(matrix, x, 0.0, x), atol=1e-4)


def test_without_restart_the_start_is_not_read() -> None:
    start = np.full_like(ROWS, np.nan)
    np.testing.assert_array_equal(propagate_step(MATRIX, ROWS, restart=0.0, start=start), propagate_step(MATRIX, ROWS))


def test_the_inputs_are_not_modified() -> None:
    matrix, x, start = skewed(50), rows(50, 9), rows(50, 9, 2)
    before = matrix.data.copy(), x.copy(), start.copy()
    propagate_step(matrix, x, restart=0.3, start=start)
    for array, copy in zip((matrix.data, x, start), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_out_is_overwritten_whole_and_returned() -> None:
    out = np.full_like(ROWS, np.nan)
    assert propagate_step(MATRIX, ROWS, out=out) is out
    np.testing.assert_array_equal(out, [[2, 20], [5.5, 55], [0, 0]])


def test_out_may_be_the_start_itself() -> None:
    matrix, x, start = skewed(50), rows(50, 9), rows(50, 9, 2)
    expected = propagate_step(matrix, x, restart=0.3, start=start)
    np.testing.assert_array_equal(propagate_step(matrix, x, restart=0.3, start=start, out=start), expected)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_the_result_does_not_depend_on_the_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagation, "SERIAL_MULTIPLIES", 0)
    matrix, x = skewed(300), rows(300, 20)
    one = propagate_step(matrix, x, restart=0.2, start=x, threads=1)
    np.testing.assert_array_equal(propagate_step(matrix, x, restart=0.2, start=x, threads=threads), one)


def test_steps_may_run_in_several_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagation, "SERIAL_MULTIPLIES", 0)
    matrix, x = skewed(300), rows(300, 20)
    expected = propagate_step(matrix, x, threads=1)
    results: list[Any] = []
    callers = [threading.Thread(target=lambda: results.append(propagate_step(matrix, x, threads=2))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(results) == 4
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_an_error_in_another_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    from engines.evaluation import propagation_kernel

    caller = threading.get_ident()

    def loop(*arguments: Any) -> None:
        if threading.get_ident() == caller:
            helper_failed.wait(10)
        else:
            helper_failed.set()
            raise MemoryError

    helper_failed = threading.Event()
    monkeypatch.setattr(propagation_kernel, "compiled_loop", lambda index_type: loop)
    monkeypatch.setattr(propagation, "SERIAL_MULTIPLIES", 0)
    with pytest.raises(MemoryError):
        propagate_step(skewed(300), rows(300, 4), threads=2)


def test_chunks_cover_every_row_once_and_split_the_work_evenly() -> None:
    entries = np.random.default_rng(0).pareto(1.5, 5000).astype(np.int64)
    entries[1000:2000] = 0
    indptr = np.concatenate(([0], np.cumsum(entries)))
    chunks = propagation._balanced_chunks(indptr, 16)
    assert [row for chunk in chunks for row in range(*chunk)] == list(range(5000))
    work = [indptr[last] - indptr[first] + last - first for first, last in chunks]
    assert max(work) <= (entries.sum() + 5000) / 16 + entries.max() + 1


def test_one_hub_with_all_the_work_leaves_no_chunk_empty() -> None:
    chunks = propagation._balanced_chunks(np.array([0, 0, 1_000_000, 1_000_000]), 16)
    assert all(first < last for first, last in chunks)
    assert [row for chunk in chunks for row in range(*chunk)] == [0, 1, 2]


def test_memory_mapped_and_read_only_rows_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ROWS)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(propagate_step(MATRIX, mapped), propagate_step(MATRIX, ROWS))


def test_propagate_keeps_every_hop_and_restarts_to_the_features() -> None:
    hops = propagate(MATRIX, ROWS, 2, restart=0.5)
    assert len(hops) == 3
    assert hops[0] is ROWS
    first = dense_step(MATRIX, ROWS, 0.5, ROWS)
    np.testing.assert_allclose(hops[1], first, rtol=1e-6)
    np.testing.assert_allclose(hops[2], dense_step(MATRIX, first, 0.5, ROWS), rtol=1e-6)


def test_some_rows_of_a_matrix_give_those_rows_of_the_product() -> None:
    matrix, x, start = skewed(80), rows(80, 17), rows(30, 17, 2)
    part = propagate_step(matrix[10:40], x, restart=0.3, start=start)
    np.testing.assert_allclose(part, dense_step(matrix[10:40], x, 0.3, start), atol=1e-4)


def test_zero_hops_are_the_features() -> None:
    assert propagate(MATRIX, ROWS, 0) == [ROWS]


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("restart", [0.0, 0.3])
def test_tensors_give_what_arrays_give(device: str, restart: float) -> None:
    matrix, x, start = skewed(80), rows(80, 17), rows(80, 17, 2)
    on_device = propagate_step(
        device_matrix(matrix, device),
        torch.from_numpy(x).to(device),
        restart=restart,
        start=torch.from_numpy(start).to(device),
    )
    assert on_device.device.type == device
    expected = dense_step(matrix, x, restart, start)
    np.testing.assert_allclose(on_device.cpu().numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_tensors_are_written_into_out(device: str) -> None:
    x = torch.from_numpy(ROWS).to(device)
    out = torch.full_like(x, float("nan"))
    assert propagate_step(device_matrix(MATRIX, device), x, restart=0.5, start=x, out=out) is out
    np.testing.assert_allclose(out.cpu().numpy(), dense_step(MATRIX, ROWS, 0.5, ROWS), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": ROWS[:2]}, r"\(3, 3\) and \(2, 2\)"),
        ({"x": ROWS[:, 0]}, r"\(3, 3\) and \(3,\)"),
        ({"x": ROWS.astype(np.float64)}, "`x` .* is a float32 array, got float64"),
        ({"x": np.asfortranarray(ROWS)}, "`x` .* is C-contiguous"),
        ({"x": torch.from_numpy(ROWS)}, "got csr_array and Tensor"),
        ({"matrix": MATRIX.tocsc()}, "is CSR of float32, got csc"),
        ({"matrix": MATRIX.astype(np.float64)}, "is CSR of float32, got csr of float64"),
        ({"restart": 0.5}, "needs `start`, got None"),
        ({"restart": 0.5, "start": ROWS[:, :1].copy()}, r"`start` .*\(3, 2\), got \(3, 1\)"),
        ({"out": np.empty((3, 3), np.float32)}, r"`out` .*\(3, 2\), got \(3, 3\)"),
        ({"out": ROWS}, "`out` .* shares memory with `x`"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        propagate_step(**{"matrix": MATRIX, "x": ROWS, **arguments})


@pytest.mark.parametrize("restart", [-0.1, 1.1, float("nan")])
def test_a_restart_outside_0_to_1_is_refused(restart: float) -> None:
    with pytest.raises(ConfigError, match=r"lies in 0\.\.1"):
        propagate_step(MATRIX, ROWS, restart=restart, start=ROWS)


def test_no_threads_and_negative_hops_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        propagate_step(MATRIX, ROWS, threads=0)
    with pytest.raises(ConfigError, match="at least 1, got -2"):
        set_threads(-2)
    with pytest.raises(ConfigError, match="at least 0, got -1"):
        propagate(MATRIX, ROWS, -1)


def test_set_threads_holds_for_later_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagation, "_num_threads", None)
    set_threads(3)
    assert propagation.num_threads() == 3


def test_a_second_start_does_not_compile() -> None:
    propagate_step(MATRIX, ROWS)
    code = (
        "import sys; from engines.evaluation.propagation_kernel import compiled_loop\n"
        "loop = compiled_loop(sys.argv[1]); print(sum(loop.stats.cache_hits.values()), *loop.stats.cache_misses)"
    )
    command = [sys.executable, "-c", code, MATRIX.indices.dtype.name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["1"]


def test_importing_propagation_loads_neither_numba_nor_torch() -> None:
    code = "import sys, engines.evaluation.propagation; print(*{'numba', 'torch'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []
