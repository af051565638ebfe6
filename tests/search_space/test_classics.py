import pytest

from search_space.architecture import Architecture
from search_space.classics import CLASSICS, LATER, find_design
from search_space.errors import DesignError
from search_space.space import SearchSpace

TEXTS = {
    "MLP": "-/-/mlp-2/-",
    "SGC": "augmented^2/none/mlp-1/-",
    "S2GC": "augmented^10/mean/mlp-1/-",
    "SIGN": "augmented^3/concat/mlp-2/-",
    "GBP": "augmented^4/decay0.1/mlp-2/-",
    "APPNP": "-/-/mlp-2/ppr0.1^10",
    "PaSca-V1": "ppr0.1^6/weighted/mlp-3/-",
    "PaSca-V2": "augmented^6/adaptive/mlp-3/-",
    "PaSca-V3": "augmented^6/adaptive/mlp-3/ppr0.3^4",
}


def test_the_classics_have_the_text_forms_of_the_paper_notes() -> None:
    assert {name: str(design) for name, design in CLASSICS.items()} == TEXTS


def test_all_classics_but_gbp_lie_in_the_papers_space() -> None:
    space = SearchSpace.paper()
    assert [name for name, design in CLASSICS.items() if design not in space] == ["GBP"]


def test_a_classic_is_found_in_any_case() -> None:
    assert find_design("pasca-v3") == CLASSICS["PaSca-V3"] == find_design(" PASCA-V3 ")


def test_a_later_model_is_found_and_lies_outside_the_papers_space() -> None:
    assert find_design("grand") == LATER["GRAND"]
    space = SearchSpace.paper()
    assert not [name for name, design in LATER.items() if design in space]


def test_a_text_form_is_found_too() -> None:
    assert find_design("augmented^5/max/mlp-2/-") == Architecture(5, "augmented", "max", 2)


def test_an_unknown_name_lists_the_classics() -> None:
    with pytest.raises(DesignError, match=r"unknown design 'GCN'; give a classic .*PaSca-V3.*GRAND.* or a text form"):
        find_design("GCN")


def test_the_classics_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        CLASSICS["MLP"] = CLASSICS["SGC"]  # type: ignore[index]
