"""Stage times: written, read back, and known by what they depend on."""

from __future__ import annotations

import numpy as np
import pytest

from engines.evaluation.stage_times import StageTimes, stage_key
from engines.graph import Graph, Split, undirected
from search_space.errors import ConfigError

NOBODY = np.asarray([], dtype=np.int64)


def ring(N: int) -> Graph:
    """N nodes, each with two neighbours."""
    nodes = np.arange(N)
    adjacency, _, _ = undirected(nodes, (nodes + 1) % N, N)
    split = Split(nodes[:2], NOBODY, NOBODY)
    return Graph("ring", adjacency, np.ones((N, 3), dtype=np.float32), nodes % 2, ("a", "b"), split)


def test_reads_back_what_it_wrote() -> None:
    times = StageTimes("key", {"normalise": 1e-3}, {"augmented": 12})
    assert StageTimes.from_mapping(times.as_mapping()) == times


@pytest.mark.parametrize(
    "broken", [{}, {"key": "k", "seconds": 3, "entries": {}}, {"key": "k", "seconds": {"a": -1.0}, "entries": {}}]
)
def test_a_broken_table_is_refused_with_a_remedy(broken: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="--retime"):
        StageTimes.from_mapping(broken)


def test_the_key_changes_with_what_times_depend_on() -> None:
    graph = ring(10)
    keys = {
        stage_key(graph, 32, "row", 1),
        stage_key(graph, 64, "row", 1),
        stage_key(graph, 32, "l2", 1),
        stage_key(graph, 32, "row", 2),
        stage_key(ring(11), 32, "row", 1),
    }
    assert len(keys) == 5
    assert stage_key(ring(10), 32, "row", 1) in keys
