"""Settings from defaults, files and flags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pasca.config import RunConfig, read_settings, read_toml
from search_space.errors import ConfigError, InputError, ObjectiveError


def test_settings_are_written_and_read_back() -> None:
    config = RunConfig().with_settings(
        {
            "data": "cora",
            "evaluations": 7,
            "time_budget": "10m",
            "memory": "4GB",
            "space": {"k_pre": (0, 1)},
            "at_most": "val_error=20%",
        }
    )
    again = RunConfig().with_settings(json.loads(json.dumps(config.as_mapping())))
    assert again.as_mapping() == config.as_mapping()
    assert (again.time_budget, again.memory, again.at_most) == (600.0, 4 * 10**9, ("val_error=20%",))


def test_objectives_are_read_from_one_text_or_several() -> None:
    assert RunConfig(objectives="val_error, parameters").objectives == ("val_error", "parameters")  # type: ignore[arg-type]
    assert RunConfig().with_settings({"objectives": ["val_error", "macs"]}).objectives == ("val_error", "macs")


@pytest.mark.parametrize(
    "settings",
    [
        {"evaluations": 0},
        {"evaluations": "ten"},
        {"evaluations": True},
        {"repeats": 0},
        {"retrain": -1},
        {"workers": 0},
        {"threads": 0},
        {"seed": -1},
        {"num_initial": 0},
        {"time_budget": "soon"},
        {"memory": "lots"},
        {"space": "k_pre"},
        {"recipe": 3},
        {"searcher": ""},
        {"device": 0},
        {"run": ""},
        {"resume": "yes"},
        {"run": "a", "out": "b"},
        {"retime": True, "stage_times": "a"},
        {"objectives": 3},
    ],
)
def test_a_setting_without_a_legal_value_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RunConfig().with_settings(settings)


def test_an_unknown_objective_or_bound_is_refused() -> None:
    with pytest.raises(ObjectiveError, match="unknown objective 'accuracy'"):
        RunConfig(objectives=("val_error", "accuracy"))
    with pytest.raises(ObjectiveError, match="unknown objective 'speed'"):
        RunConfig(at_most=("speed=1",))


def test_an_unknown_setting_lists_those_there_are_and_says_where_it_stood() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown setting 'evaluation' in the file; choose from: data, load, evaluations"
    ):
        RunConfig().with_settings({"evaluation": 3}, "the file")


def test_tables_are_merged_name_by_name() -> None:
    config = RunConfig(recipe={"dropout": 0.8, "max_epochs": 50}).with_settings({"recipe": {"dropout": 0.5}})
    assert dict(config.recipe) == {"dropout": 0.5, "max_epochs": 50}


def test_flags_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("evaluations = 30\nseed = 4\n[recipe]\ndropout = 0.8\nmax_epochs = 50\n[space]\nk_pre = [0, 1]\n")
    settings = read_settings(str(file), {"evaluations": 5, "recipe": {"dropout": 0.1}})
    config = RunConfig().with_settings(settings)
    assert (config.evaluations, config.seed) == (5, 4)
    assert dict(config.recipe) == {"dropout": 0.1, "max_epochs": 50}
    assert dict(config.space) == {"k_pre": [0, 1]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"evaluations = ", "is not TOML"),
        (b"\xff\xfe", "is not TOML"),
        (b"evals = 3", "unknown setting 'evals' in the configuration file"),
        (b"evaluations = 0", "at least 1, got 0"),
    ],
)
def test_a_wrong_file_is_refused_with_its_fault(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_settings(str(file), {})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the space file '.*nothing\.toml': No such file"):
        read_toml(tmp_path / "nothing.toml", "the space file")
