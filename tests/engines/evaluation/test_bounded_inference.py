"""Inference within a budget: the bits of inference without one, files that go, a peak that was measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from engines.evaluation import bounded_inference
from engines.evaluation.bounded_inference import classify_within
from engines.evaluation.inference import classify
from engines.evaluation.neighbourhood import classify_nodes
from engines.graph import undirected
from search_space.architecture import Architecture
from search_space.assembly import Network
from search_space.errors import ConfigError, StorageError

ROOT = Path(__file__).resolve().parents[3]
N, F, C = 3000, 7, 4
DESIGNS = [
    "-/-/mlp-2/-",
    "-/-/mlp-1/ppr0.2^3",
    "ppr0.1^3/none/mlp-2/augmented^1",
    "augmented^2/concat/mlp-2/triangle^2",
    "triangle^3/adaptive/mlp-1/-",
    "augmented^4/mean/mlp-2/ppr0.3^1",
]
FEATURES = np.random.default_rng(0).standard_normal((N, F), dtype=np.float32)


def ring() -> sparse.csr_array:
    """A ring with chords; the last node is isolated."""
    nodes = np.arange(N - 1)
    adjacency, _, _ = undirected(np.tile(nodes, 2), np.concatenate([(nodes + 1) % (N - 1), (nodes + 2) % (N - 1)]), N)
    return adjacency


ADJACENCY = ring()


def network_of(design: Architecture) -> Network:
    return Network(design, F, C, 6, [torch.Generator().manual_seed(seed) for seed in (0, 1)]).eval()


@pytest.mark.parametrize("text", DESIGNS)
@pytest.mark.parametrize("budget", [1, 800_000, 1 << 30])
def test_any_budget_gives_the_same_bits(text: str, budget: int, tmp_path: Path) -> None:
    design = Architecture.parse(text)
    network = network_of(design)
    expected = classify(design, network, ADJACENCY, FEATURES)
    found = classify_within(
        design, network, ADJACENCY, F, lambda rows: FEATURES[rows], budget, at_any_cost=True, folder=tmp_path
    )
    np.testing.assert_array_equal(found, expected)
    assert list(tmp_path.iterdir()) == []


def test_hops_that_are_not_read_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[list[str]] = []
    design = Architecture.parse("ppr0.1^4/none/mlp-1/-")

    def look(network: Network, hops: object, **further: object) -> np.ndarray:
        kept.append(sorted(path.name for path in tmp_path.rglob("*") if path.is_file()))
        return np.ones((1, N, C), np.float32)

    monkeypatch.setattr(bounded_inference, "transform", look)
    classify_within(
        design, network_of(design), ADJACENCY, F, lambda rows: FEATURES[rows], 1, at_any_cost=True, folder=tmp_path
    )
    assert kept == [[f"4-{column}" for column in range(F)]]


@pytest.mark.parametrize("text", ["augmented^2/concat/mlp-2/ppr0.2^1", "ppr0.1^2/none/mlp-1/-"])
def test_some_nodes_within_a_budget_get_the_same_bits(text: str) -> None:
    design = Architecture.parse(text)
    network, nodes = network_of(design), np.asarray([5, 2000, 5, N - 1])
    whole, within = (
        classify_nodes(design, network, ADJACENCY, lambda rows: FEATURES[rows], nodes, F, budget)
        for budget in (None, 100)
    )
    np.testing.assert_array_equal(within, whole)


def test_a_budget_that_cannot_be_kept_is_refused_with_both_figures() -> None:
    design = Architecture.parse("augmented^2/concat/mlp-2/-")
    with pytest.raises(
        ConfigError,
        match=r"classifying 3000 nodes with augmented\^2/concat/mlp-2/- takes \d\.\d MB at least, but .* 0\.1",
    ):
        classify_within(design, network_of(design), ADJACENCY, F, lambda rows: FEATURES[rows], 100_000)


def test_a_disk_that_is_full_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(handle: int, offset: int, size: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "posix_fallocate", no_space)
    design = Architecture.parse("augmented^2/concat/mlp-2/-")
    with pytest.raises(StorageError, match=f"{tmp_path}.*could not take them: No space left on device; raise the"):
        classify_within(
            design, network_of(design), ADJACENCY, F, lambda rows: FEATURES[rows], 1, at_any_cost=True, folder=tmp_path
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("text", ["augmented^6/concat/mlp-2/augmented^1", "ppr0.1^6/none/mlp-2/-"])
def test_the_measured_peak_stays_within_the_budget(text: str, tmp_path: Path) -> None:
    # 100,000 nodes with 80 features: 32 MB a hop, seven of them, and a budget of 60 MB
    code = """
import ctypes, gc, sys
from pathlib import Path
import numpy as np, torch
from scipy import sparse
from engines.evaluation.bounded_inference import classify_within
from search_space.architecture import Architecture
from search_space.assembly import Network
torch.set_num_threads(1)
design, F, C = Architecture.parse(sys.argv[1]), 80, 3
network = Network(design, F, C, 16, [torch.Generator()]).eval()
def graph(N):
    columns = np.sort(np.stack([np.roll(np.arange(N, dtype=np.int32), s) for s in (1, -1)], axis=1), axis=1).ravel()
    ring = sparse.csr_array((np.ones(2 * N, np.float32), columns, np.arange(0, 2 * N + 1, 2, dtype=np.int32)))
    return ring, np.random.default_rng(0).random((N, F), dtype=np.float32)
def peak():
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
def run(ring, features, budget):
    found = classify_within(design, network, ring, F, lambda rows: features[rows], budget, folder=Path(sys.argv[2]))
    assert np.allclose(found.sum(axis=2), 1, atol=1e-5)
run(*graph(2000), 1 << 24)
large = graph(100_000)
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
Path("/proc/self/clear_refs").write_text("5")
before = peak()
run(*large, 60_000_000)
print(peak() - before)
"""
    command = [sys.executable, "-c", code, text, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 60_000_000 + 4_000_000, "4 MB for whatever else the process does"
