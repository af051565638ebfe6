"""What designs cost on the graph and machine of a recorded run, computed again from its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engines.evaluation.costs import Sizes, cost_of, cost_table, stages
from engines.evaluation.stage_times import StageTimes
from engines.objectives import Floats
from search_space.architecture import Architecture
from search_space.space import SearchSpace

_BACK = "propagate predictions"
_GROUPS = {
    "build": "build matrices",
    "count-structure": "build matrices",
    "normalise": "normalise features",
    "hop": "propagate features",
    "join": "join hops",
    "join-channels": "join hops",
    "cs-step": _BACK,
    "cs-scale": _BACK,
    "only-layer": "transform",
    "first-layer": "transform",
    "hidden-layer": "transform",
    "plain-layer": "transform",
    "norm-layer": "transform",
    "label-layer": "transform",
    "adjacency-layer": "transform",
    "structure-layer": "transform",
    "last-layer": "transform",
}
STAGE_GROUPS = (*dict.fromkeys(group for group in _GROUPS.values() if group != _BACK), _BACK)
"""The parts of an inference, in the order in which they happen."""


@dataclass(frozen=True)
class RunCosts:
    """Sizes and stage times that a run was searched with."""

    sizes: Sizes
    times: StageTimes

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> RunCosts | None:
        """Read them from a manifest; None for a run that pasca's own evaluator did not score."""
        data, recipe, times = manifest["data"], manifest["identity"].get("recipe"), manifest.get("stage_times")
        if not recipe or not times or "adjacency_entries" not in data:
            return None
        return cls(
            Sizes(
                num_nodes=data["num_nodes"],
                num_features=data["num_features"],
                num_classes=data["num_classes"],
                hidden_width=recipe["hidden_width"],
                adjacency_entries=data["adjacency_entries"],
            ),
            StageTimes.from_mapping(times),
        )

    def covers(self, design: Architecture) -> bool:
        """Whether every stage of a design was timed."""
        return all(stage in self.times.seconds for stage, _ in stages(design, self.sizes))

    def of_design(self, design: Architecture) -> dict[str, float]:
        """Every known objective of one design."""
        return cost_of(design, self.sizes, self.times.seconds, self.times.entries)

    def of_space(self, space: SearchSpace) -> dict[str, Floats]:
        """Every known objective of every design, arrays of shape (len(space),)."""
        return cost_table(space, self.sizes, self.times.seconds, self.times.entries)

    def seconds_by_group(self, design: Architecture) -> dict[str, float]:
        """Inference seconds of a design by part, in the order of `STAGE_GROUPS`; they sum to `inference_seconds`."""
        found = dict.fromkeys(STAGE_GROUPS, 0.0)
        plan = stages(design, self.sizes)
        for place, (stage, count) in enumerate(plan):
            group = _GROUPS[stage.split("/")[0]]
            if place == len(plan) - 1 and design.post_aggregator is not None:
                group = _BACK
            found[group] += self.times.seconds[stage] * count
        return found
