"""The board: recorded events, a fixed clock and a console of text, and what a person then reads."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable

import pytest
from rich.console import Console

from depthscope import api
from depthscope.cli.pace import WINDOW_S, Line, Pace
from depthscope.cli.progress import MAX_LINES, MAX_NOTES, QUIET_S, Board
from depthscope.record.schema import Digests, Outcome
from depthscope.study.expand import Plan, expand
from depthscope.study.toml import parse

STUDY = """
name = "mine"
title = { en = "Mine" }
seeds = 3
[base]
backend = "BACKEND"
family = "FAMILY"
width = 8
norm = "NORM"
activation = "relu"
init = "he_fan_in"
data = "DATA"
LENGTH = 100
[parts.main]
axes = { depth = [8, 20] }
arms = [{ name = "plain" }]
"""
DONE = Outcome(status="completed", step=100)


class Clock:
    """Seconds that stand still until they are set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Screen:
    """A board on a console of text, and what stands on it."""

    def __init__(self, *, terminal: bool = True, torch: bool = True) -> None:
        self.clock = Clock()
        self.file = io.StringIO()
        console = Console(file=self.file, width=150, force_terminal=terminal, color_system=None, markup=False)
        console.is_interactive = False if not terminal else console.is_interactive
        self.board = Board(console, clock=self.clock)
        names = (
            ("torch", "cifar_resnet", "batch", "images", "epochs")
            if torch
            else ("numpy", "mlp", "none", "spiral", "steps")
        )
        text = STUDY
        for word, name in zip(("BACKEND", "FAMILY", "NORM", "DATA", "LENGTH"), names, strict=True):
            text = text.replace(word, name)
        if not torch:
            text = text.replace('init = "he_fan_in"', 'init = "gaussian"')
        self.plan: Plan = expand(parse(text, source="mine.toml"))
        self.runs = [cell.run_id for cell in self.plan.cells]

    def begin(self, left: Iterable[int] = range(6)) -> None:
        # Drawn by `text` alone: no thread may draw in between.
        self.board._start = lambda: None  # type: ignore[method-assign]
        self.board.on_plan(self.plan, [self.runs[at] for at in left], 2)

    def at(self, now: float, *events: api.News) -> None:
        self.clock.now = now
        for event in events:
            self.board.on_event(event)

    def started(self, at: int) -> api.Started:
        return api.Started(run_id=self.runs[at], layers=(), parameters=1, digests=Digests(), num_steps=100)

    def step(self, at: int, step: int, *, text: str = "", examples: int = 0) -> api.Progress:
        return api.Progress(run_id=self.runs[at], step=step, num_steps=100, text=text, examples=examples)

    def ended(self, at: int, outcome: Outcome = DONE) -> api.Ended:
        return api.Ended(run_id=self.runs[at], outcome=outcome)

    def text(self) -> list[str]:
        """The board as lines, its bars and runs of spaces as one space."""
        console = Console(file=io.StringIO(), width=150, color_system=None)
        with console.capture() as captured:
            console.print(self.board.render())
        return [re.sub(r"[━╸╺ ]+", " ", line).strip() for line in captured.get().splitlines()]

    def said(self) -> list[str]:
        return self.file.getvalue().splitlines()


def test_runs_under_way_are_named_with_step_rate_and_the_last_word() -> None:
    screen = Screen()
    screen.begin()
    assert screen.text() == ["mine 0/6 runs · 0:00:00 elapsed · 2 workers", "the workers are starting"]
    screen.at(10, screen.started(0), screen.started(3))
    screen.at(12, screen.step(0, 20, examples=1000))
    screen.at(15, screen.step(0, 50, text="epoch 2: loss 0.500", examples=2500))
    # Depth is work here: 8 x 50% in 5 s, so the other 3 x 8 + 3 x 20 - 4 take 100 s.
    assert screen.text() == [
        "mine 0/6 runs · 0:00:15 elapsed, about 0:01:40 left · 2 workers",
        "main: plain depth 8 seed 0 50/100 500 images/s epoch 2: loss 0.500",
        "main: plain depth 20 seed 0 0/100",
    ]


def test_time_left_weighs_runs_of_unequal_length() -> None:
    # Three runs of depth 8 and three of depth 20: work 8 and 20 each, 84 in all. One worker does 20 in 20 s.
    screen = Screen()
    screen.begin()
    screen.at(100, screen.started(3))
    screen.at(120, screen.ended(3))
    assert screen.text()[0] == "mine 1/6 runs · 0:02:00 elapsed, about 0:01:04 left · 2 workers"


def test_at_the_end_the_slowest_run_decides_the_time_left() -> None:
    screen = Screen()
    screen.begin([0, 3])
    screen.at(0, screen.started(0), screen.started(3))
    screen.at(10, screen.ended(0), screen.step(3, 50))
    # Work 8 + 10 in 10 s leaves 10 / 1.8 = 6 s at that pace; but the run that is left does its second half alone.
    assert "about 0:00:10 left" in screen.text()[0]


def test_failures_divergences_retries_and_another_drivers_runs_are_counted_and_named() -> None:
    screen = Screen()
    screen.begin()
    screen.at(1, screen.started(0), screen.started(1))
    screen.at(2, screen.ended(0, Outcome(status="failed", step=3, reason="ValueError: [red]no[/red]")))
    screen.at(3, api.Retried(run_id=screen.runs[1], reason="its worker died"))
    screen.at(4, api.Resumed(run_id=screen.runs[1], step=40, num_steps=100))
    screen.at(4, api.DoneElsewhere(run_id=screen.runs[2], outcome=DONE))
    screen.at(5, screen.ended(3, Outcome(status="diverged", step=9, reason="training loss inf at step 9")))
    assert screen.said() == [
        "main: plain depth 8 seed 0 failed: ValueError: [red]no[/red]",
        "main: plain depth 8 seed 1 handed out again: its worker died",
        "main: plain depth 20 seed 0 diverged: training loss inf at step 9",
    ]
    head, counts, line = screen.text()
    assert head.startswith("mine 3/6 runs")
    assert counts == "1 failed, 1 diverged, 1 by another driver, 1 resumed, 1 handed out again"
    assert line == "main: plain depth 8 seed 1 40/100 resumed at step 40"


def test_a_run_that_only_measures_says_so_and_is_expected_to_take_as_long_again() -> None:
    screen = Screen()
    screen.begin([0, 3])
    screen.at(0, screen.started(0))
    screen.at(1, screen.ended(0))
    screen.at(2, api.Started(run_id=screen.runs[3], layers=(), parameters=1, digests=Digests(), num_steps=0))
    screen.at(62, api.DoneElsewhere(run_id=screen.runs[0], outcome=DONE))
    head, line = screen.text()[0], screen.text()[-1]
    assert line == "main: plain depth 20 seed 0 measuring"
    assert "left" in head
    screen.at(63, screen.ended(3))
    assert "the page is being made" in screen.text()[0]


def test_what_a_checkpoint_gave_counts_for_the_bar_and_not_for_the_pace() -> None:
    screen = Screen()
    screen.begin([0])
    screen.at(0, api.Resumed(run_id=screen.runs[0], step=80, num_steps=100))
    screen.at(10, screen.step(0, 90))
    assert "about 0:00:10 left" in screen.text()[0]


def test_seeds_that_train_side_by_side_are_one_line() -> None:
    screen = Screen(torch=False)
    screen.begin()
    screen.at(0, *(screen.started(at) for at in (0, 1, 2)))
    for now in (1, 2):
        screen.at(now, *(screen.step(at, 20 * now, examples=100 * now) for at in (0, 1, 2)))
    assert screen.text()[1:] == ["main: plain depth 8, 3 seeds 40/100 300 examples/s"]
    screen.at(3, screen.ended(1))
    assert screen.text()[1:] == ["main: plain depth 8, 2 seeds 40/100"]
    screen.at(4, *(api.Retried(run_id=screen.runs[at], reason="its worker died") for at in (0, 2)))
    assert screen.said() == ["main: plain depth 8 handed out again: its worker died"]


def test_the_board_and_its_notes_are_bounded() -> None:
    screen = Screen()
    many = parse(
        STUDY.replace("BACKEND", "torch").replace("FAMILY", "cifar_resnet").replace("NORM", "batch")
        .replace("DATA", "images").replace("LENGTH", "epochs").replace("seeds = 3", "seeds = 40"),
        source="mine.toml",
    )  # fmt: skip
    screen.plan = expand(many)
    screen.runs = [cell.run_id for cell in screen.plan.cells]
    screen.begin(range(80))
    screen.at(1, *(screen.started(at) for at in range(80)))
    assert len(screen.text()) == 1 + MAX_LINES + 1
    assert screen.text()[-1] == f"and {80 - MAX_LINES} more under way"
    failed = Outcome(status="failed", step=0, reason="no")
    screen.at(2, *(screen.ended(at, failed) for at in range(80)))
    assert len(screen.said()) == MAX_NOTES + 1
    assert "further lines like this" in screen.said()[-1]
    assert "80 failed" in screen.text()[1]


def test_without_a_terminal_lines_are_sparse_and_yet_come() -> None:
    screen = Screen(terminal=False)
    screen.begin()
    screen.at(1, *(screen.started(at) for at in range(6)))
    for step in range(1, 100):
        screen.at(1 + step / 100, screen.step(0, step))
    assert screen.said() == ["mine: 6 runs to do with 2 workers"]
    screen.at(QUIET_S + 1, screen.step(0, 99))
    screen.at(QUIET_S + 2, api.Resumed(run_id=screen.runs[1], step=40, num_steps=100))
    screen.at(QUIET_S + 3, screen.ended(0))
    _, first, *others = screen.said()
    assert re.fullmatch(r"0 of 6 runs done, 6 under way, about \d:\d\d:\d\d left", first)
    assert others[0] == "main: plain depth 8 seed 1 resumed at step 40"
    assert others[1].startswith("1 of 6 runs done, 5 under way")


def test_an_end_leaves_the_bar_alone_and_gives_the_cursor_back() -> None:
    screen = Screen()
    screen.board.on_plan(screen.plan, screen.runs, 2)
    screen.at(1, screen.started(0))
    screen.board.close()
    assert screen.text() == ["mine 0/6 runs · 0:00:01 elapsed · 2 workers"]
    assert screen.file.getvalue().endswith("\x1b[?25h")


def test_a_download_is_shown_until_the_study_begins() -> None:
    screen = Screen()
    screen.board._start = lambda: None  # type: ignore[method-assign]
    screen.board.on_download(34_000_000, 170_000_000)
    assert screen.text() == ["downloading the data: 34 of 170 MB"]
    screen.begin()
    assert "CIFAR" not in "".join(screen.text())


def test_no_estimate_is_made_of_next_to_nothing() -> None:
    line = Line(0.0)
    for name, step in (("a", 1), ("b", 2), ("c", 4)):
        line.move(name, step, 10, 1.0)
    before = line.fraction
    line.leave("b")
    assert line.fraction != before
    assert line.left(60.0) == 60.0  # one that left moved the mean, and no run
    line.move("a", 2, 10, 30.0)
    assert line.left(60.0) == pytest.approx(0.7 / 0.05 * 30)
    pace = Pace({"a": 1.0, "b": 1.0})
    pace.start("a", 0.5, 0.0)
    pace.move("a", 0.5 + 1e-16)
    assert pace.left(10.0, []) is None
    pace.move("b", 0.75)  # another driver's, first seen here
    pace.move("a", 0.5 + 1e-4)
    assert pace.left(10.0, []) is None
    pace.end("b", 10.0)  # done elsewhere: it counts from where it was seen
    assert pace.left(10.0, []) == pytest.approx(0.4999 / 0.2501 * 10)


def test_the_rate_is_that_of_the_last_half_minute() -> None:
    line = Line(0.0)
    for second in range(100):
        line.move("a", second, 1000, float(second), examples=100 * second if second < 50 else 5000 + 10 * (second - 50))
    assert line.rate() == pytest.approx(10.0)
    assert WINDOW_S < 49


def test_a_run_of_no_steps_and_one_that_is_not_in_the_plan_break_nothing() -> None:
    pace = Pace({"a": 1.0})
    pace.start("stranger", 0.0, 1.0)
    pace.end("stranger", 2.0)
    assert (pace.ended, pace.fraction, pace.left(3.0, [])) == (0, 0.0, None)
    line = Line(0.0)
    line.move("a", 0, 0, 0.0)
    assert (line.fraction, line.left(7.0)) == (0.0, 7.0)
