"""The byte model counts what plans send and hold, and chooses among those that fit."""

from __future__ import annotations

import numpy as np
import pytest

from engines.evaluation.partition import Partition, make_partition, partition_report
from engines.evaluation.plan_model import Layout, Rates, choose_plan, estimate, slice_bytes
from engines.graph import undirected
from search_space.errors import ConfigError

RATES = Rates(multiply_adds=1e9, wire_bytes=1e9)
PATH = undirected(np.array([0, 1, 2, 3]), np.array([1, 2, 3, 4]), 5)[0]
PATH_LAYOUT = Layout.counted(partition_report(Partition("given", 2, np.array([0, 0, 0, 1, 1], np.int32)), PATH))


def test_a_layout_is_read_off_a_partition() -> None:
    # parts {0, 1, 2} and {3, 4}: 5 and 3 entries, 3 and 2 self-loops, one halo row each
    assert Layout(5, 13, 2, 2, 3, 8, 1) == PATH_LAYOUT


def test_row_blocks_send_each_halo_row_once_a_hop() -> None:
    assert estimate("rows", PATH_LAYOUT, 10, 3, RATES, 1 << 20).wire_bytes == 2 * 10 * 4 * 3


def test_feature_slices_send_the_start_and_each_hop_but_what_stays() -> None:
    # 5 rows of 4 columns, half of each row stays where it is
    assert slice_bytes(PATH_LAYOUT, 4) == 5 * 4 * 4 // 2
    assert estimate("features", PATH_LAYOUT, 4, 3, RATES, 1 << 20).wire_bytes == 40 * 4


def test_a_slice_costs_what_an_entry_takes_at_any_width() -> None:
    # 13 entries for half of 10 columns on every rank, or 8 entries for all of them on the larger one
    rows, slices = (estimate(plan, PATH_LAYOUT, 10, 3, RATES, 1 << 20).compute_seconds for plan in ("rows", "features"))
    assert slices == pytest.approx(13 * (5 + 24) * 3 / 1e9)
    assert rows == pytest.approx(8 * (10 + 24) * 3 / 1e9)


def test_slices_hold_the_columns_of_two_hops_and_of_the_start() -> None:
    matrix, rows, columns, tile = 13 * 8 + 5 * 4, 3 * 4 * 4 * 4, 3 * 5 * 2 * 4, 4 * (3 * 4 + 5 * 2)
    assert estimate("features", PATH_LAYOUT, 4, 3, RATES, 1 << 20).memory_bytes == matrix + rows + columns + tile


def test_one_rank_sends_nothing() -> None:
    alone = Layout.expected(100, 400, 1)
    for plan in ("rows", "features"):
        one = estimate(plan, alone, 8, 2, RATES, 1 << 20)
        assert (one.wire_bytes, one.wire_seconds) == (0, 0.0)


def test_stored_hops_fall_as_one_over_the_ranks() -> None:
    held = [estimate("rows", Layout.expected(960, 4000, P), 10, 3, RATES, 1 << 20).hop_bytes for P in (1, 2, 4, 8)]
    assert held == [960 * 10 * 4 * 4 // P for P in (1, 2, 4, 8)]


def test_working_buffers_are_bounded() -> None:
    layout = Layout.expected(10_000, 50_000, 4)
    roomy, tight = (estimate("rows", layout, 64, 2, RATES, size).memory_bytes for size in (1 << 30, 1 << 16))
    assert roomy > tight
    assert tight - estimate("rows", layout, 64, 2, RATES, 0).memory_bytes == 1 << 16


def test_expected_traffic_is_near_that_of_a_hash_partition() -> None:
    rng = np.random.default_rng(0)
    graph = undirected(rng.integers(0, 4000, 20_000), rng.integers(0, 4000, 20_000), 4000)[0]
    counted = Layout.counted(partition_report(make_partition("hash", graph, 4), graph))
    expected = Layout.expected(4000, graph.nnz // 2, 4)
    sent = [estimate("rows", layout, 10, 2, RATES, 1 << 20).wire_bytes for layout in (counted, expected)]
    assert sent[0] == pytest.approx(sent[1], rel=0.02)


def test_a_graph_with_few_cut_edges_is_propagated_in_row_blocks() -> None:
    assert choose_plan("auto", PATH_LAYOUT, 10, 3, RATES, buffer_bytes=1 << 20).plan == "rows"


def test_a_slow_network_takes_feature_slices_where_every_rank_reads_every_row() -> None:
    # rows cost (P - 1) N F a hop, slices (P - 1) / P of N F
    scattered = Layout(1000, 10_000, 4, 3000, 250, 2500, 750)
    slow = Rates(multiply_adds=1e9, wire_bytes=1e8)
    assert choose_plan("auto", scattered, 64, 3, slow, buffer_bytes=1 << 20).plan == "features"


def test_auto_takes_what_fits_rather_than_what_is_fast() -> None:
    dense = Layout(1000, 100_000, 4, 3000, 250, 25_000, 750)
    rows, slices = (estimate(plan, dense, 64, 3, RATES, 1 << 10) for plan in ("rows", "features"))
    assert rows.memory_bytes < slices.memory_bytes
    limit = (rows.memory_bytes + slices.memory_bytes) // 2
    assert choose_plan("auto", dense, 64, 3, RATES, buffer_bytes=1 << 10, memory_bytes=limit).plan == "rows"
    with pytest.raises(ConfigError, match="--plan rows would fit"):
        choose_plan("features", dense, 64, 3, RATES, buffer_bytes=1 << 10, memory_bytes=limit)


def test_what_cannot_fit_is_refused_with_both_figures() -> None:
    with pytest.raises(ConfigError, match=r"rows .* GB and features .* GB on a rank, but 1e-06 GB are allowed"):
        choose_plan("auto", PATH_LAYOUT, 1000, 3, RATES, buffer_bytes=1 << 20, memory_bytes=1000)


def test_an_unknown_plan_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown plan 'columns'; choose from: auto, rows, features"):
        choose_plan("columns", PATH_LAYOUT, 10, 3, RATES, buffer_bytes=1)


def test_a_graph_without_nodes_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1 node"):
        Layout.expected(0, 0, 1)
