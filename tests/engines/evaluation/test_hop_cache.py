from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from engines.evaluation.hop_cache import HopCache
from engines.evaluation.hop_files import HEADER_BYTES
from engines.evaluation.hop_store import HopStore
from search_space.errors import ConfigError, ShapeError, StorageError, TrialFailure

ROOT = Path(__file__).resolve().parents[3]
N, F = 12, 5
HOP_BYTES = N * F * 4
PLENTY = 100 * HOP_BYTES


def matrix(seed: int) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return sparse.csr_array(((rng.random((N, N)) < 0.3) * rng.random((N, N))).astype(np.float32))


FEATURES = np.random.default_rng(9).standard_normal((N, F), dtype=np.float32)
MATRICES = {"a": matrix(0), "b": matrix(1)}


def dense_hop(key: str, restart: float, k: int) -> Any:
    current = FEATURES.astype(np.float64)
    for _ in range(k):
        current = (1 - restart) * MATRICES[key].toarray() @ current + restart * FEATURES
    return current


@pytest.mark.parametrize("budget", [0, 2 * HOP_BYTES, PLENTY])
def test_hops_are_the_dense_powers_wherever_they_are_kept(budget: int, tmp_path: Path) -> None:
    with HopCache(MATRICES, FEATURES, budget, tmp_path) as hops:
        for key, restart, k in [("a", 0.0, 3), ("a", 0.1, 4), ("b", 0.0, 1), ("a", 0.0, 5), ("a", 0.0, 2)]:
            np.testing.assert_allclose(hops.hop(key, restart, k), dense_hop(key, restart, k), rtol=1e-5, atol=1e-6)


def test_hop_0_is_the_features_for_every_chain_and_takes_no_step() -> None:
    with HopCache(MATRICES, FEATURES, PLENTY) as hops:
        assert hops.hop("a", 0.0, 0) is FEATURES
        assert hops.hop("b", 0.3, 0) is FEATURES
        assert hops.num_steps == 0


@pytest.mark.parametrize("budget", [0, PLENTY])
def test_each_hop_is_computed_once(budget: int, tmp_path: Path) -> None:
    with HopCache(MATRICES, FEATURES, budget, tmp_path) as hops:
        for k in (3, 1, 3, 5, 2):
            hops.hop("a", 0.0, k)
        assert hops.num_steps == 5
        hops.hop("a", 0.1, 2)
        assert hops.num_steps == 7


def test_a_matrix_is_built_once_on_first_use_and_shared_by_all_restarts() -> None:
    built = []

    def build(key: str) -> sparse.csr_array:
        built.append(key)
        return MATRICES[key]

    with HopCache(build, FEATURES, PLENTY) as hops:
        hops.hop("a", 0.0, 0)
        assert built == []
        hops.hop("a", 0.0, 2)
        hops.hop("a", 0.2, 2)
        assert hops.matrix("a") is MATRICES["a"]
        assert built == ["a"]


def test_files_begin_when_the_memory_budget_is_used_up(tmp_path: Path) -> None:
    with HopCache(MATRICES, FEATURES, 2 * HOP_BYTES + 1, tmp_path) as hops:
        hops.hop("a", 0.0, 2)
        assert files(tmp_path) == []
        hops.hop("b", 0.0, 2)
        assert [path.stat().st_size for path in files(tmp_path)] == [HOP_BYTES, HOP_BYTES]


def test_a_hop_in_a_file_is_mapped_not_read_into_memory(tmp_path: Path) -> None:
    with HopCache(MATRICES, FEATURES, 0, tmp_path) as hops:
        assert isinstance(hops.hop("a", 0.0, 2), np.memmap)


def test_writing_to_a_handed_out_hop_does_not_reach_the_file(tmp_path: Path) -> None:
    with HopCache(MATRICES, FEATURES, 0, tmp_path) as hops:
        hops.hop("a", 0.0, 1)[:] = 7
        np.testing.assert_allclose(hops.hop("a", 0.0, 1), dense_hop("a", 0.0, 1), rtol=1e-5, atol=1e-6)


def test_torch_takes_a_hop_from_a_file_without_a_warning(tmp_path: Path) -> None:
    with HopCache(MATRICES, FEATURES, 0, tmp_path) as hops:
        assert torch.from_numpy(hops.hop("a", 0.0, 1)).shape == (N, F)


@pytest.mark.parametrize("budget", [0, PLENTY])
def test_rows_come_in_the_order_asked_for_and_as_a_copy(budget: int, tmp_path: Path) -> None:
    with HopCache(MATRICES, FEATURES, budget, tmp_path) as hops:
        nodes = np.array([7, 0, 7], np.int64)
        rows = hops.reader("a", 0.0, 2)[nodes]
        np.testing.assert_allclose(rows, dense_hop("a", 0.0, 2)[nodes], rtol=1e-5, atol=1e-6)
        rows[:] = 7
        np.testing.assert_allclose(hops.hop("a", 0.0, 2), dense_hop("a", 0.0, 2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("budget", [0, PLENTY])
def test_rows_of_no_nodes_are_empty(budget: int, tmp_path: Path) -> None:
    with HopCache(MATRICES, FEATURES, budget, tmp_path) as hops:
        assert hops.reader("a", 0.0, 1)[np.empty(0, np.int64)].shape == (0, F)


@pytest.mark.parametrize("budget", [0, 3 * HOP_BYTES // 2, PLENTY])
@pytest.mark.parametrize("stored", [False, True])
def test_half_precision_is_off_by_what_it_states_however_deep(budget: int, stored: bool, tmp_path: Path) -> None:
    store = HopStore(tmp_path / "store", PLENTY).section("s") if stored else None
    with HopCache(MATRICES, FEATURES, PLENTY) as exact:
        for k in (2, 5, 3):  # in pieces, from files, and from an earlier run
            with HopCache(MATRICES, FEATURES, budget, tmp_path, store=store, dtype="float16") as hops:
                for deep in (1, k, 4):
                    expected, found = exact.hop("a", 0.1, deep), hops.reader("a", 0.1, deep)[:]
                    bound = np.maximum(2.0**-11 * np.abs(expected), 2.0**-39 * np.abs(expected).max(axis=0))
                    assert (np.abs(found.astype(np.float64) - expected) <= bound).all()
                    assert found.dtype == np.float32
                    np.testing.assert_array_equal(hops.hop("a", 0.1, deep), found)


def test_half_precision_takes_half_of_the_budget_and_of_the_files(tmp_path: Path) -> None:
    # in hops of float32: the running one takes 1 and the one after it another, each half 0.5
    with HopCache(MATRICES, FEATURES, 3 * HOP_BYTES, tmp_path, dtype="float16") as hops:
        hops.reader("a", 0.0, 4)
        assert {path.stat().st_size for path in files(tmp_path)} == {HOP_BYTES}, "the next float32 hop has no room"
        hops.reader("a", 0.0, 6)
        assert sorted(path.stat().st_size for path in files(tmp_path)) == [HOP_BYTES // 2, HOP_BYTES]


def test_hops_past_float32_are_refused_in_half_precision() -> None:
    with (
        HopCache(MATRICES, np.full((N, F), 3e38, np.float32), PLENTY, dtype="float16") as hops,
        pytest.raises(TrialFailure, match="hop 1 of b has values that are not finite, which float16 cannot hold"),
    ):
        hops.reader("b", 0.0, 1)


def test_a_later_run_reads_from_the_store_what_an_earlier_one_computed(tmp_path: Path) -> None:
    store = HopStore(tmp_path / "store", PLENTY)
    with HopCache(MATRICES, FEATURES, PLENTY, store=store.section("graph")) as hops:
        first = hops.hop("a", 0.1, 3).copy()
        assert hops.num_steps == 3
    with HopCache(MATRICES, FEATURES, PLENTY, store=store.section("graph")) as hops:
        np.testing.assert_array_equal(hops.hop("a", 0.1, 3), first)
        assert hops.num_steps == 0
        np.testing.assert_allclose(hops.hop("a", 0.1, 4), dense_hop("a", 0.1, 4), rtol=1e-5, atol=1e-6)
        assert hops.num_steps == 1
    with HopCache(MATRICES, FEATURES, PLENTY, store=store.section("another graph")) as hops:
        hops.hop("a", 0.1, 3)
        assert hops.num_steps == 3


def test_hops_past_the_limit_of_the_store_go_where_they_go_without_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = HopStore(tmp_path / "store", 2 * (HEADER_BYTES + HOP_BYTES))
    with HopCache(MATRICES, FEATURES, PLENTY, store=store.section("graph")) as hops:
        np.testing.assert_allclose(hops.hop("a", 0.0, 5), dense_hop("a", 0.0, 5), rtol=1e-5, atol=1e-6)
    assert len(list((tmp_path / "store").rglob("hop-*"))) == 2
    assert [record.getMessage().split(" has ")[1] for record in caplog.records] == [
        "reached its limit of 8.67e-06 GB; further hops are not kept for later runs"
    ]


def test_close_removes_the_files_but_not_what_was_handed_out(tmp_path: Path) -> None:
    hops = HopCache(MATRICES, FEATURES, 0, tmp_path)
    held = hops.hop("a", 0.0, 1)
    hops.close()
    assert list(tmp_path.iterdir()) == []
    np.testing.assert_allclose(held, dense_hop("a", 0.0, 1), rtol=1e-5, atol=1e-6)
    hops.close()


def test_a_closed_cache_starts_anew_with_the_whole_budget(tmp_path: Path) -> None:
    hops = HopCache(MATRICES, FEATURES, 2 * HOP_BYTES, tmp_path)
    for _ in range(3):
        hops.hop("a", 0.0, 2)
        assert list(tmp_path.iterdir()) == []
        hops.close()
    assert hops.num_steps == 6


def test_an_error_in_the_with_block_removes_the_files_too(tmp_path: Path) -> None:
    cache = HopCache(MATRICES, FEATURES, 0, tmp_path)
    cache.hop("a", 0.0, 1)
    with pytest.raises(KeyError), cache as hops:
        hops.hop("unknown", 0.0, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_clear_line_and_leaves_the_hops_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HopCache(MATRICES, FEATURES, 0, tmp_path) as hops:
        hops.hop("a", 0.0, 1)
        monkeypatch.setattr(os, "posix_fallocate", no_space)
        with pytest.raises(
            StorageError, match=f"{tmp_path}, which could not take {HOP_BYTES} bytes more: No space left"
        ):
            hops.hop("a", 0.0, 2)
        assert len(files(tmp_path)) == 1
        monkeypatch.undo()
        np.testing.assert_allclose(hops.hop("a", 0.0, 2), dense_hop("a", 0.0, 2), rtol=1e-5, atol=1e-6)
        assert hops.num_steps == 2


def test_a_folder_that_does_not_exist_is_one_clear_line(tmp_path: Path) -> None:
    with HopCache(MATRICES, FEATURES, 0, tmp_path / "missing") as hops, pytest.raises(StorageError, match="missing"):
        hops.hop("a", 0.0, 1)


def test_a_failed_step_uses_up_no_budget(tmp_path: Path) -> None:
    wrong = {**MATRICES, "wrong": MATRICES["a"].tocsc()}
    with HopCache(wrong, FEATURES, HOP_BYTES, tmp_path) as hops:
        for _ in range(3):
            with pytest.raises(ShapeError, match="CSR"):
                hops.hop("wrong", 0.0, 1)
        hops.hop("a", 0.0, 1)
        assert list(tmp_path.iterdir()) == []


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 0 bytes, got -1"):
        HopCache(MATRICES, FEATURES, -1)
    with pytest.raises(ShapeError, match="got float64"):
        HopCache(MATRICES, FEATURES.astype(np.float64), PLENTY)
    with pytest.raises(ShapeError, match="strides"):
        HopCache(MATRICES, FEATURES[:, :2], PLENTY)
    with pytest.raises(ConfigError, match="unknown type of hop features 'int8'; choose from: float32, float16"):
        HopCache(MATRICES, FEATURES, PLENTY, dtype="int8")
    with HopCache(MATRICES, FEATURES, PLENTY) as hops, pytest.raises(ConfigError, match="from 0, got -1"):
        hops.hop("a", 0.0, -1)


def test_peak_memory_follows_the_budget_not_the_number_of_hops(tmp_path: Path) -> None:
    # 12 hops of 20 MB with room for one: one kept, one read and one written at a time, instead of 240 MB
    code = """
import resource, sys
from pathlib import Path
import numpy as np
from scipy import sparse
from engines.evaluation.hop_cache import HopCache
from engines.evaluation.propagation import set_threads
set_threads(1)
N, F = 100_000, 50
before_each = np.roll(np.arange(N, dtype=np.int32), 1)
ring = sparse.csr_array((np.ones(N, np.float32), before_each, np.arange(N + 1, dtype=np.int32)))
with HopCache({"ring": ring}, np.ones((N, F), np.float32), 4 * N * F, Path(sys.argv[1])) as hops:
    hops.hop("ring", 0.1, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hops.hop("ring", 0.1, 12)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, hops.num_steps)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    grown_kib, num_steps = map(int, done.stdout.split())
    assert num_steps == 12
    assert grown_kib <= 2.5 * 20_000


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def no_space(handle: int, offset: int, size: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@settings(max_examples=40)
@given(
    st.integers(0, 6),
    st.sampled_from(["float32", "float16"]),
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0.0, 0.2]), st.integers(0, 4)), max_size=10),
)
def test_hops_are_the_same_whatever_had_to_go_to_the_disk(
    room: int, dtype: str, asked: list[tuple[str, float, int]]
) -> None:
    """Against a cache with room for all; how many hops lie in memory never passes the budget."""
    with (
        HopCache(MATRICES, FEATURES, room * HOP_BYTES, dtype=dtype) as tight,
        HopCache(MATRICES, FEATURES, PLENTY, dtype=dtype) as roomy,
    ):
        for key, restart, k in asked:
            np.testing.assert_array_equal(tight.hop(key, restart, k), roomy.hop(key, restart, k))
            assert tight._used_bytes <= room * HOP_BYTES
        deepest: dict[tuple[str, float], int] = {}
        for key, restart, k in asked:
            deepest[key, restart] = max(deepest.get((key, restart), 0), k)
        assert tight.num_steps == sum(deepest.values())
