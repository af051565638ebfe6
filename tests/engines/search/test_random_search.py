import numpy as np

from engines.history import INTERRUPTED, History
from engines.objectives import OBJECTIVES, Bound
from engines.search.random_search import RandomSearcher
from engines.trial import Trial
from search_space.architecture import Architecture
from search_space.space import SearchSpace

SPACE = SearchSpace.paper(k_pre=[0, 1, 2], message=["mean"], k_trans=[1, 2], k_post=[0])
SECONDS = OBJECTIVES["inference_seconds"]


def designs(searcher: RandomSearcher[Architecture], count: int) -> list[Architecture]:
    return [suggestion.design for suggestion in searcher.ask(History(), count)]


def test_every_design_is_drawn_about_equally_often_first() -> None:
    first = [SPACE.index(designs(RandomSearcher(SPACE, seed=seed), 1)[0]) for seed in range(1100)]
    counts = np.bincount(first, minlength=len(SPACE))  # 22 designs, 50 each expected
    assert counts.min() > 20
    assert counts.max() < 90


def test_an_interrupted_design_comes_again() -> None:
    searcher = RandomSearcher(SPACE, seed=0)
    design = designs(searcher, 1)[0]
    assert designs(searcher, 2)[0] == design
    assert searcher.ask(History([Trial(0, design).fail(INTERRUPTED)]))[0].design == design
    assert searcher.ask(History([Trial(0, design).fail("no memory")]))[0].design != design


def test_designs_that_break_a_known_bound_are_not_drawn() -> None:
    seconds = np.arange(len(SPACE), dtype=float)
    searcher = RandomSearcher(SPACE, seed=0, known={"inference_seconds": seconds}, bounds=[Bound(SECONDS, 4.0)])
    assert sorted(SPACE.index(design) for design in designs(searcher, 100)) == [0, 1, 2, 3, 4]
    assert searcher.statement() == {"searcher": "random", "seed": 0, "num_designs": 5, "bounds_ignored": False}


def test_bounds_that_nothing_keeps_are_ignored_and_the_statement_says_so() -> None:
    seconds = np.ones(len(SPACE))
    searcher = RandomSearcher(SPACE, seed=0, known={"inference_seconds": seconds}, bounds=[Bound(SECONDS, 1e-9)])
    assert len(designs(searcher, 100)) == len(SPACE)
    assert searcher.statement()["bounds_ignored"] is True
