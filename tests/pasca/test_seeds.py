"""Every seed of a run comes from its one seed."""

from __future__ import annotations

from pasca.seeds import retraining_seeds, trial_seeds


def test_the_same_seed_gives_the_same_seeds() -> None:
    assert trial_seeds(3, 5) == trial_seeds(3, 5)
    assert retraining_seeds(3, 5, 2) == retraining_seeds(3, 5, 2)


def test_another_seed_gives_other_seeds() -> None:
    assert not set(trial_seeds(0, 5)) & set(trial_seeds(1, 5))


def test_fewer_repeats_train_with_the_first_of_the_same_seeds() -> None:
    assert trial_seeds(0, 3) == trial_seeds(0, 10)[:3]


def test_retraining_uses_no_seed_of_the_search() -> None:
    for seed in range(50):
        assert not set(trial_seeds(seed, 10)) & set(retraining_seeds(seed, 10, 10))


def test_seeds_are_distinct() -> None:
    assert len(set(trial_seeds(0, 1000))) == 1000


def test_none_asked_for_gives_none() -> None:
    assert retraining_seeds(0, 0, 3) == ()
