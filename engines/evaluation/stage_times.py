"""Stage times: a small table of measured stages, and what it belongs to.

`timing` measures them, `costs` adds them up to the inference time of every design.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engines.graph import Graph
from search_space.errors import ConfigError


@dataclass(frozen=True)
class StageTimes:
    """Measured stages of one graph on one machine.

    Attributes:
        key: what the times belong to: graph structure, hidden width, normalisation, hardware, threads.
        seconds: median time of each stage, by the names of `costs.stages`.
        entries: non-zeros of each matrix built, by matrix key.
    """

    key: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    entries: Mapping[str, int] = field(default_factory=dict)

    def as_mapping(self) -> dict[str, Any]:
        """JSON types; `from_mapping` reads them back."""
        return {"key": self.key, "seconds": dict(self.seconds), "entries": dict(self.entries)}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> StageTimes:
        """Read what `as_mapping` wrote.

        Raises:
            ConfigError: a part is missing or a time is not a positive number.
        """
        try:
            seconds = {str(stage): float(value) for stage, value in values["seconds"].items()}
            entries = {str(key): int(value) for key, value in values["entries"].items()}
            key = str(values["key"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"this is not a table of stage times ({error!r}); measure anew with --retime") from None
        for stage, value in seconds.items():
            if not 0.0 < value < float("inf"):
                raise ConfigError(f"stage {stage} has the time {value}; measure anew with --retime")
        return cls(key, seconds, entries)


def stage_key(graph: Graph, hidden_width: int, normalise: str, threads: int) -> str:
    """Identifies what stage times depend on, as a hex digest usable as a file name."""
    parts = (graph.structure_checksum, graph.num_classes, hidden_width, normalise, threads, hardware())
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def hardware() -> str:
    """The processor's model name and machine type, as stable as the system states them."""
    model = platform.processor() or "unknown processor"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass  # not Linux: the platform's own name is what there is
    return f"{model}, {platform.machine()}"
