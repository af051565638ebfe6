"""The local evaluator: one propagation for all trials, honest test labels, clear refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from engines.evaluation.hop_store import HopStore
from engines.evaluation.local import HopStorage, LocalEvaluator
from engines.evaluation.recipe import Recipe
from engines.evaluation.stage_times import StageTimes
from engines.graph import Graph, Split, undirected
from search_space.architecture import Architecture
from search_space.classics import CLASSICS
from search_space.errors import ConfigError, GraphError, TrialFailure
from search_space.space import SearchSpace

ROOT = Path(__file__).resolve().parents[3]
FAST = Recipe(hidden_width=16, max_epochs=60, patience=30, normalise="none", input_dropout=0.2, dropout=0.2)


def communities(N: int = 90, seed: int = 0) -> Graph:
    """Three communities with noisy features; the last node is isolated."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(N) % 3).astype(np.int64)
    one, other = rng.integers(N - 1, size=(2, 12 * N))
    kept = (labels[one] == labels[other]) | (rng.random(one.size) < 0.1)
    adjacency, _, _ = undirected(one[kept], other[kept], N)
    features = (0.5 * rng.normal(size=(N, 5)) + np.eye(5)[labels]).astype(np.float32)
    order = rng.permutation(N)
    split = Split(order[:15], order[15:45], order[45:])
    return Graph("communities", adjacency, features, labels, ("a", "b", "c"), split)


@pytest.fixture
def evaluator() -> LocalEvaluator:
    return LocalEvaluator(communities(), recipe=FAST, threads=1)


def test_an_outcome_has_every_objective_and_a_variance(evaluator: LocalEvaluator) -> None:
    outcome = evaluator.evaluate(Architecture.parse("augmented^2/mean/mlp-2/ppr0.1^2"), [1, 2, 3])
    assert outcome.values.keys() == {
        "val_error",
        "inference_seconds",
        "parameters",
        "macs",
        "peak_memory_bytes",
    }
    errors = np.asarray(outcome.details["val_errors"])
    assert outcome.values["val_error"] == pytest.approx(errors.mean())
    assert outcome.variances["val_error"] == pytest.approx(errors.var(ddof=1) / 3)
    assert outcome.values["val_error"] < 0.3, "neighbours of a node share its class"


def test_the_number_of_threads_does_not_change_what_repeats_become(evaluator: LocalEvaluator) -> None:
    design = Architecture.parse("augmented^2/concat/mlp-3/ppr0.1^2")
    alone = evaluator.train(design, [1, 2, 3])
    torch.set_num_threads(2)
    try:
        shared_out = evaluator.train(design, [1, 2, 3])
    finally:
        torch.set_num_threads(1)
    np.testing.assert_array_equal(shared_out.val_errors, alone.val_errors)
    assert shared_out.details["best_epochs"] == alone.details["best_epochs"]
    assert shared_out.details["num_epochs"] == alone.details["num_epochs"]


def test_another_recipe_trains_otherwise_on_the_same_hops(evaluator: LocalEvaluator) -> None:
    design = Architecture.parse("augmented^2/mean/mlp-2/-")
    evaluator.train(design, [1])
    made = evaluator.hops.num_steps
    evaluator.use_recipe(replace(FAST, max_epochs=7, evaluate_every=2))
    trained = evaluator.train(design, [1])
    assert evaluator.recipe.max_epochs == trained.details["num_epochs"] == 7
    alone = LocalEvaluator(communities(), recipe=evaluator.recipe, threads=1).train(design, [1])
    assert trained.details["curve"] == alone.details["curve"]
    assert evaluator.hops.num_steps == made
    with pytest.raises(ConfigError, match="made for normalise 'none', got 'row'"):
        evaluator.use_recipe(replace(FAST, normalise="row"))
    assert evaluator.recipe.normalise == "none"


def test_known_objectives_agree_with_the_table_of_the_space(evaluator: LocalEvaluator) -> None:
    space = SearchSpace.paper(k_pre=range(3), k_trans=[1, 2], k_post=[0, 2])
    table = evaluator.known(space)
    for row in (0, 7, len(space) - 1):
        single = evaluator.known_of(space.design(row))
        assert {name: values[row] for name, values in table.items()} == pytest.approx(single)


def test_the_same_seeds_give_bit_equal_errors(evaluator: LocalEvaluator) -> None:
    design = CLASSICS["PaSca-V3"]
    again = LocalEvaluator(communities(), recipe=FAST, threads=1)
    assert evaluator.train(design, [4, 5]).val_errors.tolist() == again.train(design, [4, 5]).val_errors.tolist()


def test_every_hop_is_propagated_once_for_all_trials(evaluator: LocalEvaluator) -> None:
    for text in ("augmented^3/none/mlp-1/-", "augmented^2/mean/mlp-1/-", "augmented^5/concat/mlp-1/-"):
        evaluator.train(Architecture.parse(text), [0])
    assert evaluator.hops.num_steps == 5
    evaluator.train(Architecture.parse("ppr0.1^2/max/mlp-2/augmented^4"), [0])
    assert evaluator.hops.num_steps == 7, "another operator propagates anew; post-processing is no hop feature"


def test_validation_error_is_measured_after_post_processing(evaluator: LocalEvaluator) -> None:
    trained = evaluator.train(Architecture.parse("-/-/mlp-2/ppr0.1^5"), [0, 1])
    nodes = evaluator.graph.split.validation
    predicted = evaluator.probabilities(trained)[:, nodes].argmax(axis=2)
    errors = (predicted != evaluator.graph.labels[nodes]).mean(axis=1)
    np.testing.assert_allclose(trained.val_errors, errors)
    before = 1.0 - trained.trained.validation_scores
    assert np.abs(trained.val_errors - before).max() > 0.01, "the transform's own output scores differently"


def test_test_labels_do_not_reach_an_evaluation() -> None:
    graph = communities()
    labels = graph.labels.copy()
    labels[graph.split.test] = (labels[graph.split.test] + 1) % 3
    spoiled = replace(graph, labels=labels)
    design = Architecture.parse("augmented^2/adaptive/mlp-2/ppr0.2^3")
    one, other = (LocalEvaluator(g, recipe=FAST, threads=1) for g in (graph, spoiled))
    trained, same = one.train(design, [0, 1]), other.train(design, [0, 1])
    np.testing.assert_array_equal(trained.val_errors, same.val_errors)
    assert one.test_scores(trained).mean() > 0.7 > other.test_scores(same).mean()


def test_an_unlabelled_node_is_predicted(evaluator: LocalEvaluator) -> None:
    graph = communities()
    labels = graph.labels.copy()
    labels[graph.split.test[:10]] = -1
    split = Split(graph.split.train, graph.split.validation, graph.split.test[10:])
    partly = LocalEvaluator(replace(graph, labels=labels, split=split), recipe=FAST, threads=1)
    probabilities = partly.probabilities(partly.train(CLASSICS["SGC"], [0]))
    assert probabilities.shape == (1, 90, 3)
    np.testing.assert_allclose(probabilities.sum(axis=2), 1.0, rtol=1e-5)


def test_renumbered_nodes_give_renumbered_results() -> None:
    graph = communities()
    new_of_old = np.random.default_rng(5).permutation(graph.num_nodes)
    old_of_new = np.argsort(new_of_old)
    moved = replace(
        graph,
        adjacency=sparse.csr_array(graph.adjacency[old_of_new][:, old_of_new].sorted_indices()),
        features=graph.features[old_of_new],
        labels=graph.labels[old_of_new],
        split=Split(*(new_of_old[part] for part in (graph.split.train, graph.split.validation, graph.split.test))),
    )
    recipe = replace(FAST, input_dropout=0.0, dropout=0.0)  # masks follow the row, and rows are ordered by number
    one, other = (LocalEvaluator(g, recipe=recipe, threads=1) for g in (graph, moved))
    np.testing.assert_allclose(
        other.hops.hop("augmented", 0.1, 3)[new_of_old], one.hops.hop("augmented", 0.1, 3), rtol=1e-5, atol=1e-6
    )
    for name in ("SGC", "S2GC"):
        a, b = one.train(CLASSICS[name], [0]), other.train(CLASSICS[name], [0])
        np.testing.assert_allclose(a.val_errors, b.val_errors)


def test_memory_that_runs_out_is_a_failed_trial_with_a_reason(
    evaluator: LocalEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> object:
        raise MemoryError("Unable to allocate 9.9 TiB")

    monkeypatch.setattr(evaluator.hops, "reader", full)
    with pytest.raises(TrialFailure, match=r"out of memory: Unable to allocate 9.9 TiB"):
        evaluator.evaluate(CLASSICS["SGC"], [0])


def test_features_beyond_the_budget_are_refused_with_both_figures() -> None:
    with pytest.raises(
        ConfigError, match=r"0\.002 MB per hop \(90 nodes x 5 features\).*budget is 0\.005 MB; raise it"
    ):
        LocalEvaluator(communities(), recipe=FAST, threads=1, memory_bytes=5000)


@pytest.mark.parametrize(
    ("device", "message"),
    [("gpu7", "unknown device 'gpu7'"), ("meta", "device 'meta' is not supported; choose from: cpu, cuda")],
)
def test_a_device_that_does_not_exist_is_refused(device: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LocalEvaluator(communities(), recipe=FAST, threads=1, device=device)


def test_test_scores_need_test_nodes() -> None:
    graph = communities()
    without = graph.with_split(Split(graph.split.train, graph.split.validation, np.asarray([], dtype=np.int64)))
    evaluator = LocalEvaluator(without, recipe=FAST, threads=1)
    with pytest.raises(GraphError, match="the test part of split 'given' of communities is empty"):
        evaluator.test_scores(evaluator.train(CLASSICS["SGC"], [0]))


def test_stage_times_given_are_used_as_they_are(evaluator: LocalEvaluator) -> None:
    design = CLASSICS["SGC"]
    evaluator.known_of(design)
    slower = StageTimes(
        evaluator.stage_times.key,
        {stage: 2 * seconds for stage, seconds in evaluator.stage_times.seconds.items()},
        evaluator.stage_times.entries,
    )
    again = LocalEvaluator(communities(), recipe=FAST, threads=1, stage_times=slower)
    assert again.known_of(design)["inference_seconds"] == pytest.approx(
        2 * evaluator.known_of(design)["inference_seconds"]
    )


def test_out_of_memory_is_not_the_only_failure_reported(evaluator: LocalEvaluator) -> None:
    diverging = LocalEvaluator(communities(), recipe=replace(FAST, learning_rate=1e30), threads=1)
    with pytest.raises(TrialFailure, match="training diverged"):
        diverging.evaluate(Architecture.parse("augmented^2/none/mlp-3/-"), [0])


def test_a_later_evaluator_finds_the_hops_of_an_earlier_one_and_scores_alike(tmp_path: Path) -> None:
    storage = HopStorage(store=HopStore(tmp_path, 1 << 30))
    design = Architecture.parse("ppr0.1^4/adaptive/mlp-2/augmented^2")
    found = []
    for steps in (4, 0):
        evaluator = LocalEvaluator(communities(), recipe=FAST, threads=1, hop_storage=storage)
        found.append(evaluator.train(design, [0, 1]).val_errors)
        assert evaluator.hops.num_steps == steps
        evaluator.close()
    plain = LocalEvaluator(communities(), recipe=FAST, threads=1).train(design, [0, 1]).val_errors
    np.testing.assert_array_equal(found, [plain, plain])
    # other features are other hops
    other = LocalEvaluator(communities(), recipe=replace(FAST, normalise="l2"), threads=1, hop_storage=storage)
    other.train(design, [0])
    assert other.hops.num_steps == 4


def test_half_precision_scores_almost_alike() -> None:
    design = Architecture.parse("augmented^4/concat/mlp-2/-")
    exact, half = (
        LocalEvaluator(communities(), recipe=FAST, threads=1, hop_storage=HopStorage(dtype)).train(design, [0, 1, 2])
        for dtype in ("float32", "float16")
    )
    np.testing.assert_allclose(half.val_errors, exact.val_errors, atol=0.07)  # two of the 30 validation nodes
    np.testing.assert_allclose(half.trained.validation_losses, exact.trained.validation_losses, rtol=0.1)


def test_rows_that_do_not_fit_are_trained_on_in_batches_which_the_record_says() -> None:
    graph = communities(N=6000)
    labelled = np.arange(6000)
    graph = graph.with_split(Split(labelled[:5000], labelled[5000:5500], labelled[5500:]))
    design = Architecture.parse("augmented^3/concat/mlp-2/-")
    recipe = replace(FAST, max_epochs=8)
    one, other = (
        LocalEvaluator(graph, recipe=recipe, threads=1, memory_bytes=size).train(design, [0, 1, 2, 3, 4])
        for size in (1_000_000, 1 << 30)
    )
    assert 64 <= one.details["batch_rows"] < 2000
    assert "batch_rows" not in other.details
    assert one.val_errors.shape == (5,)
    assert (one.val_errors < 0.2).all()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["private", "stored"])
def test_peak_memory_follows_the_budget_whatever_hops_and_rows_take(where: str, tmp_path: Path) -> None:
    # hops ten times the budget, and labelled rows that take three times it when all are held
    code = """
import ctypes, gc, sys
from pathlib import Path
import numpy as np
from scipy import sparse
from engines.evaluation.hop_store import HopStore
from engines.evaluation.local import HopStorage, LocalEvaluator
from engines.evaluation.recipe import Recipe
from engines.graph import Graph, Split
from search_space.architecture import Architecture
stored, folder = sys.argv[1] == "stored", Path(sys.argv[2])
def evaluator(N, F, budget):
    before_each = np.stack([np.roll(np.arange(N), s) for s in (1, -1)], axis=1)
    columns, starts = np.sort(before_each, axis=1).ravel(), np.arange(0, 2 * N + 1, 2)
    ring = sparse.csr_array((np.ones(2 * N, np.float32), columns, starts))
    labels = np.arange(N) % 2
    features = np.random.default_rng(0).random((N, F), dtype=np.float32)
    third = N // 3
    split = Split(np.arange(third), np.arange(third, 2 * third), np.arange(2 * third, N))
    graph = Graph("ring", ring, features, labels, ("a", "b"), split)
    recipe = Recipe(hidden_width=16, max_epochs=1, evaluate_every=1)
    storage = HopStorage(store=HopStore(folder, 10**10)) if stored else None
    return LocalEvaluator(graph, recipe=recipe, threads=1, memory_bytes=budget, hop_storage=storage)
def peak():
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
design = Architecture.parse("ppr0.1^40/mean/mlp-2/-")
evaluator(300, 50, 1 << 20).train(design, [0])
N, F = 40_000, 50
budget = 4 * N * F * 4
large = evaluator(N, F, budget)
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
Path("/proc/self/clear_refs").write_text("5")
before = peak() - N * F * 4
trained = large.train(design, [0])
print((peak() - before) / budget, large.hops.num_steps * N * F * 4 / budget, trained.details["batch_rows"])
"""
    command = [sys.executable, "-c", code, where, str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr
    grown, hops, batch_rows = map(float, done.stdout.split())
    assert hops == 10.0
    assert batch_rows < 10_000
    assert grown <= 1.3, "of the budget; the features are counted, matrix and process are not"
