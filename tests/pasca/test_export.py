"""A model folder appears whole or not at all, and says what it holds."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import pasca.export
from engines.evaluation.inference import classify
from engines.evaluation.recipe import Recipe
from engines.graph import Graph
from pasca.export import ensemble_errors, export_design, read_design, write_design
from pasca.model import load_model
from search_space.architecture import Architecture
from search_space.errors import ConfigError, DesignError, RunError, StorageError

DESIGN = "ppr0.1^2/weighted/mlp-2/augmented^2"
FILES = ["README.md", "model.json", "model.onnx", "weights.safetensors"]


def test_a_model_is_four_files_and_leaves_nothing_beside(export: Callable[..., Path], named_graph: Graph) -> None:
    folder = export(DESIGN, named_graph)
    assert sorted(os.listdir(folder)) == FILES
    assert os.listdir(folder.parent) == [folder.name]


def test_the_description_says_what_the_model_is(
    tmp_path: Path, make_trained: Callable[..., Any], named_graph: Graph
) -> None:
    recipe = Recipe(hidden_width=8, normalise="standard", dropout=0.8)
    metrics = {"val_error": np.float64(0.25), "test_accuracy": {"mean": 0.75, "std": float("nan")}}
    trained = make_trained(DESIGN, named_graph, normalise="standard", val_errors=(0.3, 0.2, 0.4))
    folder = export_design(
        trained, named_graph, recipe, tmp_path / "m", metrics=metrics, protocol={"test labels": "read once"}
    )
    found = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    assert found["design"] == DESIGN
    assert found["pre"] == {"aggregator": "ppr0.1", "steps": 2}
    assert found["post"] == {"aggregator": "augmented", "steps": 2}
    assert found["hop_stack"] == {"hops": 3, "columns": 4, "read": [0, 1, 2]}
    assert found["classes"] == ["red", "green", "blue"]
    assert found["features"] == {"count": 4, "names": ["f1", "f2", "f3", "f4"], "made": None, "belong_to": None}
    assert found["normalisation"]["mean"] == named_graph.features.mean(axis=0, dtype=np.float64).tolist()
    assert found["adjacency"] == {"directed": False, "weighted": False}
    assert found["recipe"] == recipe.as_mapping()
    assert found["repeats"] == {"count": 1, "seeds": [101], "val_errors": [0.2], "best_epochs": [1], "val_error": 0.2}
    assert found["trained_on"]["checksum"] == named_graph.checksum
    assert found["metrics"] == {"val_error": 0.25, "test_accuracy": {"mean": 0.75, "std": "nan"}}
    assert found["protocol"] == {"test labels": "read once"}
    assert set(found["versions"]) >= {"pasca", "python", "torch", "numpy"}


@pytest.mark.parametrize(
    ("val_errors", "val_losses", "repeat", "expected"),
    [
        ((0.2, 0.1, 0.3), (1.0, 9.0, 1.0), None, 1),
        ((0.2, 0.1, 0.1), (1.0, 3.0, 2.0), None, 2),
        ((0.1, 0.1, 0.1), (2.0, 2.0, 2.0), None, 0),
        ((0.2, 0.1, 0.3), (1.0, 9.0, 1.0), 2, 2),
    ],
)
def test_the_best_repeat_leaves_unless_another_is_asked_for(
    tmp_path: Path,
    make_trained: Callable[..., Any],
    named_graph: Graph,
    val_errors: tuple[float, ...],
    val_losses: tuple[float, ...],
    repeat: int | None,
    expected: int,
) -> None:
    trained = make_trained(DESIGN, named_graph, val_errors=val_errors, val_losses=val_losses)
    recipe = Recipe(hidden_width=8)
    folder = export_design(trained, named_graph, recipe, tmp_path / "m", metrics={}, protocol={}, repeat=repeat)
    weights = load_file(folder / "weights.safetensors")
    state = trained.trained.network.state_dict()
    assert weights.keys() == state.keys()
    for name, tensor in state.items():
        np.testing.assert_array_equal(weights[name], tensor.numpy()[expected : expected + 1])


def test_an_ensemble_holds_every_repeat_and_states_its_own_error(
    export: Callable[..., Path], make_trained: Callable[..., Any], named_graph: Graph
) -> None:
    folder = export(DESIGN, named_graph, ensemble=True)
    validation = named_graph.split.validation
    predicted = load_model(folder).predict(named_graph).probabilities[validation].argmax(axis=1)
    stated = json.loads((folder / "model.json").read_text())["repeats"]["val_error"]
    assert stated == pytest.approx((predicted != named_graph.labels[validation]).mean())
    assert "Validation error of the ensemble" in (folder / "README.md").read_text()
    weights = load_file(folder / "weights.safetensors")
    for name, tensor in make_trained(DESIGN, named_graph).trained.network.state_dict().items():
        np.testing.assert_array_equal(weights[name], tensor.numpy())


def test_the_error_of_an_ensemble_is_set_beside_that_of_its_best_network(
    make_trained: Callable[..., Any], named_graph: Graph
) -> None:
    recipe = Recipe(hidden_width=8)
    trained = make_trained(DESIGN, named_graph, val_errors=(0.3, 0.2, 0.4))
    validation = named_graph.split.validation
    features = trained.normaliser.apply(named_graph.features)
    members = classify(trained.design, trained.trained.network, named_graph.adjacency, features)
    wrong = members.mean(axis=0)[validation].argmax(axis=1) != named_graph.labels[validation]
    assert ensemble_errors(trained, named_graph, recipe) == pytest.approx((wrong.mean(), 0.2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeat": 3}, r"trained 3 time\(s\), so a repeat is 0 to 2, got 3"),
        ({"repeat": -1}, "got -1"),
        ({"repeat": 0, "ensemble": True}, "an ensemble holds all repeats"),
    ],
)
def test_a_repeat_that_cannot_be_exported_is_refused(
    tmp_path: Path, make_trained: Callable[..., Any], named_graph: Graph, options: dict[str, Any], message: str
) -> None:
    trained = make_trained(DESIGN, named_graph)
    with pytest.raises(ConfigError, match=message):
        export_design(trained, named_graph, Recipe(hidden_width=8), tmp_path / "m", metrics={}, protocol={}, **options)
    assert os.listdir(tmp_path) == []


def test_an_existing_folder_is_refused_and_untouched(export: Callable[..., Path], named_graph: Graph) -> None:
    folder = export(DESIGN, named_graph)
    before = {name: (folder / name).read_bytes() for name in FILES}
    with pytest.raises(RunError, match=r"model exists already; give another folder"):
        export("-/-/mlp-1/-", named_graph)
    assert {name: (folder / name).read_bytes() for name in FILES} == before


def test_the_same_export_gives_the_same_bytes_and_names_no_machine(
    export: Callable[..., Path], named_graph: Graph
) -> None:
    one, other = (export(DESIGN, named_graph, name=name) for name in ("one", "other"))
    root = str(Path(__file__).resolve().parents[2]).encode()
    for name in FILES:
        content = (one / name).read_bytes()
        assert content == (other / name).read_bytes()
        assert root not in content
        assert b"cuda" not in content


def test_names_from_data_have_no_effect_in_the_card(export: Callable[..., Path], named_graph: Graph) -> None:
    graph = replace(
        named_graph, name="<img src=x onerror=alert(1)>", class_names=("</script><b>x", "a&b", "[x](y) | `z`\n# big")
    )
    text = (export(DESIGN, graph) / "README.md").read_text(encoding="utf-8")
    assert "<img" not in text
    assert "<b>" not in text
    assert "a&amp;b" in text
    assert "\\[x\\](y) \\| \\`z\\` \\# big" in text


def test_a_full_disk_leaves_nothing_and_the_earlier_export_loads(
    export: Callable[..., Path], named_graph: Graph
) -> None:
    """The limit on file sizes stands for a full disk."""
    earlier = export(DESIGN, named_graph)
    _, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
    try:
        with pytest.raises(StorageError, match=r"cannot write .*/second: File too large"):
            export(DESIGN, named_graph, name="second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(earlier.parent) == [earlier.name]
    assert str(load_model(earlier).design) == DESIGN


def test_what_a_killed_export_left_goes_with_the_next_one_of_the_same_name(
    tmp_path: Path, export: Callable[..., Path], named_graph: Graph
) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from pasca.atomic import new_folder
with new_folder(Path(sys.argv[1])) as folder:
    (folder / "model.json").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    for name in ("model", "other"):
        command = [sys.executable, "-c", code, str(tmp_path / name)]
        assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
    one, other = sorted(os.listdir(tmp_path))
    assert one.startswith(".pasca-")
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in (one, other)} == {0o700}
    export(DESIGN, named_graph)
    left, model = sorted(os.listdir(tmp_path))
    assert left in (one, other)
    assert model == "model"
    export(DESIGN, named_graph, name="other")
    assert sorted(os.listdir(tmp_path)) == ["model", "other"]


def test_a_writer_of_the_same_folder_that_is_still_at_work_is_left_alone(
    export: Callable[..., Path], named_graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = pasca.export.file_checksum

    def overtaken(path: Path) -> str:
        monkeypatch.setattr(pasca.export, "file_checksum", original)
        folder = export(DESIGN, named_graph)
        folder.rename(folder.with_name("first"))
        return original(path)

    monkeypatch.setattr(pasca.export, "file_checksum", overtaken)
    folder = export(DESIGN, named_graph)
    assert sorted(os.listdir(folder)) == FILES
    assert sorted(os.listdir(folder.parent)) == ["first", "model"]


def test_a_design_alone_is_written_and_read(tmp_path: Path) -> None:
    design = Architecture.parse(DESIGN)
    path = write_design(design, tmp_path / "design.json")
    assert json.loads(path.read_text()) == {"format": "pasca-design", "format_version": 1, "design": DESIGN}
    assert read_design(path) == design


def test_the_design_of_a_model_is_read_from_its_description(export: Callable[..., Path], named_graph: Graph) -> None:
    assert str(read_design(export(DESIGN, named_graph) / "model.json")) == DESIGN


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read .*design.json: No such file"),
        ("{", "is not JSON"),
        ("[]", "holds no design; `pasca export --architecture` writes one"),
        ('{"format": "other"}', "holds no design"),
        ('{"format": "pasca-design", "format_version": 2, "design": "x"}', "version 2, .* up to 1; use a newer pasca"),
        ('{"format": "pasca-design", "format_version": 1}', "a design has four parts"),
    ],
)
def test_a_file_without_a_design_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "design.json").write_text(content)
    with pytest.raises(DesignError, match=message):
        read_design(tmp_path / "design.json")


def test_a_design_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="missing"):
        write_design(Architecture.parse(DESIGN), tmp_path / "missing" / "design.json")
