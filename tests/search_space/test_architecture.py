from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_space.architecture import (
    MESSAGES,
    NORMALISATIONS,
    PAPER_AGGREGATORS,
    Architecture,
    canonical_aggregator,
    decay_rate,
    restart_probability,
)
from search_space.errors import DesignError

aggregators = st.sampled_from([*PAPER_AGGREGATORS, "ppr0.15", "ppr0.025"])
messages = st.sampled_from([*MESSAGES, "decay0.1", "decay0.05"])
architectures = st.builds(
    Architecture,
    k_pre=st.integers(0, 12),
    pre_aggregator=aggregators,
    message=messages,
    k_trans=st.integers(1, 12),
    k_post=st.integers(0, 12),
    post_aggregator=aggregators,
    hidden_width=st.none() | st.integers(1, 5000),
    input_dropout=st.none() | st.floats(0.0, 0.99),
    dropout=st.none() | st.floats(0.0, 0.99),
    learning_rate=st.none() | st.floats(1e-6, 10.0),
    weight_decay=st.none() | st.floats(0.0, 1.0),
    norm=st.sampled_from([None, "none", "layer"]),
    residual=st.sampled_from([None, "on", "off"]),
    normalise=st.sampled_from([None, *NORMALISATIONS]),
    label_steps=st.none() | st.integers(0, 4),
    adjacency=st.sampled_from([None, "none", "rows"]),
    consistency=st.none() | st.floats(0.0, 10.0),
    structure=st.sampled_from([None, "none", "counts"]),
)


@given(architectures)
def test_the_text_form_parses_back(design: Architecture) -> None:
    assert Architecture.parse(str(design)) == design


@given(architectures, architectures)
def test_designs_are_equal_exactly_when_their_texts_are(one: Architecture, other: Architecture) -> None:
    assert (one == other) == (str(one) == str(other))
    assert one != other or hash(one) == hash(other)


def test_choices_of_a_stage_that_is_off_vanish() -> None:
    design = Architecture(0, "triangle", "max", 2, 0, "ppr0.3")
    assert design == Architecture(0, None, None, 2)
    assert (design.pre_aggregator, design.message, design.post_aggregator) == (None, None, None)
    assert str(design) == "-/-/mlp-2/-"


def test_an_alpha_has_one_spelling() -> None:
    assert Architecture.parse("ppr0.10^2/decay0.100/mlp-1/ppr.2^1") == Architecture.parse(
        "ppr0.1^2/decay0.1/mlp-1/ppr0.2^1"
    )


def test_the_text_form_is_the_one_of_the_paper_notes() -> None:
    design = Architecture(6, "augmented", "adaptive", 3, 4, "ppr0.3")
    assert str(design) == "augmented^6/adaptive/mlp-3/ppr0.3^4"


def test_what_differs_from_the_recipe_follows_in_one_order() -> None:
    design = Architecture.parse("heat0.5^4/jk/mlp-3/cs0.8^10@norm=layer,dropout=.30,hidden=128,lr=1e-2,residual=on")
    assert str(design) == "heat0.5^4/jk/mlp-3/cs0.8^10@hidden=128,dropout=0.3,lr=0.01,norm=layer"
    assert design.extras == {"hidden_width": 128, "dropout": 0.3, "learning_rate": 0.01, "norm": "layer"}


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("-/-/mlp-1/-@hidden=64,dropout=0.2,norm=layer", "-/-/mlp-1/-"),
        ("-/-/mlp-2/-@residual=off,norm=none,labels=0,adjacency=none", "-/-/mlp-2/-"),
        ("-/-/mlp-1/-@input_dropout=0.2,residual=off", "-/-/mlp-1/-@input_dropout=0.2"),
    ],
)
def test_choices_without_effect_vanish(text: str, canonical: str) -> None:
    assert Architecture.parse(text) == Architecture.parse(canonical)


@given(architectures, architectures, architectures)
def test_any_designs_can_be_sorted(one: Architecture, other: Architecture, third: Architecture) -> None:
    assert sorted([one, other, third]) == sorted([third, other, one])
    assert (one < other) + (one == other) + (other < one) == 1


@pytest.mark.parametrize(
    ("extras", "told"),
    [
        ("hidden=0", "hidden_width must be a whole number of at least 1, got '0'"),
        ("hidden=1.5", "hidden_width must be a whole number of at least 1, got '1.5'"),
        ("dropout=1", "dropout must be below 1, got '1'"),
        ("lr=0", "learning_rate must be above 0, got '0'"),
        ("wd=nan", "weight_decay must be a number of at least 0, got 'nan'"),
        ("wd=inf", "weight_decay must be a number of at least 0, got 'inf'"),
        ("wd=x", "weight_decay must be a number, got 'x'"),
        ("lr=x", "learning_rate must be a number, got 'x'"),
        ("dropout=x", "dropout must be a number, got 'x'"),
        ("hidden=x", "hidden_width must be a whole number of at least 1, got 'x'"),
        ("norm=group", "unknown norm 'group'; choose from: none, layer, batch"),
        ("features=max", "unknown normalise 'max'; choose from: row, symmetric, l2, standard, none"),
        ("labels=-1", "label_steps must be a whole number of at least 1, got '-1'"),
        ("consistency=-1", "consistency must be a number of at least 0, got '-1'"),
        ("depth=2", r"behind @ a design has KEY=VALUE with commas, as in @hidden=64,dropout=0.3; got 'depth=2'"),
        ("depth=2", r"choose from: hidden, input_dropout, dropout, lr, wd, features, norm, residual, labels"),
        ("norm=la=yer", "unknown norm 'la=yer'"),
        ("wd=1,wd=2", "wd is given twice"),
    ],
)
def test_what_the_recipe_could_not_say_is_refused(extras: str, told: str) -> None:
    with pytest.raises(DesignError, match=told):
        Architecture.parse(f"-/-/mlp-3/-@{extras}")


@pytest.mark.parametrize(
    ("extras", "told"),
    [
        ({"hidden_width": True}, "hidden_width must be a whole number of at least 1, got True"),
        ({"hidden_width": 2.5}, "hidden_width must be a whole number of at least 1, got 2.5"),
        ({"label_steps": True}, "label_steps must be a whole number of at least 1, got True"),
        ({"weight_decay": True}, "weight_decay must be a number of at least 0, got True"),
        ({"learning_rate": []}, r"learning_rate must be a number, got \[\]"),
    ],
)
def test_what_is_no_number_is_refused_in_python_too(extras: dict[str, Any], told: str) -> None:
    with pytest.raises(DesignError, match=told):
        Architecture(0, None, None, 3, **extras)


def test_designs_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Architecture(0, None, None, 2).k_trans = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("avg^2/none/mlp-1/-", "unknown graph aggregator 'avg'; choose from: augmented"),
        ("augmented^2/avg/mlp-1/-", "unknown message aggregator 'avg'; choose from: none, mean, max, concat"),
        ("ppr1.0^2/none/mlp-1/-", "0 < alpha < 1, got 'ppr1.0'"),
        ("ppr0^2/none/mlp-1/-", "0 < alpha < 1, got 'ppr0'"),
        ("augmented^2/decay1.5/mlp-1/-", "0 < alpha < 1, got 'decay1.5'"),
        ("augmented^2/none/mlp-1", "a design has four parts"),
        ("augmented^2/none/mlp-1/-/-", "a design has four parts"),
        ("augmented^2/-/mlp-1/-", "both '-' or both given"),
        ("-/mean/mlp-1/-", "both '-' or both given"),
        ("augmented/none/mlp-1/-", "'-' or NAME^STEPS"),
        ("augmented^0/none/mlp-1/-", "'-' or NAME^STEPS"),
        ("augmented^-1/none/mlp-1/-", "'-' or NAME^STEPS"),
        ("-/-/mlp/-", "mlp-K with K linear layers, got 'mlp'"),
        ("-/-/mlp-0/-", "k_trans must be a whole number of at least 1, got 0"),
        ("", "a design has four parts"),
    ],
)
def test_a_text_that_is_no_design_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(DesignError) as caught:
        Architecture.parse(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k_pre": -1},
        {"k_pre": True},
        {"k_pre": 2.0},
        {"k_trans": 0},
        {"k_post": -3},
        {"pre_aggregator": None},
        {"message": None},
        {"post_aggregator": None},
    ],
)
def test_an_illegal_choice_is_refused_when_it_is_made(wrong: dict[str, object]) -> None:
    counts: dict[str, object] = {"k_pre": 2, "k_trans": 1, "k_post": 1}
    legal = {**counts, "pre_aggregator": "augmented", "message": "mean", "post_aggregator": "triangle"}
    Architecture(**legal)  # type: ignore[arg-type]
    with pytest.raises(DesignError):
        Architecture(**{**legal, **wrong})  # type: ignore[arg-type]


def test_alphas_are_read_from_names() -> None:
    assert restart_probability("ppr0.25") == 0.25
    assert restart_probability("augmented") is None
    assert decay_rate("decay0.1") == 0.1
    assert decay_rate("mean") is None
    assert canonical_aggregator("ppr1e-3") == "ppr0.001"
