"""What a search tells whoever watches it."""

from __future__ import annotations

import io
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


def test_a_bar_shows_where_the_search_stands_and_takes_nothing_as_markup() -> None:
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
    assert "0/10 evaluations, front 0" in shown
    assert "[i]design[/i]" in shown


def test_silence_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    silence = Silence()
    silence.note("x")
    silence.trial(trial(0), Standing(1, 2))
    silence.retraining("x", 0, 1)
    silence.close()
    assert capsys.readouterr() == ("", "")
