"""Further seeds of a design are averaged into its first trial."""

from __future__ import annotations

import pytest

from engines.objectives import parse_objectives
from engines.pooling import with_further_seeds
from engines.trial import Outcome, Trial

OBJECTIVES = parse_objectives("val_error,inference_seconds")


def done(number: int, error: float, variance: float | None, seeds: int, **more: object) -> Trial[str]:
    variances = {} if variance is None else {"val_error": variance}
    trial: Trial[str] = Trial(number, "a", tuple(range(10 * number, 10 * number + seeds)), **more)  # type: ignore[arg-type]
    return trial.complete(Outcome({"val_error": error, "inference_seconds": 0.1}, variances), OBJECTIVES, 1.0)


def test_each_seed_counts_once() -> None:
    # 3 seeds at 0.2 and 6 at 0.1: the mean of nine is 2/15; its variance 1/9 of .9 and 4/9 of .09
    pooled = with_further_seeds([done(0, 0.2, 0.9, 3), done(4, 0.1, 0.09, 6, repeats_of=0)])
    assert [trial.number for trial in pooled] == [0]
    assert pooled[0].values["val_error"] == pytest.approx(2 / 15)
    assert pooled[0].variances["val_error"] == pytest.approx(0.1 + 0.04)
    assert pooled[0].seeds == (0, 1, 2, 40, 41, 42, 43, 44, 45)


def test_what_all_records_agree_on_keeps_its_bits() -> None:
    pooled = with_further_seeds([done(0, 0.2, 0.9, 3), *(done(n, 0.1, 0.09, 3, repeats_of=0) for n in (1, 2))])
    assert pooled[0].values["inference_seconds"] == 0.1


def test_a_variance_that_one_record_lacks_is_unknown() -> None:
    assert dict(with_further_seeds([done(0, 0.2, None, 3), done(1, 0.1, 0.09, 3, repeats_of=0)])[0].variances) == {}


def test_failed_and_running_repeats_change_nothing() -> None:
    first = done(0, 0.2, 0.9, 3)
    failed, running = Trial(1, "a", (7,), repeats_of=0).fail("out of memory"), Trial(2, "a", (8,), repeats_of=0)
    assert with_further_seeds([first, failed, running]) == [first]


def test_a_repeat_without_its_first_trial_is_left_out() -> None:
    assert with_further_seeds([done(1, 0.1, 0.09, 3, repeats_of=0)]) == []
