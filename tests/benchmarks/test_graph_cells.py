from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("nas_bench_graph", reason="needs the tables of nas-bench-graph")


@pytest.fixture(scope="module")
def cells(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("graph_cells")


@pytest.fixture(scope="module")
def cora(cells: ModuleType) -> object:
    return cells.read_table("cora")


def test_every_cell_has_the_hash_that_its_measurement_has(cells: ModuleType, cora: object) -> None:
    from nas_bench_graph import light_read

    measured = light_read("cora")
    space = cora.space  # type: ignore[attr-defined]
    assert len(space) == 26_206
    assert [space.design(row).key() for row in range(len(space))] == sorted(measured)
    some = 1234
    assert cora.accuracy[some] == measured[space.design(some).key()]["valid_perf"]  # type: ignore[attr-defined]
    assert np.exp(cora.log_latency[some]) == pytest.approx(measured[space.design(some).key()]["latency"])  # type: ignore[attr-defined]


def test_two_spellings_of_a_cell_share_a_hash(cells: ModuleType) -> None:
    one = cells.Cell("0000", ("gat", "gcn", "gin", "fc"))
    other = cells.Cell("0000", ("fc", "gin", "gcn", "gat"))
    assert one.key() == other.key() != cells.Cell("0123", ("fc", "gin", "gcn", "gat")).key()


def test_descriptors_of_a_cell_worked_by_hand(cells: ModuleType) -> None:
    # input -> skip -> gcn -> fc and input -> skip -> gat: a skip adds no depth and hands on what it reads.
    space = cells.CellSpace([cells.Cell("0112", ("skip", "gcn", "gat", "fc")).key()])
    assert str(space.design(0)) == "0112:skip-gcn-gat-fc"
    groups = space.descriptors()
    names = list(cells.OPERATIONS)
    (operations,) = groups["operations"]
    assert {names[i] for i in np.flatnonzero(operations[:9])} == {"skip", "gcn", "gat", "fc"}
    assert operations[:9].sum() == 4.0
    assert operations[9] == 2.0
    (pairs,) = groups["pairs"]
    reads, gives, follows = pairs[:9], pairs[9:18], pairs[18:].reshape(9, 9)
    assert {names[i] for i in np.flatnonzero(reads)} == {"gat", "gcn"}
    assert {names[i] for i in np.flatnonzero(gives)} == {"gat", "fc"}
    assert [(names[i], names[j]) for i, j in np.argwhere(follows)] == [("gcn", "fc")]


def test_scaling_puts_the_best_at_0_and_the_quantiles_at_1(cells: ModuleType, cora: object) -> None:
    losses = cora.scaled()  # type: ignore[attr-defined]
    assert losses.min(axis=0) == pytest.approx([0.0, 0.0])
    assert np.quantile(losses[:, 0], 0.95) == pytest.approx(1.0)
    assert np.quantile(losses[:, 1], 0.95) == pytest.approx(1.0)


def test_the_share_is_1_for_the_front_and_an_area_counted_on_a_grid_otherwise(cells: ModuleType, cora: object) -> None:
    share = cells.Share(cora)
    assert share.of(share.front.tolist()) == pytest.approx(1.0)
    assert share.of(share.front[1::2].tolist()) < 1.0
    rows = [5, 900, 20_000]
    losses = cora.scaled()[rows]  # type: ignore[attr-defined]
    ticks = (np.arange(1000) + 0.5) / 1000
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    area = np.mean([(losses <= point).all(axis=1).any() for point in grid[::7]])
    assert share.of(rows) * share.whole == pytest.approx(area, abs=3e-3)
