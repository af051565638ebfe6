"""Consistency: which updates a worker must see before it goes on. Pure bookkeeping, no messages."""

from __future__ import annotations

from dataclasses import dataclass

from search_space.errors import ConfigError, ShapeError

CONSISTENCIES = ("bsp", "ssp", "asp", "admm")
"""Bulk-synchronous, stale-synchronous and asynchronous parameter server; consensus ADMM, which has no server."""


@dataclass(frozen=True, slots=True)
class Consistency:
    """What a worker at clock c must see: all updates of clocks <= c - s - 1, and its own.

    Attributes:
        name: `bsp` (s = 0), `ssp` (s = staleness) or `asp` (nothing but its own).
        staleness: s of `ssp`, in clocks; not read otherwise.
    Raises:
        ConfigError: the name is unknown or the bound is negative.
    """

    name: str = "bsp"
    staleness: int = 4

    def __post_init__(self) -> None:
        if self.name not in CONSISTENCIES:
            raise ConfigError(f"unknown consistency {self.name!r}; choose from: {', '.join(CONSISTENCIES)}")
        if self.staleness < 0:
            raise ConfigError(f"the staleness bound is at least 0 clocks, got {self.staleness}")

    @property
    def bound(self) -> int | None:
        """s, or None for no bound."""
        return {"bsp": 0, "ssp": self.staleness}.get(self.name)

    @property
    def joint_steps(self) -> bool:
        """Whether the pushes of one clock make one step together; otherwise each push is a step of its own."""
        return self.bound == 0


class ClockTable:
    """How many pushes each worker has made.

    Args:
        consistency: the rule.
        num_workers: W.
    """

    def __init__(self, consistency: Consistency, num_workers: int) -> None:
        self._consistency = consistency
        self._pushes: list[int | None] = [0] * num_workers

    @property
    def num_left(self) -> int:
        """Workers that have not left."""
        return sum(pushes is not None for pushes in self._pushes)

    def slowest(self) -> int | None:
        """Pushes of the worker with the fewest; None when all have left."""
        return min((pushes for pushes in self._pushes if pushes is not None), default=None)

    def record_push(self, worker: int, clock: int) -> None:
        """Count a push.

        Raises:
            ShapeError: it is not the worker's next one.
        """
        if self._pushes[worker] != clock:
            raise ShapeError(f"worker {worker} pushed clock {clock}, but {self._pushes[worker]} was next")
        self._pushes[worker] = clock + 1

    def leave(self, worker: int) -> None:
        """The worker pushes no more; nobody waits for it."""
        self._pushes[worker] = None

    def may_see(self, clock: int, *, strictly: bool = False) -> bool:
        """Whether a worker at that clock may read the weights now; `strictly` as if s were 0."""
        bound = 0 if strictly else self._consistency.bound
        slowest = self.slowest()
        return bound is None or slowest is None or slowest >= clock - bound
