"""What a search tells whoever watches it."""

from __future__ import annotations

import io
import re
import time
from typing import Any

import pytest

from engines.objectives import OBJECTIVES
from engines.trial import Outcome, Trial
from pasca.progress import Bar, Lines, Silence, Standing, on_stream

PAIR = (OBJECTIVES["val_error"], OBJECTIVES["inference_seconds"])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Ticking:
    """A clock that moves by itself."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 0.0, seconds

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


class Still:
    """A clock that is moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def trial(number: int) -> Trial[Any]:
    outcome = Outcome({"val_error": 0.25, "inference_seconds": 0.5})
    return Trial(number=number, design="SGC").complete(outcome, PAIR, 1.0)


def test_lines_tell_trials_counts_front_and_time_left() -> None:
    stream = io.StringIO()
    lines = Lines(stream, Ticking(5.0))
    lines.trial(Trial(number=0, design="SGC"), Standing(0, 10))
    lines.trial(trial(0), Standing(1, 10, failed=1, front_size=2, hypervolume=3.5))
    (line,) = stream.getvalue().splitlines()
    assert "trial 0 SGC: val_error 0.25, inference_seconds 0.5" in line
    assert "1/10 evaluations, 1 failed, front 2, hypervolume 3.5" in line
    assert "about 45 s left" in line  # 5 s for one of ten, nine to go


def test_the_time_budget_bounds_the_time_left() -> None:
    stream = io.StringIO()
    lines = Lines(stream, Ticking(5.0))
    lines.trial(Trial(number=0, design="SGC"), Standing(0, 10))
    lines.trial(trial(0), Standing(1, 10, seconds_left=12.0))
    assert "about 12 s left" in stream.getvalue()


def test_time_left_is_by_what_this_process_did() -> None:
    stream = io.StringIO()
    lines = Lines(stream, Ticking(5.0))
    lines.trial(Trial(number=50, design="SGC"), Standing(50, 60))
    lines.trial(trial(50), Standing(51, 60))
    assert "about 45 s left" in stream.getvalue()


def test_a_failure_says_why() -> None:
    stream = io.StringIO()
    Lines(stream).trial(Trial(number=3, design="SGC").fail("out of memory"), Standing(4, 10))
    assert "trial 3 SGC: failed, out of memory" in stream.getvalue()


def test_control_characters_do_not_reach_the_stream() -> None:
    stream = io.StringIO()
    Lines(stream).note("data \x1b[31m")
    assert stream.getvalue() == "data \\x1b[31m\n"


@pytest.mark.parametrize(("stream", "kind"), [(io.StringIO(), Lines), (Terminal(), Bar)])
def test_a_bar_is_for_terminals(stream: io.StringIO, kind: type) -> None:
    assert isinstance(on_stream(stream), kind)


def test_a_bar_takes_nothing_as_markup() -> None:
    stream = Terminal()
    bar = Bar(stream)
    bar.note("data [red]x[/red]")
    bar.trial(Trial(number=0, design="SGC"), Standing(0, 10))
    bar.trial(Trial(number=0, design="[b]x[/b]").fail("bad"), Standing(1, 10, failed=1, front_size=2))
    bar.retraining("[i]design[/i]", 0, 3)
    bar.close()
    shown = stream.getvalue()
    assert "data [red]x[/red]" in shown
    assert "trial 0 [b]x[/b]: failed, bad" in shown
    assert "[i]design[/i]" in shown


def last_view(stream: Terminal) -> list[str]:
    """The two lines that a bar showed last, without control sequences."""
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue()).replace("\r", "\n")
    return [line.rstrip() for line in shown.split("\n") if line.strip()][-2:]


def test_a_bar_shows_all_that_is_known_within_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream, clock = Terminal(), Still()
    bar = Bar(stream, clock)
    bar.trial(Trial(number=150, design="SGC"), Standing(150, 200, running=4, front_size=12))
    clock.now += 60.0
    bar.trial(trial(150), Standing(151, 200, running=3, failed=2, front_size=12, hypervolume=0.0561234))
    bar.close()
    above, below = last_view(stream)
    assert above.startswith("151/200 evaluations ")
    assert above.endswith("1 min 0 s, about 49 min 0 s left")  # a minute for one, 49 to go
    assert below == "3 running, 2 failed, front 12, hypervolume 0.05612"
    assert max(len(above), len(below)) <= 80


def test_the_time_left_runs_down_between_trials_and_keeps_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream, clock = Terminal(), Still()
    bar = Bar(stream, clock)
    bar.trial(Trial(number=0, design="SGC"), Standing(0, 10, seconds_left=40.0))
    assert last_view(stream)[0].endswith("0.0 s, about 40 s left")
    clock.now += 15.0
    deadline = time.monotonic() + 10.0
    while not last_view(stream)[0].endswith("15 s, about 25 s left"):
        assert time.monotonic() < deadline, last_view(stream)
        time.sleep(0.05)
    bar.close()


def test_designs_trained_again_have_a_bar_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream, clock = Terminal(), Still()
    bar = Bar(stream, clock)
    bar.trial(trial(9), Standing(10, 10))
    clock.now += 5.0
    bar.retraining("a/b/c/d", 0, 3)
    bar.close()
    above, below = last_view(stream)
    assert above.startswith("0/3 designs trained again ")
    assert above.endswith(" 0.0 s")
    assert below == "a/b/c/d"


def test_silence_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    silence = Silence()
    silence.note("x")
    silence.trial(trial(0), Standing(1, 2))
    silence.retraining("x", 0, 1)
    silence.close()
    assert capsys.readouterr() == ("", "")
