"""Runs that reports are made of: small real searches, one with names that would be markup, one without a front."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.graph import Graph, Split, undirected

NASTY_NAME = "<img src=x onerror=alert(1)>"
NASTY_CLASSES = ("</script><b>x", "a&b", "%{y} $1$ [red]x[/red]")

SPACE = {
    "k_pre": [0, 1, 2],
    "pre_aggregator": ["augmented", "ppr0.1"],
    "message": ["none", "mean"],
    "k_trans": [1, 2],
    "k_post": [0, 1],
    "post_aggregator": ["augmented"],
}


def small_graph(name: str, class_names: tuple[str, ...]) -> Graph:
    """60 nodes in three classes that their features tell apart, mostly linked to their own."""
    rng = np.random.default_rng(5)
    N = 60
    labels = np.arange(N) % 3
    sources = rng.integers(N, size=180)
    targets = np.where(rng.random(180) < 0.8, (sources + 3 * rng.integers(20, size=180)) % N, rng.integers(N, size=180))
    adjacency, _, _ = undirected(sources, targets, N)
    features = np.eye(3)[labels] + rng.normal(scale=1.2, size=(N, 3))
    return Graph(
        name=name,
        adjacency=adjacency,
        features=features.astype(np.float32),
        labels=labels.astype(np.int64),
        class_names=class_names,
        split=Split(np.arange(15), np.arange(15, 36), np.arange(36, 60), "by hand"),
        notes=("a note with <b>markup</b>",),
    )


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PASCA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Search a small graph; gives the Study."""
    from pasca.searching import search

    def make(
        run: str, *, graph_name: str = "small", class_names: tuple[str, ...] = ("a", "b", "c"), **settings: Any
    ) -> Any:
        return search(
            small_graph(graph_name, class_names),
            out=tmp_path_factory.mktemp("runs") / run,
            **{
                "evaluations": 10,
                "num_initial": 4,
                "repeats": 2,
                "retrain": 2,
                "searcher": "random",
                "space": SPACE,
                "recipe": {"max_epochs": 8, "hidden_width": 8},
                "threads": 1,
                **settings,
            },
        )

    return make


@pytest.fixture(scope="session")
def run(make_run: Callable[..., Any]) -> Any:
    """A finished run."""
    return make_run("plain")


@pytest.fixture(scope="session")
def nasty_run(make_run: Callable[..., Any]) -> Any:
    """A finished run whose data and classes have names that a careless page would take for its own markup."""
    return make_run("nasty", graph_name=NASTY_NAME, class_names=NASTY_CLASSES)


@pytest.fixture(scope="session")
def bounded_run(make_run: Callable[..., Any]) -> Any:
    """A run of which no design keeps the bound."""
    return make_run("bounded", at_most="inference_seconds=1ns", evaluations=5, retrain=0)


@pytest.fixture(scope="session")
def page_file(nasty_run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The written report of the run with nasty names."""
    written: Path = nasty_run.report(tmp_path_factory.mktemp("page") / "report.html")
    return written
