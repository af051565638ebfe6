"""Following a run: pages until it ends, the last one without reloading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pasca.manifest import read_manifest, write_manifest
from pasca.members import occupied
from pasca.reporting.live import follow_report


def test_pages_are_written_until_the_run_ends(bounded_run: Any, tmp_path: Path) -> None:
    folder, page = bounded_run.folder, tmp_path / "live.html"
    manifest = read_manifest(folder)
    write_manifest(folder, {**manifest, "status": "running"})
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            write_manifest(folder, manifest)

    with occupied(folder):  # as a search holds it
        texts = [path.read_text(encoding="utf-8") for path in follow_report(folder, page, every=7, sleep=sleep)]
    assert ['http-equiv="refresh" content="7"' in text for text in texts] == [True, True, False]
    assert waited == [7, 7]


def test_an_ended_run_has_one_page(bounded_run: Any, tmp_path: Path) -> None:
    assert list(follow_report(bounded_run.folder, tmp_path / "a.html")) == [tmp_path / "a.html"]
