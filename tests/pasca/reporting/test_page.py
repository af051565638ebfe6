"""The page of a run as text: complete, escaped, self-contained, small; it opens whatever the run found."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from engines.history import History
from pasca.reporting.gathered import gather
from pasca.reporting.page import page_sections, render, safe_json, tiles
from search_space.errors import DesignError, ObjectiveError

MOST_BYTES = 6_000_000


class Reader(HTMLParser):
    """What a browser's parser makes of a page: tags with attributes, text by section, contents of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._script = tag == "script"
        if self._script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if self._script:
            self.scripts[-1] += data
        else:
            self.text.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def payload(page: str) -> dict[str, Any]:
    return json.loads(read(page).scripts[0])


@pytest.fixture(scope="module")
def page(page_file: Path) -> str:
    return page_file.read_text(encoding="utf-8")


def test_names_from_users_are_text_and_make_no_tag(page: str) -> None:
    reader = read(page)
    assert "img" not in {tag for tag, _ in reader.tags}
    assert "b" not in {tag for tag, _ in reader.tags}
    assert not [name for _, attributes in reader.tags for name in attributes if name.startswith("on")]
    text = "".join(reader.text)
    for name in ("<img src=x onerror=alert(1)>", "</script><b>x", "a&b", "[red]x[/red]", "a note with <b>markup</b>"):
        assert name in text


def test_embedded_json_has_no_sign_that_could_end_its_element(page: str) -> None:
    found = re.search(r'<script type="application/json" id="payload">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert not set("<>&") & set(found[1])
    labels = payload(page)["figures"]["confusion-validation"]["layout"]["xaxis"]["ticktext"]
    assert [unescape(label) for label in labels] == ["</script><b>x", "a&b", "%{y} $1$ [red]x[/…"]
    assert labels[0] == "&lt;/script&gt;&lt;b&gt;x"


def test_safe_json_reads_back_as_it_was() -> None:
    content = {"a": "</script>&\u2028<!--", "b": [1.5, None, True]}
    text = safe_json(content)
    assert json.loads(text) == content
    assert "\\u003c/script\\u003e" in text


def test_the_page_loads_nothing_and_allows_only_its_own_scripts(page: str) -> None:
    reader = read(page)
    assert {tag for tag, _ in reader.tags} & {"link", "iframe", "object", "embed", "base"} == set()
    assert not [tag for tag, attributes in reader.tags if "src" in attributes]
    policy = next(a["content"] for tag, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy") or ""
    assert "default-src 'none'" in policy
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in reader.scripts[1:]]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes


def test_every_section_is_in_the_menu(page: str) -> None:
    reader = read(page)
    anchors = [a["href"] for tag, a in reader.tags if tag == "a" and (a.get("href") or "").startswith("#")]
    sections = [f"#{a['id']}" for tag, a in reader.tags if tag == "section"]
    assert sections == ["#front", "#tested", "#choices", "#progress", "#costs", "#learning", "#classes", "#setup"]
    assert anchors == ["#main", *sections]


def test_every_plot_has_a_label_and_a_table_beside_it(nasty_run: Any) -> None:
    for section in page_sections(gather(nasty_run)):
        for block in section.blocks:
            if block.figure is not None and block.figure.id not in ("growth-time", "confusion-test"):
                assert block.table is not None, block.figure.id
                assert block.figure.label


def test_the_page_is_small(page: str) -> None:
    assert len(page.encode()) < MOST_BYTES


def test_a_page_of_thousands_of_trials_is_small(run: Any) -> None:
    found = gather(run)
    trials = list(found.history)
    many = History(replace(trials[i % len(trials)], number=i) for i in range(3500))
    assert len(render(replace(found, history=many)).encode()) < MOST_BYTES


def test_the_designs_of_the_front_are_those_of_the_front(run: Any) -> None:
    content = payload(render(gather(run)))["front"]
    front = run.front()
    assert [content["ids"][place] for place in content["front"]] == [row.id for row in front.rows]
    for place, row in zip(content["front"], front.rows, strict=True):
        assert content["designs"][place] == row.design
        assert content["values"]["val_error"][place] == pytest.approx(row.values["val_error"], rel=1e-5)
        for number, part in enumerate(row.design.split("/")):
            assert f"{number}:{part}" in content["words"]


def test_confusion_counts_every_node_once_a_seed(run: Any) -> None:
    content = payload(render(gather(run)))["figures"]
    for part, nodes in (("validation", 21), ("test", 24)):
        assert sum(map(sum, content[f"confusion-{part}"]["data"][0]["text"])) == 2 * nodes


def test_without_a_feasible_design_the_page_says_so(bounded_run: Any) -> None:
    text = "".join(read(render(gather(bounded_run))).text)
    assert "No design meets the bound inference_seconds=1e-09s" in text
    assert "all are infeasible" in text
    assert "No design is chosen: no design meets the bound" in text


def test_without_any_result_the_page_opens(run: Any) -> None:
    found = gather(run)
    empty = replace(found, history=History(), front=replace(found.front, rows=(), classics=(), reference_point=None),
                    front_trials=(), chosen=None, not_chosen="no trial", steps=(), seconds={}, retrained={},
                    effects=(), no_effects="too few")  # fmt: skip
    text = "".join(read(render(empty)).text)
    assert "there is no front yet" in text
    assert payload(render(empty))["front"]["ids"] == []


def test_few_trials_say_why_there_are_no_effects(bounded_run: Any) -> None:
    assert "effects need at least 8 evaluated designs" in gather(bounded_run).no_effects


def test_a_run_of_a_custom_evaluator_has_a_page(tmp_path: Path) -> None:
    from pasca.searching import search

    study = search(
        evaluator=lambda design: (0.1 * design.k_trans, 1.0 + design.k_pre),
        space={"k_pre": [0, 1], "k_trans": [1, 2], "k_post": [0]},
        evaluations=4,
        searcher="random",
        out=tmp_path / "custom",
    )
    ids = [section.id for section in page_sections(gather(study))]
    assert ids == ["front", "choices", "progress", "classes", "setup"]
    assert "Predictions are recorded when a design is trained again" in "".join(read(render(gather(study))).text)


def test_a_rule_or_bound_without_meaning_is_refused(run: Any) -> None:
    with pytest.raises(DesignError, match="unknown pick 'kneee'"):
        run.report(pick="kneee")
    with pytest.raises(ObjectiveError, match="unknown objective"):
        run.report(at_most="speed=1")


def test_tiles_state_best_values_and_the_knee(run: Any) -> None:
    front = run.front()
    by_name = {name: (value, hint) for name, value, hint in tiles(gather(run))}
    best = min(front.rows, key=lambda row: row.values["val_error"])
    assert by_name["best validation error"] == (f"{100 * best.values['val_error']:.1f} %", f"design {best.id}")
    assert by_name["evaluations"][0] == "10"


def test_a_comparison_is_a_section_of_its_own(run: Any, make_run: Callable[..., Any]) -> None:
    other = make_run("other", seed=1, evaluations=5, retrain=0)
    reader = read(render(gather(run, others=[other])))
    assert "comparison" in {a.get("id") for tag, a in reader.tags if tag == "section"}
    assert "Hypervolumes are measured against one reference point" in "".join(reader.text)
