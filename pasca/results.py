"""Study: a run as Python sees it, its trials, its front and what can be done with them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engines.graph import Graph
from engines.history import History
from engines.objectives import OBJECTIVES, Bound, Objective, parse_bound
from engines.search.reference import reference_point
from engines.trial import Trial
from pasca.databases import open_sqlite, open_url
from pasca.fronts import Front, make_front
from pasca.manifest import read_manifest
from pasca.picking import pick
from pasca.runs import STUDY_FILE, find_run, is_held
from pasca.studies import Retrained, StudyRecord
from search_space.architecture import Architecture
from search_space.classics import CLASSICS
from search_space.errors import DesignError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


class Study:
    """One run: searched just now, or opened again.

    Args:
        folder: of the run.
        manifest: what the run was asked to do; see `pasca.manifest`.
        record: its trials.
        evaluator, graph: those of the search; None for a run that was opened again.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        record: StudyRecord[Any],
        evaluator: Any = None,
        graph: Graph | None = None,
    ) -> None:
        self.folder, self.manifest = folder, manifest
        self._record, self._evaluator, self._graph = record, evaluator, graph

    @classmethod
    def open(cls, run: str | os.PathLike[str]) -> Study:
        """Open a run by name or folder, whether it has ended, was interrupted, or is still going on.

        Raises:
            RunError: there is no such run, or its record cannot be read.
        """
        folder = find_run(run)
        manifest = read_manifest(folder)
        storage, where = open_storage(folder, manifest["config"].get("storage"), create=False)
        objectives = _objectives(manifest)
        record: StudyRecord[Any] = StudyRecord.open(storage, manifest["run"], objectives, decode=_readable, where=where)
        return cls(folder, manifest, record)

    @property
    def name(self) -> str:
        """The run's name."""
        return str(self.manifest["run"])

    @property
    def status(self) -> str:
        """`finished`, `running`, `interrupted` or `failed`; what a killed process left as running is interrupted."""
        status = str(self.manifest.get("status"))
        return status if status not in ("starting", "running") or is_held(self.folder) else "interrupted"

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What was searched for."""
        return _objectives(self.manifest)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The bounds that the search was given."""
        return tuple(parse_bound(text) for text in self.manifest["identity"]["at_most"])

    @property
    def history(self) -> History[Any]:
        """Every trial, in the order of their numbers."""
        return self._record.history()

    def retrained(self) -> dict[str, Retrained]:
        """Designs trained again with fresh seeds after the search, by text form."""
        return self._record.retrained()

    def front(self, at_most: str | Iterable[str] = ()) -> Front:
        """The Pareto front, with the classics beside it.

        Args:
            at_most: bounds such as `inference_seconds=5ms`, beside those of the search.
        Raises:
            ObjectiveError: a bound is not one.
        """
        return make_front(
            self.name,
            self.history,
            objectives=self.objectives,
            bounds=self._bounds(at_most),
            retrained=self.retrained(),
            classics=CLASSICS,
            reference=self._reference(),
            metric=str(self.manifest.get("metric", "accuracy")),
            num_test_readings=len(self._record.readings()),
            ending=str(self.manifest.get("ending") or self.status),
        )

    def pick(self, rule: str = "knee", at_most: str | Iterable[str] = ()) -> Trial[Any]:
        """The trial that a rule means: `knee`, `best:OBJECTIVE`, an id, or a design; see `pasca.picking`.

        Raises:
            RunError, DesignError: nothing matches.
        """
        return pick(rule, self.history, self.objectives, self._bounds(at_most), self.name)

    def _bounds(self, at_most: str | Iterable[str]) -> tuple[Bound, ...]:
        texts = (at_most,) if isinstance(at_most, str) else tuple(at_most)
        return (*self.bounds, *(parse_bound(text) for text in texts))

    def _reference(self) -> dict[str, float] | None:
        known = {name: (float(low), float(high)) for name, (low, high) in self.manifest.get("extents", {}).items()}
        return reference_point(self.history, self.objectives, known, int(self.manifest["identity"]["num_initial"]))


def open_storage(folder: Path, url: str | None, *, create: bool) -> tuple[BaseStorage, str]:
    """Open the database of a run, and say where it is for messages.

    Args:
        url: in place of the file in the run's folder.
    Raises:
        RunError: it cannot be opened.
    """
    if url is not None:
        return open_url(url), "the database of --storage"
    path = folder / STUDY_FILE
    return open_sqlite(path, create=create), f"the record {path}"


def _objectives(manifest: Mapping[str, Any]) -> tuple[Objective, ...]:
    """The run's objectives; one whose values were not known beforehand counts as measured."""
    return tuple(
        OBJECTIVES[name] if name in manifest.get("extents", {}) else replace(OBJECTIVES[name], kind="measured")
        for name in manifest["identity"]["objectives"]
    )


def _readable(text: str) -> Any:
    """The design of a text form; the text itself where it is of a space that only the search knew."""
    try:
        return Architecture.parse(text)
    except DesignError:
        return text
