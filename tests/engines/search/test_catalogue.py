import numpy as np
import pytest

from engines.objectives import parse_objectives
from engines.search.catalogue import SEARCHERS, create_searcher
from search_space.errors import ConfigError
from search_space.space import SearchSpace

SPACE = SearchSpace.paper(k_pre=[0, 1], k_trans=[1], k_post=[0])
PAIR = parse_objectives("val_error,inference_seconds")
KNOWN = {"inference_seconds": np.arange(1.0, 1.0 + len(SPACE))}


@pytest.mark.parametrize("name", SEARCHERS)
def test_every_listed_searcher_can_be_made_and_states_its_name(name: str) -> None:
    searcher = create_searcher(name, SPACE, PAIR, known=KNOWN, seed=3)
    assert searcher.statement()["searcher"] == name
    assert searcher.statement()["seed"] == 3


def test_an_unknown_searcher_lists_what_exists() -> None:
    with pytest.raises(ConfigError, match="unknown searcher 'grid'; choose from: ehvi, random, nsga2"):
        create_searcher("grid", SPACE, PAIR, known=KNOWN, seed=0)
