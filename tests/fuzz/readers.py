"""Throws damaged files at every reader and at exported models, for as long as asked.

    python tests/fuzz/readers.py --seconds 600 --failures build/fuzz

A case is one small data set or model of some format with some of its files damaged: in their bytes, or, where a file
is a container, in what it contains, put together again so that no checksum of the container hides the rest. A reader
may read it or refuse it with one line of `PascaError`. Anything else is a failure: another exception, a warning, a
message of several lines, more than 20 s of CPU time, more memory than 2 GiB above what libraries take, or the end of
the process. The files of a failed case stay below `--failures`, one folder for each place in the code that failed.

Prints one JSON line with the cases by format and how each ended; ends with 1 where something failed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from damage import Files, damaged  # noqa: E402
from samples import samples  # noqa: E402

CPU_SECONDS, MEMORY_BYTES = 20, 2 << 30


def read(kind: str, folder: Path) -> None:
    """Read what was damaged, in every way that there is."""
    if kind == "model":
        read_models(folder)
        return
    from pasca.datasets import load, summary_lines

    summary_lines(load(folder, for_training=False))
    if kind == "native":
        load(folder, for_training=False, verify=True)


def read_models(folder: Path) -> None:
    """A model by both of its doors, and its design."""
    from pasca.export import read_design
    from pasca.model import load_model
    from pasca.runtime import RuntimeModel
    from search_space.errors import PascaError

    refusals: list[PascaError] = []
    for door in (load_model, RuntimeModel.load, lambda path: read_design(path / "model.json")):
        try:
            door(folder)
        except PascaError as error:
            if "\n" in str(error):
                raise
            refusals.append(error)
    if refusals:
        raise refusals[0]


def attempt(kind: str, folder: Path) -> str | None:
    """Read once; returns how it failed, an empty text for a refusal in one line, and None for what was read."""
    from search_space.errors import PascaError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(kind, folder)
    except PascaError as error:
        return f"message of several lines: {error}" if "\n" in str(error) else ""
    except BaseException as error:  # whatever it is, it is what this looks for
        if isinstance(error, KeyboardInterrupt):
            raise
        return "".join(traceback.format_exception(error))
    return None


def work(seconds: float, seed: int, failures: Path, kinds: list[str]) -> int:
    """Go on until the time is over; the case in hand always lies below `failures`, should this process die of it."""
    faulthandler.enable()
    everything = {kind: files for kind, files in samples().items() if not kinds or kind in kinds}
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    current = failures / "current"
    for kind, files in everything.items():
        assert attempt(kind, put(files, current)) is None, f"the sound {kind} is refused"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    soft = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (soft, soft))
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        kind = rng.choice(list(everything))
        put(damaged(rng, everything[kind]), current, kind)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)  # ends the process, native loops included
        failed = attempt(kind, current)
        signal.setitimer(signal.ITIMER_PROF, 0)
        counts[f"{kind} {'read' if failed is None else 'failed' if failed else 'refused'}"] += 1
        if failed:
            keep(current, failures, failed)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    shutil.rmtree(current)
    print(json.dumps({"counts": dict(counts), "grown_mib": grown >> 10}))
    return 0


def put(files: Files, folder: Path, kind: str = "") -> Path:
    """Write a case; `kind` stays beside it, for whoever looks at it later."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if kind:
        folder.with_name(folder.name + ".kind").write_text(kind)
    return folder


def keep(current: Path, failures: Path, said: str) -> None:
    """Keep a failed case under the place where it failed; the first of each place is enough."""
    places = re.findall(r'File "([^"]*)", line (\d+)', said)
    own = [place for place in places if str(ROOT) in place[0]] or places or [("unknown", "0")]
    name = f"{Path(own[-1][0]).stem}-{own[-1][1]}-{said.strip().splitlines()[-1].split(':')[0]}"[:80].replace("/", "_")
    if not (failures / name).exists():
        shutil.copytree(current, failures / name / "case")
        shutil.copy(current.with_name("current.kind"), failures / name / "kind")
        (failures / name / "traceback.txt").write_text(said, encoding="utf-8", errors="replace")


def main() -> int:
    """Start workers one after another until the time is over, and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="", help="formats to damage, with commas; all of them")
    parser.add_argument("--failures", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.failures.mkdir(parents=True, exist_ok=True)
    kinds = [kind for kind in given.kinds.split(",") if kind]
    if given.work:
        return work(given.seconds, given.seed, given.failures, kinds)
    ends, seed, died = time.monotonic() + given.seconds, given.seed, 0
    counts: Counter[str] = Counter()
    grown = 0
    while (left := ends - time.monotonic()) > 0:
        # A new process now and then: what one case leaves behind must not hide what another does.
        command = [sys.executable, __file__, "--work", "--seconds", str(min(left, 120.0)), "--seed", str(seed)]
        command += ["--failures", str(given.failures), "--kinds", given.kinds]
        done = subprocess.run(command, capture_output=True, text=True)
        seed += 1
        if done.returncode == 0:
            found = json.loads(done.stdout.splitlines()[-1])
            counts.update(found["counts"])
            grown = max(grown, found["grown_mib"])
        else:
            died += 1
            cause = "CPU time" if done.returncode == -signal.SIGPROF else f"status {done.returncode}"
            place = given.failures / f"died-{seed}"
            place.mkdir(exist_ok=True)
            if (given.failures / "current").exists():  # not before the first case
                shutil.move(given.failures / "current", place / "case")
            (place / "stderr.txt").write_text(f"{cause}\n{done.stderr[-8000:]}")
            if died >= 5:
                break
    (given.failures / "current.kind").unlink(missing_ok=True)
    places = sorted(path.name for path in given.failures.iterdir() if path.is_dir())
    endings = Counter(key.rpartition(" ")[2] for key in counts.elements())
    print(
        json.dumps(
            {
                "seconds": given.seconds,
                "cases": counts.total(),
                **endings,
                "processes_that_died": died,
                "grown_mib": grown,
                "failures": places,
                "by_format": dict(sorted(counts.items())),
            }
        )
    )
    return 1 if places else 0


if __name__ == "__main__":
    raise SystemExit(main())
