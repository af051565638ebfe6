"""Plans of training: full batch while rows fit, the same way for few and for many repeats, within the budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engines.evaluation.costs import Sizes
from engines.evaluation.training_memory import TrainingPlan, plan_training
from search_space.architecture import Architecture

ROOT = Path(__file__).resolve().parents[3]
SIZES = Sizes(num_nodes=100_000, num_features=100, num_classes=10, hidden_width=64, adjacency_entries=0)
DESIGN = Architecture.parse("augmented^4/concat/mlp-2/-")


def test_everything_trains_at_once_while_it_fits() -> None:
    assert plan_training(DESIGN, SIZES, 1000, 1000, 5, 1 << 30) == TrainingPlan(None, 5)


def test_repeats_that_do_not_fit_together_train_in_groups_of_the_full_batch() -> None:
    one = next(
        budget
        for budget in range(0, 1 << 30, 100_000)
        if plan_training(DESIGN, SIZES, 5000, 0, 9, budget).batch_rows is None
    )
    assert plan_training(DESIGN, SIZES, 5000, 0, 9, one).repeats_together == 1
    assert 2 <= plan_training(DESIGN, SIZES, 5000, 0, 9, 2 * one).repeats_together < 9


@pytest.mark.parametrize("budget", [1 << 20, 1 << 24, 1 << 28])
def test_few_and_many_repeats_train_in_the_same_batches(budget: int) -> None:
    plans = [plan_training(DESIGN, SIZES, 50_000, 10_000, repeats, budget) for repeats in (1, 3, 10)]
    assert len({plan.batch_rows for plan in plans}) == 1
    assert [plan.repeats_together <= repeats for plan, repeats in zip(plans, (1, 3, 10), strict=True)] == [True] * 3


def test_a_design_that_holds_more_gets_smaller_batches() -> None:
    small, large = (Architecture.parse(text) for text in ("augmented^4/none/mlp-1/-", "augmented^4/concat/mlp-4/-"))
    rows = [plan_training(design, SIZES, 90_000, 0, 3, 10 << 20).batch_rows for design in (small, large)]
    assert rows[0] is not None
    assert rows[1] is not None
    assert rows[0] > 3 * rows[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "divide"),
    [
        ("augmented^3/mean/mlp-4/-", 1),
        ("augmented^3/concat/mlp-2/-", 6),
        ("augmented^3/adaptive/mlp-2/-", 6),
        ("augmented^3/mean/mlp-4/-@norm=batch", 1),
        ("augmented^3/concat/mlp-2/-@norm=batch", 6),
    ],
)
def test_a_training_stays_within_its_budget(design: str, divide: int, tmp_path: Path) -> None:
    # divide 1: the full batch and its validation; 6: a sixth of the budget that the full batch needs, hops in files
    code = """
import ctypes, gc, sys
from pathlib import Path
import numpy as np, torch
from engines.evaluation.costs import Sizes
from engines.evaluation.feeding import BatchFeed, RowSource, WholeFeed
from engines.evaluation.hop_files import HopFile
from engines.evaluation.recipe import Recipe
from engines.evaluation.training import train_from
from engines.evaluation.training_memory import plan_training
from search_space.architecture import Architecture
torch.set_num_threads(1)
text, divide, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
design, N, F, C, S, H = Architecture.parse(text), 15_000, 80, 10, 3, 64
sizes, cpu = Sizes(N, F, C, H, 0), torch.device("cpu")
recipe = Recipe(hidden_width=H, max_epochs=1, evaluate_every=1)
rng, hops = np.random.default_rng(0), []
for k in range(4):
    (folder / str(k)).write_bytes(rng.standard_normal((N, F), dtype=np.float32).tobytes())
    hops.append(HopFile(folder / str(k), (N, F)))
labels = torch.from_numpy(rng.integers(C, size=N))
def source(first, last):
    return RowSource(hops, np.arange(first, last), labels[first:last])
n, v = 10_000, 5_000
def run(budget, n, v):
    plan = plan_training(design, sizes, n, v, S, budget)
    train, validation = source(0, n), source(N - v, N)
    if plan.batch_rows is None:
        feed = WholeFeed(train.all(), validation.all(), cpu)
    else:
        feed = BatchFeed(train, validation, plan.batch_rows, cpu)
    train_from(feed, design, recipe, C, range(plan.repeats_together), cpu)
    return plan
def peak():
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
run(1 << 20, 64, 64)
budget = 1 << 20
while True:
    plan = plan_training(design, sizes, n, v, S, budget)
    if plan.batch_rows is None and plan.repeats_together == S:
        break
    budget += 1 << 20
budget //= divide
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
Path("/proc/self/clear_refs").write_text("5")
before = peak()
plan = run(budget, n, v)
print(peak() - before, budget, plan.batch_rows)
"""
    command = [sys.executable, "-c", code, design, str(divide), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    grown, budget, batch_rows = done.stdout.split()
    assert (batch_rows == "None") == (divide == 1)
    assert int(grown) <= 1.1 * int(budget) + 8_000_000, "8 MB for whatever else the process does"
