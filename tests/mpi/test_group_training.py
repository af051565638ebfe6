"""Training on several ranks: under bsp step by step what one process does, whatever the number of ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from engines.evaluation.admm import AdmmSettings, Consensus, train_by_admm
from engines.evaluation.clocks import Consistency
from engines.evaluation.communicator import Communicator
from engines.evaluation.feeding import Rows
from engines.evaluation.group_training import Batches, OwnRows, train_in_group
from engines.evaluation.parameter_server import ParameterServer, ServerSettings
from engines.evaluation.recipe import Recipe
from engines.evaluation.training import Trained, train
from search_space.architecture import Architecture
from search_space.errors import ConfigError, TrialFailure

torch.set_num_threads(1)
SEEDS = (3, 4)
CPU = torch.device("cpu")


def rows(n: int, seed: int) -> Rows:
    """Rows of three classes that differ in their mean, four hops of 12 features."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    means = np.random.default_rng(9).standard_normal((3, 12))
    hops = np.stack([means[labels] + rng.standard_normal((n, 12)) for _ in range(4)]) * 0.5
    return Rows(torch.from_numpy(hops.astype(np.float32)), torch.from_numpy(labels))


TRAIN, VALIDATION = rows(41, 0), rows(60, 1)


def own(part: Rows, ranks: Communicator) -> OwnRows:
    """Uneven shares: rank r has the rows whose number is r modulo P, the last rank none of a few."""
    places = torch.arange(part.labels.numel())
    places = places[places % ranks.size == ranks.rank]
    return OwnRows(part.hops[:, places], places, part.labels)


def flat(trained: Trained) -> np.ndarray:
    return torch.cat([p.detach().reshape(-1) for p in trained.network.parameters()]).numpy()


def trained_together(
    ranks: Communicator, text: str, recipe: Recipe, settings: ServerSettings, batch_rows: int | None = None
) -> Trained:
    design = Architecture.parse(text)
    return train_in_group(
        ranks, design, recipe, own(TRAIN, ranks), own(VALIDATION, ranks), 3, SEEDS, settings, batch_rows
    )


@pytest.mark.parametrize(
    ("text", "class_weight", "metric"),
    [
        ("augmented^3/concat/mlp-2/-", "balanced", "accuracy"),
        ("ppr0.1^3/adaptive/mlp-3/-", "none", "macro-f1"),
        ("augmented^3/weighted/mlp-1/-", "none", "roc-auc"),
    ],
)
def test_bulk_synchronous_training_equals_one_process(
    ranks: Communicator, text: str, class_weight: str, metric: str
) -> None:
    recipe = Recipe(hidden_width=16, max_epochs=12, class_weight=class_weight, metric=metric)
    alone = train(Architecture.parse(text), recipe, TRAIN, VALIDATION, 3, SEEDS, CPU)
    settings = ServerSettings(Consistency("bsp"), num_servers=min(2, ranks.size))
    together = trained_together(ranks, text, recipe, settings)
    np.testing.assert_allclose(flat(together), flat(alone), atol=2e-6)
    np.testing.assert_array_equal(together.best_epochs, alone.best_epochs)
    np.testing.assert_allclose(together.validation_scores, alone.validation_scores, atol=1e-12)
    np.testing.assert_allclose([row[1] for row in together.curve], [row[1] for row in alone.curve], rtol=1e-5)


def test_mini_batches_are_the_same_rows_at_any_number_of_ranks(ranks: Communicator) -> None:
    # 41 rows in batches of 2: many batches in which a rank has no row at all
    recipe = Recipe(hidden_width=8, max_epochs=2)
    together = trained_together(ranks, "augmented^3/mean/mlp-2/-", recipe, ServerSettings(), batch_rows=2)
    alone_in_a_group = ranks.split(ranks.rank)
    assert alone_in_a_group is not None
    alone = trained_together(alone_in_a_group, "augmented^3/mean/mlp-2/-", recipe, ServerSettings(), batch_rows=2)
    np.testing.assert_allclose(flat(together), flat(alone), atol=1e-6)


@pytest.mark.parametrize("consistency", [Consistency("ssp", 2), Consistency("asp")])
@pytest.mark.parametrize("compression", ["none", "16bit"])
def test_every_rank_ends_with_the_same_weights(ranks: Communicator, consistency: Consistency, compression: str) -> None:
    settings = ServerSettings(consistency, 1, compression)
    trained = trained_together(ranks, "augmented^3/mean/mlp-2/-", Recipe(hidden_width=8, max_epochs=20), settings)
    for other in ranks.gather(flat(trained)):
        np.testing.assert_array_equal(other, flat(trained))
    assert trained.validation_scores.min() > 0.5  # a third by chance


def test_a_loss_that_is_not_finite_fails_the_trial_on_every_rank(ranks: Communicator) -> None:
    recipe = Recipe(hidden_width=8, max_epochs=8, learning_rate=1e30)
    with pytest.raises(TrialFailure, match="the loss is not finite"):
        trained_together(ranks, "augmented^3/mean/mlp-3/-", recipe, ServerSettings())
    trained_together(ranks, "augmented^3/mean/mlp-3/-", Recipe(hidden_width=8, max_epochs=4), ServerSettings())


def test_a_worker_sees_its_own_push_at_once(ranks: Communicator) -> None:
    start, decay = np.zeros(5, np.float32), np.zeros(5, np.float32)
    settings = ServerSettings(Consistency("asp"), num_servers=ranks.size)
    server = ParameterServer(ranks, start, learning_rate=0.1, decay=decay, settings=settings)
    seen = [server.pull(0)]
    for clock in range(3):
        server.push(clock, 1.0 / ranks.size, np.ones(5, np.float32))
        seen.append(server.pull(clock + 1))
    server.close()
    for before, after in itertools.pairwise(seen):
        assert (after < before).all()


def test_16_bits_halve_what_is_pushed(ranks: Communicator) -> None:
    if ranks.size == 1:
        pytest.skip("needs two ranks")
    sent = {}
    for compression in ("none", "16bit"):
        settings = ServerSettings(Consistency("bsp"), 1, compression)
        start = np.zeros(4000, np.float32)
        server = ParameterServer(ranks, start, learning_rate=0.1, decay=start, settings=settings)
        before = ranks.traffic.copy()
        for clock in range(4):
            server.push(clock, 1.0 / ranks.size, np.ones(4000, np.float32))
        sent[compression] = ranks.traffic.since(before).sent_bytes
        server.close()
    if ranks.rank > 0:
        assert sent["16bit"] == pytest.approx(sent["none"] / 2, rel=0.01)


def test_more_servers_than_ranks_are_refused(ranks: Communicator) -> None:
    one = np.zeros(1, np.float32)
    with pytest.raises(ConfigError, match=f"got {ranks.size + 1} servers for {ranks.size} ranks"):
        ParameterServer(ranks, one, learning_rate=0.1, decay=one, settings=ServerSettings(num_servers=ranks.size + 1))


def test_batches_cover_every_row_once() -> None:
    batches = Batches(41, 7, seed=0)
    first, second = batches.of_epoch(1), batches.of_epoch(2)
    assert [batch.numel() for batch in first] == [7, 7, 7, 7, 7, 6]
    assert sorted(torch.cat(first).tolist()) == list(range(41))
    assert first[0].tolist() != second[0].tolist()


def test_admm_agrees_on_a_least_squares_problem(ranks: Communicator) -> None:
    # f_r(x) = |x - target_r|²/2 + |x|²/2P: the minimum of Σ f_r is Σ target_r / (P + 1)
    target, P = np.full(3, ranks.rank + 1.0, np.float32), ranks.size
    consensus = Consensus(ranks, np.zeros(3, np.float32), True, AdmmSettings(penalty=1.0))
    for _ in range(60):
        x = consensus.common.copy()
        for _ in range(50):
            x -= np.float32(0.5 / (2 + consensus.penalty)) * (x - target + x / P + consensus.pull_towards(x))
        residuals = consensus.agree(x)
    np.testing.assert_allclose(consensus.common, P * (P + 1) / 2 / (P + 1), rtol=1e-3)
    assert residuals.small(1e-2)


def test_admm_trains_with_a_tenth_of_the_bytes(ranks: Communicator) -> None:
    recipe = Recipe(hidden_width=16, max_epochs=100)
    design = Architecture.parse("augmented^3/mean/mlp-2/-")
    before = ranks.traffic.copy()
    trained, rounds = train_by_admm(
        ranks, design, recipe, own(TRAIN, ranks), own(VALIDATION, ranks), 3, SEEDS, AdmmSettings()
    )
    by_admm = ranks.traffic.since(before).sent_bytes
    before = ranks.traffic.copy()
    settings = ServerSettings(Consistency("bsp"), num_servers=ranks.size)
    by_server = trained_together(ranks, "augmented^3/mean/mlp-2/-", recipe, settings)
    sent = ranks.traffic.since(before).sent_bytes / by_server.num_epochs * trained.num_epochs
    assert trained.validation_scores.mean() > by_server.validation_scores.mean() - 0.1
    assert len(rounds) == -(-trained.num_epochs // AdmmSettings().local_steps)
    if ranks.size > 1:
        assert by_admm < 0.12 * sent
    for other in ranks.gather(flat(trained)):
        np.testing.assert_array_equal(other, flat(trained))
