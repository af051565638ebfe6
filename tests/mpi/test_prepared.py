"""A group that reads prepared files finds what one process finds on the whole graph."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engines.evaluation.communicator import Communicator
from engines.evaluation.distributed import GroupEvaluator, GroupSettings
from engines.evaluation.local import LocalEvaluator
from engines.evaluation.recipe import Recipe
from engines.graph import Graph, Split, undirected
from pasca.datasets import load, write_folder
from pasca.datasets.prepared import PreparedShare, prepare_ranks
from search_space.architecture import Architecture

N = 50


@pytest.fixture
def folder(ranks: Communicator) -> Iterator[Path]:
    """A prepared folder that every rank sees."""
    name = tempfile.mkdtemp() if ranks.rank == 0 else ""
    path = Path(ranks.gather_objects(name)[0])
    if ranks.rank == 0:
        rng = np.random.default_rng(0)
        order = rng.permutation(N)
        labels = rng.integers(0, 2, N).astype(np.int64)
        graph = Graph(
            "made",
            undirected(rng.integers(0, N - 3, 150), rng.integers(0, N - 3, 150), N)[0],
            (rng.standard_normal((N, 6)) + labels[:, None]).astype(np.float32),
            labels,
            ("a", "b"),
            Split(order[:13], order[13:30], order[30:]),
        )
        write_folder(graph, path / "graph")
        prepare_ranks(path / "graph", load(path / "graph"), ranks.size, "hash")
    ranks.barrier()
    yield path / "graph"
    ranks.barrier()
    if ranks.rank == 0:
        shutil.rmtree(path)


@pytest.mark.parametrize("plan", ["rows", "features"])
@pytest.mark.parametrize("normalise", ["row", "standard"])
def test_both_plans_work_on_files(ranks: Communicator, folder: Path, plan: str, normalise: str) -> None:
    graph, design = load(folder), Architecture.parse("triangle^2/concat/mlp-2/ppr0.3^2")
    recipe = Recipe(hidden_width=8, max_epochs=12, normalise=normalise)
    share = PreparedShare(folder, graph, ranks.rank, ranks.size)
    errors, details = GroupEvaluator(ranks, share, recipe, GroupSettings(plan=plan)).evaluate(design, (1, 2))
    alone = LocalEvaluator(graph, recipe=recipe, threads=1).train(design, (1, 2))
    np.testing.assert_allclose(errors, alone.val_errors, atol=1e-12)
    np.testing.assert_allclose(details["val_losses"], alone.trained.validation_losses, rtol=1e-5)
    assert details["group"]["partition"] == "hash"
