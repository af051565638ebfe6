"""TimeLimited: designs may take so long and no longer, whatever they are doing then."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from engines.evaluation.base import Evaluator
from engines.trial import Outcome
from search_space.errors import TrialFailure

D = TypeVar("D")


class Worker(Protocol):
    """What a design is trained in, and can be ended from outside."""

    def get_ready(self) -> None:
        """Return once an evaluation would begin at once."""
        ...

    def give_up(self) -> None:
        """End the evaluation that is going on, which then fails. Called from another thread."""
        ...


class TimeLimited(Generic[D]):
    """An evaluator that ends what takes too long.

    Args:
        inner: trains in `worker`, maybe several times a design.
        worker: what to end. The time that it needs to start is nobody's.
        seconds: that a design may take in all.
    """

    def __init__(self, inner: Evaluator[D], worker: Worker, seconds: float) -> None:
        self._inner, self._worker, self._seconds = inner, worker, seconds

    def evaluate(self, design: D, seeds: Sequence[int]) -> Outcome:
        """Train once per seed.

        Raises:
            TrialFailure: it took too long, or as the inner evaluator does.
        """
        late = threading.Event()

        def end() -> None:
            late.set()
            self._worker.give_up()

        self._worker.get_ready()
        timer = threading.Timer(self._seconds, end)
        timer.daemon = True
        timer.start()
        try:
            return self._inner.evaluate(design, seeds)
        except TrialFailure:
            if not late.is_set():
                raise
            raise TrialFailure(f"not done after the {self._seconds:g} s that a trial may take") from None
        finally:
            timer.cancel()
