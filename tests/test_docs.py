"""Every code block of README and the documentation runs, in a temporary folder, with few and short evaluations.

`python` blocks of a file share their names; `sh` blocks are commands; a block with a title is a file of that name.
Other commands than pasca's are shown as `text` and are not run. Searches are cut short here: whatever number of
evaluations a block asks for, a few are made, with two seeds and hardly any training.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN_ONLY = ("", "text", "json")

_BLOCK = re.compile(
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<code>.*?)^```$', re.MULTILINE | re.DOTALL
)

SHORT = ["--repeats", "2", "--retrain", "1", "--recipe", "max_epochs=4", "--recipe", "hidden_width=8", "--threads", "1"]
FEW = 8
# Few stages are to be timed in a small space. A block's own --space comes later on its line and wins.
SMALL_SPACE = {"k_pre": [0, 1], "pre_aggregator": ["augmented"], "k_trans": [1, 2], "k_post": [0, 1],
               "post_aggregator": ["augmented"]}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its title if it stands for a file, its code."""

    language: str
    title: str | None
    code: str


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a file, in order."""
    return [Block(m["language"], m["title"], m["code"]) for m in _BLOCK.finditer(path.read_text(encoding="utf-8"))]


def commands(code: str) -> Iterator[list[str]]:
    """The commands of a shell block, continued lines joined, comments left out."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def shortened(words: list[str]) -> list[str]:
    """A pasca command as it is run here."""
    if words[0] == "search":
        small = ["--space", "small.toml", "--searcher", "random", "--num-initial", "2"]
        return [words[0], *small, *words[1:], "--evaluations", str(FEW), *SHORT, "--quiet"]
    if words[0] == "evaluate":
        return [*words, "--seeds", "2", *SHORT[4:]]
    return words


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_block_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = blocks(path)
    if not found:
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASCA_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    (tmp_path / "small.toml").write_text("".join(f"{name} = {values!r}\n" for name, values in SMALL_SPACE.items()))
    if "DATA" in path.read_text(encoding="utf-8"):
        _make_data(tmp_path / "DATA")
    _shorten_python(monkeypatch)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in found:
        if block.title is not None:
            (tmp_path / block.title).write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.code, f"{path.name}: a block", "exec"), names)
        elif block.language == "sh":
            _run_commands(block.code)
        else:
            assert block.language in SHOWN_ONLY, f"a block of {block.language!r} neither runs nor is a file"


def _run_commands(code: str) -> None:
    from pasca.cli import main

    for program, *words in commands(code):
        assert program == "pasca", f"{program} does not run here; show it as a text block"
        assert main(shortened(words)) == 0, shlex.join(words)


def _make_data(folder: Path) -> None:
    """A small graph under the name that stands for the reader's own."""
    from pasca.datasets import convert

    convert("digits", folder)


def _shorten_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches from Python blocks are cut short like those of the command line."""
    import pasca
    from pasca.searching import search

    def short(*arguments: Any, **settings: Any) -> Any:
        if "evaluator" not in settings:
            settings = {"space": SMALL_SPACE, "repeats": 2, "threads": 1, **settings, "retrain": 1}
            settings["recipe"] = {**settings.get("recipe", {}), "max_epochs": 4, "hidden_width": 8}
            settings["searcher"], settings["num_initial"] = "random", 2
        settings["evaluations"] = min(settings.get("evaluations", 100), FEW)
        return search(*arguments, **settings)

    monkeypatch.setattr(pasca, "search", short)


def test_blocks_and_commands_are_found() -> None:
    text = '```sh\npasca a \\\n  b # c\n\n# d\npasca "e f"\n```\n```toml title="x.toml"\na = 1\n```\n'
    (shell, file) = [Block(m["language"], m["title"], m["code"]) for m in _BLOCK.finditer(text)]
    assert list(commands(shell.code)) == [["pasca", "a", "b"], ["pasca", "e f"]]
    assert (file.title, file.code) == ("x.toml", "a = 1\n")


def test_the_reference_covers_every_public_name() -> None:
    import pasca

    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in pasca.__all__ if not re.search(rf"\b{name}\b", reference)] == []


def test_links_between_pages_lead_somewhere() -> None:
    for path in FILES:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    try:
        import material  # noqa: F401
        import mkdocstrings_handlers.python  # noqa: F401
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("needs mkdocs-material and mkdocstrings-python")
    # Its makers announce a successor on stderr at every build.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= 10
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="(https?:[^"]+)"', text)
        loaded += re.findall(r'<link[^>]*rel="(?:stylesheet|preconnect|icon)"[^>]*href="(https?:[^"]+)"', text)
        assert loaded == [], f"{page.name} loads {loaded}"
