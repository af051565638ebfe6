"""`pasca runs`: list the runs there are."""

from __future__ import annotations

from typing import Any

from pasca.commands.answer import Answer
from pasca.commands.options import Debug, Json


def runs(json: Json = False, debug: Debug = False) -> Answer:
    """List the runs below results/, with what they searched and how far they came."""
    from pasca.runs import RESULTS, list_runs
    from pasca.tables import Cells

    found = [_describe(folder) for folder in list_runs()]
    if not found:
        return Answer({"runs": []}, [f"no runs in {RESULTS}/ yet; pasca search starts one"], json)
    keys = ("run", "data", "status", "complete", "failed", "updated")
    rows = tuple(tuple(str(entry.get(key, "")) for key in keys) for entry in found)
    return Answer({"runs": found}, [Cells(keys, rows, frozenset((3, 4)))], json)


def _describe(folder: Any) -> dict[str, Any]:
    """One run; what cannot be read says why instead of hiding the others."""
    from pasca.results import Study
    from search_space.errors import PascaError

    try:
        study = Study.open(folder)
    except PascaError as error:
        return {"run": folder.name, "status": f"unreadable: {error}"}
    counts = study.front().counts
    return {
        "run": study.name,
        "folder": str(folder),
        "data": study.manifest["data"].get("name") or study.manifest["data"].get("source"),
        "status": study.status,
        "complete": counts["complete"],
        "failed": counts["failed"],
        "updated": study.manifest.get("updated"),
    }
