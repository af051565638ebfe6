"""Puts a report together: one page with its style, its script, its data and the plotting library inside."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pasca.atomic import write_file
from pasca.plain import plain
from pasca.quantities import seconds_text
from pasca.reporting.choices_section import choices_section
from pasca.reporting.classes_section import classes_section
from pasca.reporting.comparison_section import comparison_section
from pasca.reporting.costs_section import costs_section
from pasca.reporting.front_section import front_payload, front_section
from pasca.reporting.gathered import Gathered, gather
from pasca.reporting.learning_section import learning_section
from pasca.reporting.parts import Section
from pasca.reporting.progress_section import progress_section
from pasca.reporting.setup_section import setup_section
from pasca.reporting.tested_section import tested_section
from pasca.reporting.wording import METRIC_TITLES, objective_title, spread_text, time_text
from pasca.tables import value_text

if TYPE_CHECKING:
    from pasca.results import Study

REPORT_FILE = "report.html"
_SCRIPTS = ("page.js", "designs.js")


def write_report(
    study: Study,
    path: str | os.PathLike[str] | None = None,
    *,
    pick: str = "knee",
    at_most: str | Iterable[str] = (),
    others: Sequence[Study] = (),
    reload_seconds: int | None = None,
) -> Path:
    """Write the report of a run.

    Args:
        path: of the page, replaced if it exists; `report.html` in the run's folder when None.
        pick: the rule for the design whose classes are shown.
        at_most: bounds beside those of the search.
        others: runs to compare it with.
        reload_seconds: after which an open page reads itself again; None for a page that stays as it is.
    Returns:
        The page's path.
    Raises:
        InputError: a bound or the rule means nothing, or the runs cannot be compared.
        StorageError: the page could not be written; an earlier one is intact.
    """
    target = study.folder / REPORT_FILE if path is None else Path(path)
    write_file(target, report_page(study, pick=pick, at_most=at_most, others=others, reload_seconds=reload_seconds))
    return target


def report_page(
    study: Study,
    *,
    pick: str = "knee",
    at_most: str | Iterable[str] = (),
    others: Sequence[Study] = (),
    reload_seconds: int | None = None,
) -> str:
    """The report of a run as one HTML text; arguments as for `write_report`."""
    return render(gather(study, pick=pick, at_most=at_most, others=others), reload_seconds)


def render(found: Gathered, reload_seconds: int | None = None) -> str:
    """The page of what was gathered.

    Everything that comes from data and users reaches the page through Jinja's escaping or `safe_json`. The page's
    policy lets no other script run than its own two, which are named by their hashes, and lets nothing be loaded.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    sections = page_sections(found)
    scripts = [_plotly(), "\n".join(map(_asset, _SCRIPTS))]
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
        "script-src " + " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    )
    return environment.get_template("page.html").render(
        found=found,
        title=f"{found.name} · pasca",
        subtitle=_subtitle(found),
        tiles=tiles(found),
        sections=sections,
        payload=Markup(safe_json(_payload(found, sections))),
        style=Markup(_asset("page.css")),
        scripts=[Markup(script) for script in scripts],
        policy=policy,
        reload_seconds=reload_seconds,
        version=found.manifest.get("versions", {}).get("pasca", ""),
    )


def page_sections(found: Gathered) -> list[Section]:
    """The sections that this run has, in order."""
    candidates = (
        front_section(found),
        tested_section(found),
        comparison_section(found.comparison),
        choices_section(found),
        progress_section(found),
        costs_section(found),
        learning_section(found),
        classes_section(found),
        setup_section(found),
    )
    return [section for section in candidates if section is not None]


def tiles(found: Gathered) -> list[tuple[str, str, str]]:
    """The figures at the head of the page: what, how much, and a word on it."""
    front, counts = found.front, found.front.counts
    failed = counts.get("failed", 0)
    shown = [
        (
            "evaluations",
            f"{found.history.num_evaluations}",
            f"{failed} failed" if failed else (f"in {seconds_text(max(found.seconds.values(), default=0.0))}"),
        ),
        ("designs on the front", f"{len(front.rows)}", "none keeps the bounds" if front.nearest else ""),
    ]
    for name, best in front.best.items():
        shown.append((f"best {objective_title(name)}", value_text(name, best.values[name]), f"design {best.id}"))
    knee = next((row for row in front.rows if row.knee), None)
    if knee is not None:
        values = ", ".join(value_text(objective.name, knee.values[objective.name]) for objective in found.objectives)
        shown.append(("knee of the front", f"design {knee.id}", values))
        if knee.test_score is not None:
            metric = METRIC_TITLES.get(front.metric, front.metric)
            shown.append((f"test {metric} of the knee", spread_text(knee.test_score), "fresh seeds"))
    return shown


def safe_json(content: Any) -> str:
    """JSON that can stand inside a script element: without `<`, `>`, `&` and line ends that only JavaScript knows."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _payload(found: Gathered, sections: Sequence[Section]) -> Mapping[str, Any]:
    figures = [block.figure for section in sections for block in section.blocks if block.figure is not None]
    return {
        "front": front_payload(found),
        "figures": {figure.id: plain(figure.spec()) for figure in figures if figure.id != "front"},
    }


def _subtitle(found: Gathered) -> str:
    data = found.manifest["data"]
    size = f", {data['num_nodes']:,} nodes and {data['num_edges']:,} edges" if "num_nodes" in data else ""
    parts = [f"{found.data_name}{size}", found.front.ending or found.status]
    if found.manifest.get("updated"):  # known once the manifest has been read back
        parts.append(time_text(found.manifest["updated"]))
    return " · ".join(parts)


def _plotly() -> str:
    """Plotly's own script, as its package ships it."""
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    assert "</script" not in script.lower()
    return script


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
