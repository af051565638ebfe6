"""Every graph of the accuracy benchmarks is found, in every split that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pasca


def test_every_graph_is_there_in_first_and_last_split(script: Callable[[str], ModuleType], pasca_data: Path) -> None:
    for data in script("accuracy_data").DATA.values():
        graph = pasca.load(pasca_data / data.path, **data.splits[0])
        assert graph.split.train.size > 0
        assert graph.split.test.size > 0
        if len(data.splits) > 1 and graph.num_nodes < 5000:
            assert pasca.load(pasca_data / data.path, **data.splits[-1]).split.train.size > 0
