"""Study: a run as Python sees it, its trials, its front and what can be done with them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engines.graph import Graph
from engines.history import History
from engines.objectives import OBJECTIVES, Bound, Objective, parse_bound, register_objective
from engines.search.reference import reference_point
from engines.trial import Trial
from pasca.config import RunConfig
from pasca.databases import open_sqlite, open_url
from pasca.fronts import Front, make_front, trial_row
from pasca.manifest import read_manifest
from pasca.members import is_held
from pasca.picking import pick
from pasca.runs import STUDY_FILE, find_run
from pasca.studies import POSTERIOR, Retrained, StudyRecord
from pasca.working_time import working_seconds
from search_space.architecture import Architecture
from search_space.classics import CLASSICS
from search_space.errors import DesignError, RunError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

    from pasca.effects import Effects


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
        for stated in manifest.get("objectives", ()):
            if stated["name"] not in OBJECTIVES:
                register_objective(Objective(**stated))
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

    def working_seconds(self) -> dict[int, float]:
        """How long the search had worked when each trial ended, pauses left out; see `pasca.working_time`."""
        return working_seconds(self.history, self._record.intervals())

    def in_order_of_ending(self, ended: Mapping[int, float] | None = None) -> list[Trial[Any]]:
        """The finished trials, first ended first; `ended` is `working_seconds()` where that is known already."""
        ended = self.working_seconds() if ended is None else ended
        finished = [trial for trial in self.history if trial.finished]
        return sorted(finished, key=lambda trial: (ended.get(trial.number, 0.0), trial.number))

    def readings(self) -> list[dict[str, Any]]:
        """Every occasion on which test labels were read: its time and the designs."""
        return self._record.readings()

    def effects(self) -> tuple[Effects, ...]:
        """What each choice of the space did to each objective; see `pasca.effects`.

        Raises:
            RunError: the run searched a space of its own, or has too few trials.
        """
        from pasca.effects import run_effects

        return run_effects(self)

    def report(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Path:
        """Write the run as one HTML page that needs no network; options as of `pasca.reporting.write_report`.

        Args:
            path: of the page; `report.html` in the run's folder when None.
        Returns:
            The page's path.
        """
        from pasca.reporting import write_report

        return write_report(self, path, **options)

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
            posterior=self._record.attribute(POSTERIOR),
            num_test_readings=len(self._record.readings()),
            ending=str(self.manifest.get("ending") or self.status),
        )

    def pick(self, rule: str = "knee", at_most: str | Iterable[str] = ()) -> Trial[Any]:
        """The trial that a rule means: `knee`, `best:OBJECTIVE`, an id, or a design; see `pasca.picking`.

        Raises:
            RunError, DesignError: nothing matches.
        """
        return pick(rule, self.history, self.objectives, self._bounds(at_most), self.name)

    def export(
        self,
        rule: str = "knee",
        *,
        out: str | os.PathLike[str] | None = None,
        at_most: str | Iterable[str] = (),
        ensemble: bool = False,
        device: str | None = None,
        threads: int | None = None,
    ) -> Path:
        """Train the picked design and write it as a model folder, which `pasca.load_model` reads.

        It is trained with the seeds that gave the recorded figures: those of the retraining, or of the search where
        the design was not retrained. Test labels are not read.

        Args:
            rule, at_most: as in `pick`.
            out: the folder to write; `model-ID` in the run's folder when None.
            ensemble: export the networks of all seeds, which are averaged, where their validation error together is
                lower than that of the best one alone; otherwise that one. The model's protocol states both.
            device, threads: in place of the run's.
        Returns:
            The folder.
        Raises:
            RunError: nothing matches, the folder exists, or the data is not what the run was searched on.
            StorageError: it could not be written; nothing is left behind.
            TrialFailure: it could not be trained.
        """
        from pasca.export import ensemble_errors, export_design

        trial = self.pick(rule, at_most)
        folder = self.folder / f"model-{trial.number}" if out is None else Path(out)
        if os.path.lexists(folder):
            raise RunError(f"{folder} exists already; give another folder with --out or remove it")
        again = self.retrained().get(str(trial.design))
        seeds = trial.seeds if again is None or again.reason is not None else again.seeds
        evaluator = self._local_evaluator(device, threads)
        row = trial_row(trial, self.retrained()).as_mapping(evaluator.recipe.metric)
        figures = ("val_error", "inference_seconds", "test_accuracy", "test_score", "retrained_val_error")
        trained = evaluator.train(trial.design, seeds)
        errors = {}
        if ensemble:
            together, alone = ensemble_errors(trained, evaluator.graph, evaluator.recipe)
            errors = {"ensemble_val_error": together, "best_network_val_error": alone}
            ensemble = together < alone
        return export_design(
            trained,
            evaluator.graph,
            evaluator.recipe,
            folder,
            metrics={name: row[name] for name in figures if row[name] is not None},
            protocol={
                "run": self.name,
                "pick": rule,
                "split": evaluator.graph.split.name,
                "search_seeds": list(trial.seeds),
                "training_seeds": list(seeds),
                "val_error": "mean over the seeds of the search, which chose by it",
                "test": "mean and deviation over fresh seeds, measured once after the search",
                "test_readings": len(self._record.readings()),
                **errors,
            },
            ensemble=ensemble,
        )

    def export_architecture(
        self, rule: str = "knee", *, out: str | os.PathLike[str] | None = None, at_most: str | Iterable[str] = ()
    ) -> Path:
        """Write the picked design alone as JSON, which `pasca evaluate` takes on any graph; returns the file.

        Raises:
            RunError: nothing matches, or the file exists.
        """
        from pasca.export import write_design

        trial = self.pick(rule, at_most)
        path = self.folder / f"design-{trial.number}.json" if out is None else Path(out)
        if os.path.lexists(path):
            raise RunError(f"{path} exists already; give another file with --out or remove it")
        return write_design(trial.design, path)

    def _local_evaluator(self, device: str | None, threads: int | None) -> Any:
        """The search's own evaluator, or one like it on the same data."""
        from engines.evaluation.recipe import Recipe
        from pasca.datasets import load
        from pasca.problems import make_local_evaluator
        from pasca.progress import Silence

        if self.manifest["identity"].get("recipe") is None:
            raise RunError(
                f"run {self.name} was searched with an evaluator of its own, so pasca cannot train its designs"
            )
        if self._evaluator is not None and device is None and threads is None:
            return self._evaluator
        stored = {name: value for name, value in self.manifest["config"].items() if name not in ("run", "out")}
        changed = {name: value for name, value in (("device", device), ("threads", threads)) if value is not None}
        config = RunConfig().with_settings(stored, f"the manifest of {self.folder}").with_settings(changed)
        graph = load(config.data, **config.load) if self._graph is None else self._graph
        if graph.checksum != self.manifest["identity"]["data"]:
            raise RunError(
                f"{config.data} is no longer the data that run {self.name} was searched on; restore it first"
            )
        return make_local_evaluator(
            config,
            graph,
            Recipe.from_mapping(self.manifest["identity"]["recipe"]),
            self.manifest.get("stage_times"),
            Silence(),
        )

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
