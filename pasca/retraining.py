"""After the search: the front and the classics trained again with fresh seeds, and tested."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from pasca.plain import plain
from pasca.progress import Progress
from pasca.studies import Retrained, StudyRecord
from search_space.architecture import Architecture
from search_space.errors import TrialFailure

_log = logging.getLogger(__name__)


class TrainedDesign(Protocol):
    """A design trained once per seed."""

    @property
    def val_errors(self) -> Any:
        """(S,) fractions."""
        ...

    @property
    def details(self) -> Any:
        """JSON types for the record."""
        ...


@runtime_checkable
class Trainer(Protocol):
    """An evaluator that can also hand out what it trained, and test it."""

    def train(self, design: Any, seeds: Sequence[int]) -> Any:
        """Train a design once per seed; gives a TrainedDesign."""
        ...

    def test_scores(self, trained: Any) -> ArrayLike:
        """Scores on the test nodes, (S,). It alone reads test labels, and `confusion` where there is one."""
        ...

    def known_of(self, design: Any) -> dict[str, float]:
        """Values of the known objectives."""
        ...


def retrain(
    trainer: Trainer,
    designs: Sequence[Architecture],
    seeds: tuple[int, ...],
    record: StudyRecord[Any],
    *,
    progress: Progress,
    test: bool = True,
    out_of_time: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Architecture]:
    """Train designs with fresh seeds, test them, and record each as soon as it is done.

    A design that the record has with the same seeds is not trained again. That a design is about to be tested is
    recorded before its test labels are read, once for all designs of this call.

    Args:
        test: False where there are no test nodes: test scores stay empty.
        out_of_time: asked before each design; True leaves the rest out.
    Returns:
        The designs left out.
    Raises:
        StorageError: a result could not be recorded.
    """
    known = record.retrained()
    waiting = [
        design
        for design in dict.fromkeys(designs)
        if str(design) not in known or known[str(design)].seeds != seeds or known[str(design)].reason is not None
    ]
    counted = not test
    for place, design in enumerate(waiting):
        if out_of_time():
            return waiting[place:]
        progress.retraining(str(design), place, len(waiting))
        began = clock()
        try:
            trained = trainer.train(design, seeds)
        except Exception as error:
            # As in the loop: one design that cannot be trained says so in the record, the others go on.
            _log.debug("retraining %s failed", design, exc_info=True)
            reason = str(error) if isinstance(error, TrialFailure) else f"{type(error).__name__}: {error}"
            failed = Retrained(
                str(design), seeds, (), (), clock() - began, known=trainer.known_of(design), reason=reason
            )
            record.add_retrained(failed)
            progress.note(f"retraining {design} failed: {reason}")
            continue
        if not counted:
            record.count_reading([str(design) for design in waiting])
            counted = True
        scores = tuple(map(float, plain(trainer.test_scores(trained)))) if test else ()
        record.add_retrained(
            Retrained(
                design=str(design),
                seeds=seeds,
                val_errors=tuple(map(float, trained.val_errors)),
                test_scores=scores,
                seconds=clock() - began,
                details={**trained.details, **_confusions(trainer, trained, test)},
                known=trainer.known_of(design),
            )
        )
    if waiting:
        progress.retraining("", len(waiting), len(waiting))
    return []


def _confusions(trainer: Trainer, trained: Any, test: bool) -> dict[str, Any]:
    """Confusion matrices for the report, over all seeds; none where a trainer of one's own does not tell them."""
    confusion = getattr(trainer, "confusion", None)
    if confusion is None:
        return {}
    parts = ("validation", "test") if test else ("validation",)
    return {"confusion": {part: plain(confusion(trained, part)) for part in parts}}
