"""Batches: each row once, blocks that a disk reads in one go, one batch that is the full batch, errors that arrive."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engines.evaluation.feeding import BLOCKS_PER_BATCH, BatchFeed, RowSource, WholeFeed, epoch_batches
from engines.evaluation.hop_files import HopFile
from engines.evaluation.recipe import Recipe
from engines.evaluation.training import Trained, train_from
from search_space.architecture import Architecture
from search_space.assembly import Network

CPU = torch.device("cpu")
N, F = 400, 5


def source(tmp_path: Path, hops: int, nodes: np.ndarray, seed: int = 0) -> RowSource:
    """Two classes that lie apart, hop features in files."""
    rng = np.random.default_rng(seed)
    labels = np.arange(N) * 2 // N  # sorted by class: an order in which plain batches see one class at a time
    kept = []
    for k in range(hops):
        values = (rng.standard_normal((N, F)) + 1.5 * labels[:, None]).astype(np.float32)
        (tmp_path / f"{seed}-{k}").write_bytes(values.tobytes())
        kept.append(HopFile(tmp_path / f"{seed}-{k}", (N, F)))
    return RowSource(kept, nodes, torch.from_numpy(labels[nodes]))


@pytest.mark.parametrize(("num_rows", "batch_rows"), [(1000, 130), (1000, 999), (7, 2), (64, 64), (1, 5), (9000, 640)])
def test_an_epoch_has_each_row_once_in_batches_of_equal_size(num_rows: int, batch_rows: int) -> None:
    batches = epoch_batches(num_rows, batch_rows, 3)
    assert sorted(np.concatenate([places for places, _ in batches]).tolist()) == list(range(num_rows))
    sizes = [places.size for places, _ in batches]
    assert max(sizes) <= batch_rows
    assert max(sizes) - min(sizes) <= 1
    for places, order in batches:
        assert order is None or sorted(order.tolist()) == list(range(places.size))


def test_a_batch_is_made_of_many_runs_of_consecutive_rows() -> None:
    block = 10
    for places, _ in epoch_batches(100_000, block * BLOCKS_PER_BATCH, 1):
        runs = 1 + np.count_nonzero(np.diff(places) != 1)
        assert BLOCKS_PER_BATCH * 0.9 <= runs <= BLOCKS_PER_BATCH + 2


def test_the_order_is_new_in_each_epoch_and_the_same_in_each_run() -> None:
    first, again, other = (epoch_batches(1000, 100, epoch)[0][0].tolist() for epoch in (1, 1, 2))
    assert first == again != other


def test_a_single_batch_is_left_in_order() -> None:
    ((places, order),) = epoch_batches(50, 50, 9)
    assert places.tolist() == list(range(50))
    assert order is None


def trained(feed: Any, message: str, recipe: Recipe) -> Trained:
    return train_from(feed, Architecture.parse(f"augmented^2/{message}/mlp-2/-"), recipe, 2, [4, 5], CPU)


@pytest.mark.parametrize("message", ["none", "mean", "concat", "weighted", "adaptive", "recursive", "jk"])
def test_one_batch_is_the_full_batch_bit_by_bit(message: str, tmp_path: Path) -> None:
    nodes = np.arange(0, N, 3)
    hops = 1 if message == "none" else 3
    train, validation = source(tmp_path, hops, nodes), source(tmp_path, hops, np.arange(1, N, 4))
    recipe = Recipe(hidden_width=8, max_epochs=24, patience=6, input_dropout=0.3, dropout=0.5)
    whole = trained(WholeFeed(train.all(), validation.all(), CPU), message, recipe)
    batch = trained(BatchFeed(train, validation, nodes.size, CPU), message, recipe)
    assert whole.curve == batch.curve
    assert whole.best_epochs.tolist() == batch.best_epochs.tolist()
    for one, other in zip(whole.network.parameters(), batch.network.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("message", ["none", "concat", "adaptive"])
def test_batches_learn_what_can_be_learned_and_the_same_in_each_run(message: str, tmp_path: Path) -> None:
    hops = 1 if message == "none" else 3
    train, validation = source(tmp_path, hops, np.arange(0, N, 2)), source(tmp_path, hops, np.arange(1, N, 2))
    recipe = Recipe(hidden_width=8, max_epochs=12, evaluate_every=1, input_dropout=0.0, dropout=0.2)
    first, second = (trained(BatchFeed(train, validation, 64, CPU), message, recipe) for _ in range(2))
    assert (first.validation_scores > 0.9).all()
    assert first.curve == second.curve
    for one, other in zip(first.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_repeat_in_batches_becomes_what_it_would_alone(tmp_path: Path) -> None:
    train, validation = source(tmp_path, 3, np.arange(0, N, 2)), source(tmp_path, 3, np.arange(1, N, 2))
    recipe = Recipe(hidden_width=8, max_epochs=6, evaluate_every=1)
    design = Architecture.parse("augmented^2/weighted/mlp-2/-")
    feed = BatchFeed(train, validation, 50, CPU)
    both, alone = (train_from(feed, design, recipe, 2, seeds, CPU) for seeds in ([8, 9], [9]))
    for one, other in zip(both.network.parameters(), alone.network.parameters(), strict=True):
        torch.testing.assert_close(one[1], other[0], rtol=1e-4, atol=1e-5)


def test_the_next_batch_is_read_while_one_is_used(tmp_path: Path) -> None:
    train = source(tmp_path, 1, np.arange(N))
    reads: list[str] = []
    second_read = threading.Event()

    class Watched:
        shape = (N, F)

        def __getitem__(self, rows: Any) -> Any:
            reads.append(threading.current_thread().name)
            if len(reads) == 2:
                second_read.set()
            return train.hops[0][rows]

    feed = BatchFeed(RowSource([Watched()], train.nodes, train.labels), train, 100, CPU)
    network = Network(Architecture.parse("augmented^2/none/mlp-1/-"), F, 2, 4, [torch.Generator()])
    with feed.open(network) as rows:
        batches = rows.batches(1)
        next(batches)
        assert second_read.wait(5), "nothing is read ahead"
        assert len(list(batches)) == 3
    assert len(reads) == 4
    assert all(name.startswith("read-ahead") for name in reads)
    assert not any(thread.name.startswith("read-ahead") for thread in threading.enumerate())


def test_an_error_while_reading_reaches_the_training(tmp_path: Path) -> None:
    train = source(tmp_path, 1, np.arange(N))
    (tmp_path / "0-0").unlink()
    with pytest.raises(FileNotFoundError):
        trained(BatchFeed(train, train, 100, CPU), "none", Recipe(hidden_width=4))


def test_validation_rows_come_in_order_in_pieces(tmp_path: Path) -> None:
    train = source(tmp_path, 1, np.arange(N))
    network = Network(Architecture.parse("augmented^2/none/mlp-1/-"), F, 2, 4, [torch.Generator()])
    with BatchFeed(train, train, 150, CPU).open(network) as rows:
        pieces = list(rows.validation())
    assert [len(piece) for piece in pieces] == [150, 150, 100]
    np.testing.assert_array_equal(torch.cat(pieces).numpy(), train.hops[0][:])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_batches_train_on_a_cuda_device(tmp_path: Path) -> None:
    train, validation = source(tmp_path, 3, np.arange(0, N, 2)), source(tmp_path, 3, np.arange(1, N, 2))
    device = torch.device("cuda")
    design = Architecture.parse("augmented^2/adaptive/mlp-2/-")
    found = train_from(BatchFeed(train, validation, 64, device), design, Recipe(max_epochs=12), 2, [0, 1], device)
    assert (found.validation_scores > 0.9).all()


def test_batches_of_all_sizes_have_no_gap() -> None:
    for num_rows, batch_rows in itertools.product(range(1, 40), range(1, 45)):
        places = np.concatenate([places for places, _ in epoch_batches(num_rows, batch_rows, 1)])
        assert sorted(places.tolist()) == list(range(num_rows))
