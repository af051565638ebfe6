"""Plans state what propagation takes, say what fits, and refuse what is no graph."""

from __future__ import annotations

from typing import Any

import pytest

from pasca.planning import plan_ranks, plan_said
from search_space.errors import ConfigError

UNKNOWN = {"nodes": None, "edges": None, "features": None}


def planned(data: str | None = None, **changes: Any) -> dict[str, Any]:
    settings = {
        "sizes": UNKNOWN if data else {"nodes": 1000, "edges": 5000, "features": 50},
        "hops": 3,
        "ranks": "1,4",
        "partition": "contiguous",
        "memory_bytes": None,
        "wire_bytes": 1e9,
        "multiply_adds": 1e9,
    }
    return plan_ranks(data, **{**settings, **changes})


def test_one_rank_multiplies_every_entry_by_every_feature_once_a_hop() -> None:
    alone = planned(ranks="1")["plans"][0]
    # what an entry takes besides its 50 columns counts as 24 more
    assert alone["compute_seconds"] == pytest.approx((2 * 5000 + 1000) * (50 + 24) * 3 / 1e9)
    assert alone["wire_bytes"] == 0


def test_hops_of_a_rank_fall_as_one_over_the_ranks() -> None:
    hops = [one["hop_bytes"] for one in planned(ranks="1,2,4")["plans"] if one["plan"] == "rows"]
    assert hops == [1000 * 50 * 4 * 4 // count for count in (1, 2, 4)]


def test_the_dense_size_of_sparse_features_is_stated() -> None:
    found = planned(sizes={"nodes": 2000, "edges": 2000, "features": 1_000_000})
    assert "dense features: 8.0 GB per hop" in plan_said(found)[1]


def test_a_graph_at_hand_is_counted() -> None:
    found = planned("digits")
    assert (found["nodes"], found["features"]) == (1797, 64)
    assert [(one["ranks"], one["plan"]) for one in found["plans"]] == [
        (1, "rows"),
        (1, "features"),
        (4, "rows"),
        (4, "features"),
    ]


def test_advice_names_the_fewest_ranks_that_fit() -> None:
    least = min(planned(ranks="4")["plans"], key=lambda one: one["memory_bytes"])
    found = planned(memory_bytes=least["memory_bytes"])
    assert str(plan_said(found)[-1]).endswith(f"4 rank(s) in {least['plan']} are enough")
    assert "nothing fits 1.0 kB a rank" in str(plan_said(planned(memory_bytes=1000))[-1])


def test_this_machine_is_measured_when_no_rate_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    from engines.evaluation import calibration

    monkeypatch.setattr(calibration, "NUM_NODES", 2000)
    assert planned(multiply_adds=None)["multiply_adds_per_second"] > 1e6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": UNKNOWN}, "needs a graph, or --nodes, --edges and --features, got neither"),
        ({"sizes": {**UNKNOWN, "nodes": 5}}, "got nodes"),
        ({"sizes": {"nodes": 0, "edges": 1, "features": 1}}, "--nodes is at least 1, got 0"),
        ({"ranks": "4,x"}, "--ranks takes numbers"),
        ({"ranks": "0"}, "--ranks takes numbers"),
        ({"hops": 0}, "hops is at least 1, got 0"),
    ],
)
def test_what_cannot_be_planned_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        planned(**changes)
