"""Repeats a run from what its manifest records, and compares the two trial by trial.

The repetition is a run of its own that begins with the manifest of the first: its settings, seeds, recipe and stage
times. What is compared is exact: the same designs in the same order, and equal values to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.graph import Graph
from engines.history import INTERRUPTED
from engines.trial import Status, Trial
from pasca.manifest import environment, now, write_manifest
from pasca.members import occupied
from pasca.progress import Progress, Silence
from pasca.results import Study
from pasca.runs import is_free, run_folder
from pasca.searching import search
from pasca.settling import STARTING
from pasca.studies import Retrained
from search_space.errors import RunError

_OUTCOME = ("reference_point", "retrained", "roles", "searcher", "updated")
"""What a manifest says of how its run went; a repetition finds that out anew."""

_HARDWARE = ("processor", "cores", "device", "gpu")
"""What of the hardware may change how sums are rounded."""

_NUM_SHOWN = 3
"""Differences shown to people; a program gets all of them."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """A run beside its repetition.

    Attributes:
        run: name of the run.
        folder: of the repetition.
        num_trials: how many trials were compared.
        num_retrained: how many designs trained again after the search were compared.
        differences: what differs, first trial first, each in one line; empty where the two are equal.
        notes: what is not as it was then, or could not be repeated, each in one line.
    """

    run: str
    folder: Path
    num_trials: int
    num_retrained: int
    differences: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether everything that was compared is equal."""
        return not self.differences

    def as_mapping(self) -> dict[str, Any]:
        """JSON types: what `--json` prints."""
        return {
            "run": self.run,
            "folder": str(self.folder),
            "equal": self.equal,
            "trials": self.num_trials,
            "retrained": self.num_retrained,
            "differences": list(self.differences),
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """What there is to say, for people."""
        what = f"{self.num_trials} trials" + (f" and {self.num_retrained} retrained designs" * bool(self.num_retrained))
        if self.equal:
            verdict = [f"{self.run} and its repetition are equal: {what}, the same designs and equal values"]
        else:
            more = len(self.differences) - _NUM_SHOWN
            verdict = [
                f"{self.run} and its repetition differ in {len(self.differences)} place(s) of {what}; the first:",
                *(f"  {line}" for line in self.differences[:_NUM_SHOWN]),
                *([f"  and {more} more"] if more > 0 else []),
            ]
        return [*(f"note: {line}" for line in self.notes), *verdict, f"the repetition is kept in {self.folder}"]


def rerun(
    run: str | os.PathLike[str],
    *,
    data: Any = None,
    retrain: bool = False,
    name: str | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Repetition:
    """Repeat a run and compare: the same designs, and values that are equal to the last bit.

    Args:
        run: its name or folder. One that was interrupted is repeated as far as it came.
        data: the graph, or where it is, if it was given as an object or was moved since.
        retrain: also repeat the training of the front and the classics with fresh seeds, which reads test labels.
        name, out: name or folder of the repetition; the run's name with `-rerun` where neither is given.
    Raises:
        RunError: the run cannot be repeated; the message says why. Nothing was written.
        PascaError: as of `pasca.search`.
    """
    from engines.evaluation.mpi import world

    first = Study.open(run)
    trials = repeatable(first)
    _check_ranks(first.manifest, world().size)
    if name is None and out is None:
        name = _free_name(f"{first.name}-rerun")
    folder = run_folder(name, out)
    if world().rank == 0:
        _check_data(first, data)
        beginning = _beginning(first.manifest, folder.absolute().name, _num_evaluations(trials), retrain)
        with occupied(folder):
            if not is_free(folder):
                raise RunError(f"{folder} is not empty; choose another name or folder for the repetition")
            write_manifest(folder, beginning)
    second = search(data, out=folder, resume=True, progress=progress or Silence())
    again = first.retrained() if retrain else {}
    return Repetition(
        run=first.name,
        folder=folder,
        num_trials=len(trials),
        num_retrained=len(again),
        differences=(
            *_trial_differences(trials, counted(second.history)),
            *_retraining_differences(again, second.retrained()),
        ),
        notes=tuple(_notes(first.manifest, environment(str(first.manifest["config"].get("device", "cpu"))))),
    )


def counted(history: Iterable[Trial[Any]]) -> list[Trial[Any]]:
    """The trials that count, in order, further seeds included: interrupted ones are as if they had never been."""
    return [trial for trial in history if trial.reason != INTERRUPTED]


def _num_evaluations(trials: Iterable[Trial[Any]]) -> int:
    return sum(trial.repeats_of is None for trial in trials)


def repeatable(study: Study) -> list[Trial[Any]]:
    """The finished trials of a run that a repetition must give again, in order.

    Raises:
        RunError: there is none, or what the manifest records does not fix them.
    """
    manifest, run = study.manifest, study.name
    config = manifest["config"]
    if manifest["identity"].get("recipe") is None:
        raise RunError(
            f"run {run} was searched with an evaluator of its own, which the manifest cannot hold; call pasca.search "
            "with it again"
        )
    if manifest.get("joined"):
        raise RunError(
            f"run {run} was the work of {1 + len(manifest['joined'])} processes, so which trial finished first had "
            "a say in its designs; only a run that nobody joined can be repeated"
        )
    at_once = _evaluators(manifest)
    if at_once > 1 and not config.get("deterministic"):
        raise RunError(
            f"run {run} had {at_once} evaluators and not --deterministic, so which trial finished first had a say in "
            "its designs; only a run with one evaluator or --deterministic can be repeated"
        )
    trials: Sequence[Trial[Any]] = list(study.history)
    if at_once > 1:
        # A trial that was interrupted while others went on was seen as running by their suggestions, never again.
        broken = next((i for i, trial in enumerate(trials) if trial.reason == INTERRUPTED), len(trials))
        trials = trials[:broken]
    trials = counted(trials)
    unfinished = next((i for i, trial in enumerate(trials) if not trial.finished), len(trials))
    if not unfinished:
        raise RunError(f"run {run} has no finished trial that could be repeated")
    done = trials[:unfinished]
    if config.get("replications") and config.get("time_budget"):
        raise RunError(
            f"run {run} spread its replications over a time budget; when they came depends on the machine, so it "
            "cannot be repeated"
        )
    if config.get("replications") and _num_evaluations(done) != config["evaluations"]:
        raise RunError(
            f"run {run} did {_num_evaluations(done)} of {config['evaluations']} evaluations, and its replications "
            "follow that total; continue it with --resume first"
        )
    return done


def _check_data(study: Study, given: Any) -> None:
    """Make sure that the data is what it was, before anything is written."""
    from pasca.datasets import load

    config = study.manifest["config"]
    source = config["data"] if given is None else given
    checksum = given.checksum if isinstance(given, Graph) else load(source, **config["load"]).checksum
    recorded = str(study.manifest["identity"]["data"])
    if checksum != recorded:
        what = "the graph given" if isinstance(given, Graph) else source
        raise RunError(
            f"{what} is not what run {study.name} was searched on: "
            f"its checksum begins with {checksum[:12]}, that of the run with {recorded[:12]}; restore the data, or say "
            "where it is with --data"
        )


def _evaluators(manifest: Mapping[str, Any]) -> int:
    """How many designs were evaluated at the same time."""
    groups = manifest.get("roles", {}).get("groups")
    return len(groups) if groups else int(manifest["config"].get("workers", 1))


def _check_ranks(manifest: Mapping[str, Any], size: int) -> None:
    ranks = int(manifest.get("ranks", 1))
    if ranks != size:
        start = f"mpiexec -n {ranks} pasca rerun" if ranks > 1 else "pasca rerun without mpiexec"
        raise RunError(f"run {manifest['run']} was searched on {ranks} rank(s), this is {size}; start {start}")


def _free_name(stem: str) -> str:
    name, count = stem, 1
    while not is_free(run_folder(name, None)):
        count += 1
        name = f"{stem}-{count}"
    return name


def _beginning(manifest: Mapping[str, Any], name: str, num_trials: int, retrain: bool) -> dict[str, Any]:
    """The manifest that the repetition starts from: that of the run, before anything had happened."""
    config = {
        **manifest["config"],
        "evaluations": num_trials,
        "time_budget": None,
        "retrain": manifest["config"].get("retrain", 0) if retrain else 0,
        # As many as it turned out, whatever this machine would choose.
        "threads": manifest.get("threads") or manifest["config"].get("threads"),
        # The record and its hops are this run's own.
        "storage": None,
        "hop_store": None,
    }
    kept = {key: value for key, value in manifest.items() if key not in _OUTCOME}
    return {**kept, "run": name, "created": now(), "config": config, "status": STARTING, "ending": ""}


def _trial_differences(first: Sequence[Trial[Any]], second: Sequence[Trial[Any]]) -> list[str]:
    differences = []
    for there, here in zip(first, second, strict=False):
        where = f"trial {there.number}"
        if str(there.design) != str(here.design):
            differences.append(f"{where}: design {there.design} there, {here.design} here")
            # What follows was suggested from other trials: it says nothing of its own.
            break
        where = f"{where} {there.design}"
        if there.status is not here.status:
            differences.append(f"{where}: {_status(there)} there, {_status(here)} here")
            continue
        if there.seeds != here.seeds:
            differences.append(f"{where}: seeds {list(there.seeds)} there, {list(here.seeds)} here")
        for what, before, after in (("", there.values, here.values), (" variance", there.variances, here.variances)):
            differences += [
                f"{where}: {key}{what} {before.get(key)!r} there, {after.get(key)!r} here"
                for key in before.keys() | after.keys()
                if not _same(before.get(key), after.get(key))
            ]
    if not differences and len(second) != len(first):
        differences.append(f"{len(first)} trials there, {len(second)} here")
    return differences


def _retraining_differences(first: Mapping[str, Retrained], second: Mapping[str, Retrained]) -> list[str]:
    differences = []
    for design, there in first.items():
        here = second.get(design)
        if here is None:
            differences.append(f"retrained {design}: there only")
            continue
        differences += [
            f"retrained {design}: {field} {list(getattr(there, field))} there, {list(getattr(here, field))} here"
            for field in ("seeds", "val_errors", "test_scores")
            if getattr(there, field) != getattr(here, field)
        ]
    return differences


def _same(there: float | None, here: float | None) -> bool:
    """Equal to the last bit; one NaN equals another."""
    return there == here or (there != there and here != here)


def _status(trial: Trial[Any]) -> str:
    return trial.status.value + (f" ({trial.reason})" if trial.status is Status.FAILED else "")


def _notes(manifest: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """What is not as it was when the run was made, and may be why a repetition differs."""
    notes = []
    budget = manifest["config"].get("time_budget")
    if budget is not None:
        notes.append(f"the run was bounded by a time of {budget:g} s; repeated is what it did in it")
    for part, names in (("versions", manifest.get("versions", {})), ("hardware", _HARDWARE)):
        then, today = manifest.get(part, {}), present[part]
        changed = [f"{n} {then.get(n)} then, {today.get(n)} now" for n in names if then.get(n) != today.get(n)]
        if changed:
            notes.append(f"other {part}: {'; '.join(changed)}")
    if manifest.get("commit") != present["commit"]:
        notes.append(f"another state of the source: {manifest.get('commit')} then, {present['commit']} now")
    return notes
