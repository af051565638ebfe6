"""RunConfig: every setting of a search, from defaults, a file and flags."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engines.objectives import DEFAULT_OBJECTIVES, parse_bound, parse_objectives
from pasca.plain import plain
from pasca.quantities import parse_bytes, parse_seconds
from search_space.errors import ConfigError

HOP_TYPES = ("float32", "float16")
SPACES = ("paper", "extended")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What a search is asked to do; recorded in the run's manifest.

    Attributes:
        data: name of an embedded data set, or a path.
        load: how the data is to be read: fields of `pasca.datasets.LoadOptions`.
        evaluations: total of evaluations after which the search ends.
        time_budget: seconds after which it ends, retraining included; None for no limit. Text such as `10m` is read.
        trial_timeout: seconds that one design may take, all its repeats together, before its trial fails; None for no
            limit. Text such as `90s` is read. Every worker is a process then, a single one too.
        seed: fixes designs, initial weights and dropout.
        repeats: how often each design is trained, with different seeds.
        objectives: names, two or more; one comma-separated text is read too.
        at_most: bounds such as `inference_seconds=5ms`.
        searcher: name of the searcher.
        num_initial: designs tried before the surrogate takes over.
        warm_start: names or folders of earlier runs on similar graphs, whose best designs are tried early.
        space: restrictions of the paper's space: arguments of `SearchSpace.paper`; or with `base = "extended"` of the
            extended one.
        recipe: fields of the training recipe that differ from its defaults.
        retrain: fresh seeds that the front and the classics are trained with in the end; 0 leaves that out.
        replications: trainings at most that give promising designs further seeds, spread over the search, or its time
            budget, and besides the evaluations, until it is certain enough which belong on the front; 0 leaves that
            out.
        workers: designs evaluated at the same time, each by a process of its own; by threads of this one where training
            is on another device than the CPU, or the evaluator is one's own.
        ranks_per_evaluator: under mpiexec, how many ranks evaluate one design together.
        group: how such ranks share the work: fields of `pasca.ranks.GROUP_FIELDS`.
        deterministic: with several workers, let seed and workers fix the designs.
        early_stopping: train a design once first, and its other repeats only if the front leaves it a chance.
        device: where to train: `cpu`, or a name that torch knows.
        threads: threads of one evaluator; None shares the cores there are among the workers.
        memory: bytes that features, hops and training may take; None for half of what is free. Text such as `4GB` is
            read.
        hop_store: folder in which hops stay for later runs; `cache` for one of pasca's own, None for this run only.
        hop_store_limit: bytes that the hop store may take. Text such as `50GB` is read.
        hop_dtype: how hops are kept: `float32`, or `float16`, which halves what they take.
        retime: measure the stage times anew although they are known.
        stage_times: a run whose stage times to take; None measures them or takes the stored ones.
        run, out: name or folder of the run; None for a name made of the data's and the time.
        storage: database URL instead of a file in the run's folder.
        resume: continue a run that exists.
        join: work on a run that exists together with the processes that are at it, or continue it where none is.
    Raises:
        ConfigError, ObjectiveError: a setting has no legal value.
    """

    data: str = "digits"
    load: Mapping[str, Any] = field(default_factory=dict)
    evaluations: int = 100
    time_budget: float | None = None
    trial_timeout: float | None = None
    seed: int = 0
    repeats: int = 3
    objectives: tuple[str, ...] = DEFAULT_OBJECTIVES
    at_most: tuple[str, ...] = ()
    searcher: str = "ehvi"
    num_initial: int = 16
    warm_start: tuple[str, ...] = ()
    space: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    retrain: int = 10
    replications: int = 0
    workers: int = 1
    ranks_per_evaluator: int = 1
    group: Mapping[str, Any] = field(default_factory=dict)
    deterministic: bool = False
    early_stopping: bool = False
    device: str = "cpu"
    threads: int | None = None
    memory: int | None = None
    hop_store: str | None = None
    hop_store_limit: int = 20 * 10**9
    hop_dtype: str = "float32"
    retime: bool = False
    stage_times: str | None = None
    run: str | None = None
    out: str | None = None
    storage: str | None = None
    resume: bool = False
    join: bool = False

    def __post_init__(self) -> None:
        self._set("data", os.fspath(self.data))
        for name, least in (
            ("evaluations", 1),
            ("seed", 0),
            ("repeats", 1),
            ("num_initial", 1),
            ("retrain", 0),
            ("replications", 0),
            ("workers", 1),
            ("ranks_per_evaluator", 1),
        ):
            _check_count(name, getattr(self, name), least)
        if self.threads is not None:
            _check_count("threads", self.threads, 1)
        for name in ("time_budget", "trial_timeout"):
            if getattr(self, name) is not None:
                self._set(name, parse_seconds(getattr(self, name), name))
        if self.memory is not None:
            self._set("memory", parse_bytes(self.memory, "memory"))
        self._set("hop_store_limit", parse_bytes(self.hop_store_limit, "hop_store_limit"))
        if self.hop_dtype not in HOP_TYPES:
            raise ConfigError(f"unknown hop_dtype {self.hop_dtype!r}; choose from: {', '.join(HOP_TYPES)}")
        for name in ("load", "space", "recipe", "group"):
            value = getattr(self, name)
            if not isinstance(value, Mapping):
                raise ConfigError(f"{name} is a table of names and values, got {value!r}")
            self._set(name, MappingProxyType(dict(value)))
        for name in ("searcher", "device"):
            _check_text(name, getattr(self, name))
        for name in ("run", "out", "storage", "stage_times", "hop_store"):
            value = getattr(self, name)
            if value is not None:
                self._set(name, _check_text(name, os.fspath(value)))
        for name in ("deterministic", "early_stopping", "retime", "resume", "join"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} is true or false, got {getattr(self, name)!r}")
        if self.run is not None and self.out is not None:
            raise ConfigError(f"a run has a name or a folder of its own, got run={self.run!r} and out={self.out!r}")
        if self.retime and self.stage_times is not None:
            raise ConfigError("stage times are measured anew (retime) or taken from a run (stage_times), got both")
        if self.early_stopping and self.deterministic and self.workers > 1:
            raise ConfigError(
                "which design is stopped early depends on which worker finishes first, so early_stopping with several "
                "workers is not deterministic; leave one of the three out"
            )
        self._set("objectives", tuple(objective.name for objective in parse_objectives(_texts(self.objectives))))
        self._set("at_most", (self.at_most,) if isinstance(self.at_most, str) else tuple(self.at_most))
        for text in self.at_most:
            parse_bound(text)
        self._set("warm_start", (self.warm_start,) if isinstance(self.warm_start, str) else tuple(self.warm_start))
        for run in self.warm_start:
            _check_text("warm_start", run)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def as_mapping(self) -> dict[str, Any]:
        """The settings as JSON types; `with_settings` reads them back."""
        return {name: plain(getattr(self, name)) for name in setting_names()}

    def with_settings(self, settings: Mapping[str, Any], source: str = "the settings") -> RunConfig:
        """This configuration with some settings replaced; tables are replaced name by name.

        Args:
            source: where the settings come from, for messages.
        Raises:
            ConfigError: a setting does not exist or has no legal value.
        """
        legal = setting_names()
        for name in settings:
            if name not in legal:
                raise ConfigError(f"unknown setting {name!r} in {source}; choose from: {', '.join(legal)}")
        merged = dict(settings)
        for name in ("load", "space", "recipe", "group"):
            if isinstance(merged.get(name), Mapping):
                merged[name] = {**getattr(self, name), **merged[name]}
        try:
            return replace(self, **merged)
        except TypeError as error:
            raise ConfigError(f"{source}: {error}") from None


def setting_names() -> list[str]:
    """Names of all settings, in order."""
    return [setting.name for setting in fields(RunConfig)]


def read_toml(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """Read a TOML file.

    Args:
        what: what the file is to the user, for messages.
    Raises:
        ConfigError: the file is missing or is not TOML; the message names file and place.
    """
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"cannot read {what} {str(path)!r}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{what} {str(path)!r} is not TOML: {error}") from None


def read_space(name: str) -> dict[str, Any]:
    """Restrictions of a space, from what `--space` gives: the name of a space, or a TOML file.

    Raises:
        ConfigError: it is neither, or the file is not TOML.
    """
    if name in SPACES:
        return {"base": name}
    if not Path(name).suffix and not Path(name).exists():
        raise ConfigError(f"unknown space {name!r}; choose from: {', '.join(SPACES)}, or give a TOML file")
    return read_toml(name, "the space file")


def read_settings(path: str | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a configuration file, overridden by those of the command line; tables name by name.

    Raises:
        ConfigError: the file cannot be read or names a setting that does not exist.
    """
    if path is None:
        return dict(flags)
    settings = read_toml(path, "the configuration file")
    RunConfig().with_settings(settings, f"the configuration file {path!r}")
    for name, value in flags.items():
        both = isinstance(value, Mapping) and isinstance(settings.get(name), Mapping)
        settings[name] = {**settings[name], **value} if both else value
    return settings


def _texts(value: Any) -> Any:
    """Objectives as one text or a sequence of texts, whatever sequence a file or a call gave."""
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"objectives is a list of names, got {value!r}")
    return tuple(value)


def _check_count(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is a whole number of at least {least}, got {value!r}")


def _check_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} is a text, got {value!r}")
    return value
