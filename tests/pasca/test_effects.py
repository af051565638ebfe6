"""Effects of a run's choices: recovered from a quantity whose effects are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pasca.effects import LEAST_TRIALS, Effects
from pasca.results import Study
from pasca.searching import search
from search_space.errors import RunError
from search_space.product import ProductSpace

SPACE = {
    "k_pre": [0, 1, 2],
    "pre_aggregator": ["augmented", "ppr0.1"],
    "message": ["mean"],
    "k_trans": [1, 2, 3],
    "k_post": [0],
}


def error(design: Any) -> tuple[float, float]:
    """Layers matter most, then the operator; the cost is of no interest."""
    operator = {"augmented": 0.02, "ppr0.1": -0.02, None: 0.0}[design.pre_aggregator]
    return 0.3 + 0.1 * design.k_trans + operator, 1.0


@pytest.fixture(scope="module")
def effects(tmp_path_factory: pytest.TempPathFactory) -> Effects:
    study = search(
        evaluator=error, space=SPACE, evaluations=20, searcher="random", out=tmp_path_factory.mktemp("runs") / "run"
    )
    found: Effects = study.effects()[0]
    return found


def test_every_design_observed_gives_the_effects_back(effects: Effects) -> None:
    layers = next(dimension for dimension in effects.dimensions if dimension.name == "k_trans")
    assert [effect.mean for effect in layers.effects] == pytest.approx([0.4, 0.5, 0.6], abs=0.005)
    assert [effect.best for effect in layers.effects] == pytest.approx([0.38, 0.48, 0.58], abs=0.005)
    assert effects.overall == pytest.approx(0.5, abs=0.005)


def test_the_dimension_that_matters_most_is_the_most_important(effects: Effects) -> None:
    shares = {dimension.name: dimension.alone for dimension in effects.dimensions}
    assert max(shares, key=lambda name: shares[name]) == "k_trans"
    # Var(layers) = 2/3 of 0.01; var(operator) = 4/5 of 0.0004, two designs in five having each of them.
    assert shares["k_trans"] == pytest.approx((0.02 / 3) / (0.02 / 3 + 0.00032), abs=0.01)


def test_a_smooth_quantity_is_predicted_well(effects: Effects) -> None:
    assert effects.explained is not None
    assert effects.explained > 0.9
    assert not effects.exact


def test_a_space_of_ones_own_has_effects_too_also_when_opened_again(tmp_path: Path) -> None:
    study = search(
        evaluator=lambda design: (0.1 * design.depth, 1.0),
        space=ProductSpace({"depth": [1, 2, 3, 4], "colour": ["red", "green", "blue"]}),
        evaluations=12,
        searcher="random",
        out=tmp_path / "own",
    )
    for opened in (study, Study.open(tmp_path / "own")):
        shares = {dimension.name: dimension.alone for dimension in opened.effects()[0].dimensions}
        assert shares["depth"] > 0.95
        assert shares["colour"] < 0.05


def test_few_trials_are_refused(tmp_path: Path) -> None:
    study = search(evaluator=error, space=SPACE, evaluations=3, searcher="random", out=tmp_path / "run")
    with pytest.raises(RunError, match=f"at least {LEAST_TRIALS} evaluated designs, run run has 3"):
        study.effects()


def test_json_types_hold_every_value(effects: Effects) -> None:
    content = effects.as_mapping()
    assert content["objective"] == "val_error"
    assert [dimension["name"] for dimension in content["dimensions"]] == [
        "k_pre", "pre_aggregator", "message", "k_trans", "k_post", "post_aggregator",
    ]  # fmt: skip
    assert [effect["value"] for effect in content["dimensions"][1]["effects"]] == [None, "augmented", "ppr0.1"]
