"""Maps on the board, in `status` and in `plan`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from rich.console import Console

from depthscope import api
from depthscope.cli import planview
from depthscope.cli.mapline import QUIET_S, MapLine
from depthscope.cli.standing import as_json, drawn, watch
from depthscope.record.run_maps import RunMap
from depthscope.study.expand import expand
from depthscope.study.landscape import MapSpec
from depthscope.study.toml import parse

STUDY = """
name = "mapped"
title = { en = "Mapped" }
seeds = 2
[base]
backend = "torch"
family = "cifar_resnet"
depth = 8
width = 4
activation = "relu"
norm = "batch"
init = "he_fan_in"
data = "images"
epochs = 1
measures = ["weights"]
[parts.main]
arms = [{ name = "plain" }]
[landscape]
points = 5
planes = 2
hessian_points = 3
"""
PLAN = expand(parse(STUDY, source="mapped.toml"))
RUNS = list(PLAN.runs)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def news(number: int, **fields: Any) -> api.MapNews:
    return api.MapNews(run_id="r", plane=1, number=number, of=4, **fields)


def lines(parts: list[Any]) -> str:
    console = Console(file=io.StringIO(), width=150, color_system=None)
    with console.capture() as captured:
        console.print(*parts)
    return " ".join(captured.get().replace("━", "").replace("╸", "").replace("╺", "").split())


def test_the_map_at_hand_is_named_with_its_points_and_the_time_left() -> None:
    clock = Clock()
    board = MapLine(clock)
    assert board.render(over=False) == []
    assert list(board.hear(news(1, done=25, points=100), "main: A seed 0", interactive=True)) == []
    clock.now = 30.0
    list(board.hear(news(1, done=75, points=100), "main: A seed 0", interactive=True))
    # Half a map in 30 s; 3.25 maps are left.
    assert lines(board.render(over=False)) == (
        "maps 0/4 maps, about 0:03:15 left · main: A seed 0, plane 1: 75/100 points"
    )
    list(board.hear(news(1, ended=True), "main: A seed 0", interactive=True))
    assert lines(board.render(over=True)) == "maps 1/4 maps"


def test_a_map_that_could_not_be_made_is_told_and_counted() -> None:
    board = MapLine(Clock())
    (line,) = board.hear(news(1, ended=True, fault="no data."), "main: A seed 0", interactive=True)
    assert line.plain == "main: A seed 0, plane 1: no map: no data."
    assert lines(board.render(over=True)) == "maps 1/4 maps, 1 failed"


def test_without_a_terminal_lines_are_sparse_and_yet_come() -> None:
    clock = Clock()
    board = MapLine(clock)

    def said(word: api.MapNews) -> list[str]:
        return [line.plain for line in board.hear(word, "n", interactive=False)]

    assert said(news(1, done=0, points=9)) == []
    clock.now = 10.0
    assert said(news(1, ended=True)) == ["1 of 4 maps done, about 0:00:30 left"]
    assert said(news(2, done=1, points=9)) == []
    clock.now += QUIET_S
    assert len(said(news(2, done=2, points=9))) == 1


def status(*maps: RunMap, **counts: int) -> api.Status:
    none = {"completed": 0, "diverged": 0, "failed": 0, "damaged": 0, "missing": 0}
    return api.Status(
        study=PLAN.study, plan=PLAN, counts={**none, **counts}, failed={}, damaged=(), maps=maps, num_maps=4
    )


def map_of(run_id: str = RUNS[0], seed: int = 0, fault: str | None = None) -> RunMap:
    return RunMap(run_id=run_id, spec=MapSpec(points=5, seed=seed), fault=fault)


def test_status_counts_them_and_says_why_one_could_not_be_made() -> None:
    found = status(map_of(), map_of(seed=1, fault="no data."), completed=1, missing=1)
    assert found.map_counts == {"completed": 0, "failed": 1, "in part": 0, "missing": 3}
    assert not found.complete
    console = Console(file=io.StringIO(), width=150, color_system=None)
    with console.capture() as captured:
        console.print(drawn(found))
    first, second, _ = captured.get().splitlines()
    assert first.endswith("1 of 2 runs done (1 completed, 1 missing); 0 of 4 maps (1 failed, 3 missing)")
    assert second == "no map: no data."
    document = json.loads(as_json(found))
    assert document["maps"] == found.map_counts
    assert list(document["map_faults"].values()) == ["no data."]


def test_watching_goes_on_until_the_maps_are_made_or_cannot_be() -> None:
    begun = status(map_of(), completed=2)
    over = status(map_of(fault="no data."), completed=2)
    looks = iter([begun, begun, over])
    console = Console(file=io.StringIO(), width=150, color_system=None)
    slept: list[float] = []
    watch(lambda: next(looks), console, clock=Clock(), sleep=slept.append)
    assert len(slept) == 2


def test_the_plan_lists_them(call: Callable[..., Any], tmp_path: Any) -> None:
    path = tmp_path / "mapped.toml"
    path.write_text(STUDY)
    assert planview.num_maps(PLAN) == 4
    told = " ".join(call("plan", str(path)).out.split())
    assert (
        "Maps: 4 (2 runs, 2 planes each), made when the runs are done. A map has the loss of 512 examples at 25 "
        "points, and the Hessian's extremes at 9 of its first plane; 118 points in all." in told
    )
    document = json.loads(call("plan", str(path), "--json").out)
    assert document["maps"] == {"runs": 2, "maps": 4, "points": 25, "examples": 512, "hessian_points": 9}


def test_a_study_without_maps_says_nothing_of_them() -> None:
    plan = expand(parse(STUDY.partition("[landscape]")[0], source="mapped.toml"))
    counts = {"completed": 2, "diverged": 0, "failed": 0, "damaged": 0, "missing": 0}
    found = api.Status(study=plan.study, plan=plan, counts=counts, failed={}, damaged=())
    assert found.complete
    assert lines([drawn(found)]) == "mapped: 2 of 2 runs done (2 completed)"
    assert "maps" not in json.loads(as_json(found))
