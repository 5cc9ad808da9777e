"""`status`: what is done, under way, failed and damaged, once and watched."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console

from depthscope import api
from depthscope.api import Running
from depthscope.cli.standing import LOOK_S, MAX_FAULTS, Speedometer, as_json, drawn, time_left, watch
from depthscope.record.reader import Damage
from depthscope.study.expand import expand
from depthscope.study.toml import load

STUDY = load("spiral", "smoke")
PLAN = expand(STUDY)
RUNS = list(PLAN.runs)
NAME = "sweep: plain depth 2 seed 0"


def status(**changes: Any) -> api.Status:
    counts = {"completed": 0, "diverged": 0, "failed": 0, "damaged": 0, "missing": len(RUNS)}
    counts |= changes.pop("counts", {})
    whole: dict[str, Any] = {"study": STUDY, "plan": PLAN, "failed": {}, "damaged": (), "running": ()}
    return api.Status(counts=counts, **{**whole, **changes})


def running(at: int, step: int, *, silent_s: float = 3.0, alive: bool = True) -> Running:
    return Running(run_id=RUNS[at], step=step, num_steps=100, silent_s=silent_s, alive=alive)


def text(found: api.Status, rates: dict[str, float] | None = None, width: int = 160) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        console.print(drawn(found, rates))
    return [re.sub(r"[━╸╺ ]+", " ", line).strip() for line in captured.get().splitlines()]


def test_counts_what_is_under_way_what_is_stale_and_why_runs_failed() -> None:
    found = status(
        counts={"completed": 10, "diverged": 2, "failed": 7, "damaged": 1, "missing": len(RUNS) - 20},
        running=(running(0, 40), running(1, 50, silent_s=301, alive=False)),
        failed=dict.fromkeys(RUNS[2:9], "ValueError: no"),
        damaged=(Damage(RUNS[9], "run.json was altered"),),
    )
    lines = text(found, {RUNS[0]: 12.5})
    assert lines[0] == (
        f"spiral, size smoke: 12 of {len(RUNS)} runs done "
        f"(10 completed, 2 diverged, 7 failed, 1 damaged, {len(RUNS) - 20} missing)"
    )
    assert lines[1] == f"{NAME} step 40 of 100 12.5 steps/s 0:00:04 left sign of life 0:00:03 ago"
    assert lines[2].endswith("step 50 of 100 stale (sign of life 0:05:01 ago): the next driver takes it over")
    assert len([line for line in lines if line.startswith("failed: sweep: ")]) == MAX_FAULTS
    assert "and 2 more failed" in lines
    assert lines[-1] == f"{RUNS[9]}: run.json was altered; it will be done again."
    assert text(status())[-1] == "Nobody is at work here. The same `depthscope run` command continues."


def test_seeds_of_one_place_are_one_line_and_the_name_gives_way() -> None:
    cells = [cell for cell in PLAN.cells if (cell.part, cell.arm) == ("sweep", "plain")]
    first = [cell.run_id for cell in cells if cell.axes == cells[0].axes]
    assert len(first) == 2
    group = tuple(Running(run_id=each, step=40, num_steps=100, silent_s=3.0, alive=True) for each in first)
    found = status(running=group, left=frozenset(first))
    [head, line] = text(found, dict.fromkeys(first, 2.0))
    assert line == (
        "sweep: plain depth 2 seeds 0-1 step 40 of 100 2.0 steps/s each 0:00:30 left sign of life 0:00:03 ago"
    )
    assert head.endswith("about 0:00:30 left")
    narrow = text(found, dict.fromkeys(first, 2.0), width=80)[-1]
    assert narrow.startswith("s")
    assert "… seeds 0-1 step 40 of 100 2.0 steps/s each 0:00:30 left sign of life" in narrow
    assert time_left(status(running=group), {}) is None


def test_the_time_left_is_that_of_all_the_work_at_the_pace_of_what_is_under_way() -> None:
    both = RUNS[:2]  # two seeds of one place weigh the same
    found = status(running=(running(0, 50),), left=frozenset(both))
    assert time_left(found, {RUNS[0]: 5.0}) == pytest.approx(10 + 20)


def test_the_same_for_programs() -> None:
    found = status(running=(running(0, 40),), failed={RUNS[1]: "no"}, damaged=(Damage(RUNS[2], "cut"),))
    document = json.loads(as_json(found))
    assert document["complete"] is False
    assert document["running"] == [
        {"run_id": RUNS[0], "name": NAME, "step": 40, "num_steps": 100, "silent_s": 3.0, "alive": True}
    ]
    assert (document["failed"], document["damaged"]) == ({RUNS[1]: "no"}, {RUNS[2]: "cut"})


def test_rates_come_from_two_looks_and_outlive_one_without_news() -> None:
    speedometer = Speedometer()
    assert speedometer.rates(status(running=(running(0, 40),)), 10.0) == {}
    assert speedometer.rates(status(running=(running(0, 60),)), 14.0) == {RUNS[0]: 5.0}
    assert speedometer.rates(status(running=(running(0, 60),)), 16.0) == {RUNS[0]: 5.0}
    assert speedometer.rates(status(running=(running(0, 72),)), 18.0) == {RUNS[0]: 3.0}
    assert speedometer.rates(status(running=(running(0, 10),)), 20.0)[RUNS[0]] == 3.0  # taken over: it began again
    assert speedometer.rates(status(), 22.0) == {}


@pytest.fixture
def looks() -> Callable[..., tuple[list[float], str]]:
    """Watches a folder that stands like this at one look after the other; what was slept and printed."""

    def act(*found: api.Status, took: float = 0.0) -> tuple[list[float], str]:
        upcoming: Iterator[api.Status] = iter(found)
        slept: list[float] = []
        now = [0.0]

        def look() -> api.Status:
            now[0] += took
            return next(upcoming)

        console = Console(file=io.StringIO(), width=160, color_system=None)
        watch(look, console, clock=lambda: now[0], sleep=slept.append)
        assert next(upcoming, None) is None, "it left before the last look"
        return slept, console.file.getvalue()  # type: ignore[attr-defined]

    return act


def test_watching_ends_when_all_is_recorded_and_prints_what_changed(looks: Callable[..., Any]) -> None:
    half = status(counts={"completed": 19, "missing": len(RUNS) - 19}, running=(running(30, 40),))
    whole = status(counts={"completed": len(RUNS), "missing": 0})
    slept, printed = looks(half, dataclasses.replace(half, running=(running(30, 50),)), whole)
    assert slept == [LOOK_S, LOOK_S]
    assert printed.splitlines() == [
        f"spiral, size smoke: 19 of {len(RUNS)} runs done (19 completed, {len(RUNS) - 19} missing); 1 under way",
        f"spiral, size smoke: {len(RUNS)} of {len(RUNS)} runs done ({len(RUNS)} completed)",
    ]


def test_watching_a_slow_drive_looks_less_often(looks: Callable[..., Any]) -> None:
    slept, _ = looks(status(), status(counts={"completed": len(RUNS), "missing": 0}), took=4.0)
    assert slept == [20.0]


def test_failed_runs_that_nobody_works_on_end_the_watching(looks: Callable[..., Any]) -> None:
    failed = {"failed": 1, "completed": len(RUNS) - 1, "missing": 0}
    looks(status(counts=failed, running=(running(0, 1),)), status(counts=failed, running=(running(0, 1, alive=False),)))
