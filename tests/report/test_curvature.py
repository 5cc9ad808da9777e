"""The loss along the step and its sharpness, as the page draws them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.report.synthetic import PROVENANCE

from depthscope.analysis.findings import judge
from depthscope.analysis.table import Results
from depthscope.record.schema import TABLES, Digests, Outcome, RunRecord, Timings
from depthscope.report import content
from depthscope.report.charts.bands import Band, Bound, by_step
from depthscope.report.charts.lines import Line
from depthscope.report.curvature import curvature_blocks
from depthscope.report.export import figures
from depthscope.report.page import render
from depthscope.report.palette import MUTED, Series
from depthscope.report.shapes import Block
from depthscope.report.strings import Lang
from depthscope.report.words import Words
from depthscope.study.expand import expand
from depthscope.study.study import StudySpec

BASE: dict[str, Any] = {
    "backend": "torch",
    "family": "cifar_resnet",
    "width": 4,
    "activation": "relu",
    "init": "he_fan_in",
    "data": "images",
    "steps": 20,
    "measures": ["sharpness", "smoothness"],
    "measure_steps": [10],
    "optimizer_options": {"momentum": 0.9, "weight_decay": 0.0},
}
ARMS = ({"name": "plain"}, {"name": "res", "set": {"shortcut": "A"}}, {"name": "slow", "set": {"lr": 0.01}})
Value = Callable[[str, int, int, int], float | None]
"""(arm, depth, seed, step) -> a value of a row, or none."""


def results(
    rows: dict[str, Value], *, depths: tuple[int, ...] = (8, 14), steps: tuple[int, ...] = (0, 10, 20)
) -> Results:
    """Made of rows `split__quantity`."""
    parts = {"main": {"axes": {"depth": list(depths)}, "arms": list(ARMS)}}
    document = {"name": "x", "title": {"en": "X"}, "base": BASE, "seeds": 2, "parts": parts}
    plan = expand(StudySpec.model_validate(document))
    records: dict[str, RunRecord] = {}
    tables: dict[str, pa.Table] = {}
    for cell in plan.cells:
        spec = plan.runs[cell.run_id]
        columns: dict[str, list[Any]] = {key: [] for key in ("step", "split", "quantity", "value")}
        for name, value in rows.items():
            for step in steps:
                found = value(cell.arm, spec.depth, spec.seed, step)
                if found is not None:
                    for key, entry in zip(columns, (step, *name.split("__"), found), strict=True):
                        columns[key].append(entry)
        tables[cell.run_id] = pa.table(columns, schema=TABLES["metrics"])
        records[cell.run_id] = RunRecord(
            run_id=cell.run_id,
            spec=spec,
            outcome=Outcome(status="completed", step=20),
            summary={"train_accuracy": 0.5, "smoothness_most": 7.25, "sharpness_last": 3.5},
            parameters=1,
            layers=(),
            digests=Digests(init={}, data="d"),
            tables={"metrics": "0" * 64},
            provenance=PROVENANCE,
            timings=Timings(wall_s=1.0, cpu_s=1.0, started="2026-01-05T09:30:00Z"),
        )
    return Results(
        plan=plan, records=records, load_table=lambda run_id, name: tables[run_id] if name == "metrics" else None
    )


def smooth(high: Value, low: Value = lambda *_: 1.0) -> dict[str, Value]:
    names = ("loss", "change")
    return {
        **{f"smoothness__{name}_low": low for name in names},
        **{f"smoothness__{name}_high": high for name in names},
        "smoothness__smoothness": high,
    }


def blocks(found: Results) -> list[Block]:
    words = Words("en")
    (view,) = content.views(found, words)
    return curvature_blocks(found, view, words)


def rows_of(chart: Any) -> list[dict[str, Any]]:
    return [row for table in chart.datasets.values() for row in table]


def test_a_panel_for_each_quantity_and_depth_with_means_over_seeds() -> None:
    [block] = blocks(results(smooth(lambda arm, depth, seed, step: depth + 2.0 * seed + step / 10)))
    assert block.key == "step-main"
    assert (len(block.panels), block.columns) == (6, 2)
    assert [panel.title for panel in block.panels] == ["8 layers", "14 layers"] * 3
    assert [each.label for each in block.legend] == ["plain", "res", "slow"]
    bands = [row for row in rows_of(block.panels[1].draw()) if row["series"] == "res"]
    assert [(row["x"], row["low"], row["high"]) for row in bands] == [(0, 1, 15), (10, 1, 16), (20, 1, 17)]
    lines = [row for row in rows_of(block.panels[4].draw()) if row["series"] == "plain"]
    assert [row["y"] for row in lines if row["seed"] is None] == [9, 10, 11]
    assert [row["y"] for row in lines if row["seed"] == 1] == [10, 11, 12]
    assert not block.notes


def test_what_overflowed_is_counted_and_its_step_left_out() -> None:
    def high(arm: str, depth: int, seed: int, step: int) -> float:
        return math.inf if (arm, depth, seed, step) == ("plain", 8, 1, 10) else 5.0

    rows = {**smooth(lambda *_: 5.0), "smoothness__loss_high": high}
    [block] = blocks(results(rows))
    assert block.notes == ("Where the loss or its gradient overflowed on the way, at 1 point, nothing is drawn.",)
    drawn = rows_of(block.panels[0].draw())
    assert [row["x"] for row in drawn if row["series"] == "plain"] == [0, 20]
    assert [row["x"] for row in drawn if row["series"] == "res"] == [0, 10, 20]


def test_values_over_decades_have_a_log_axis_that_panels_share() -> None:
    [block] = blocks(results(smooth(lambda arm, depth, *_: 5.0 if depth == 8 else 5000.0)))
    for panel in block.panels[:2]:
        scales = [layer["encoding"]["y"]["scale"] for layer in panel.draw(width=100).to_dict()["layer"]]
        assert {scale["type"] for scale in scales} == {"log"}
        assert {tuple(scale["domain"]) for scale in scales} == {(1 / 1.2, 6000.0)}
    [block] = blocks(results(smooth(lambda arm, depth, *_: 5.0 if depth == 8 else 5000.0, lambda *_: 0.0)))
    assert block.panels[0].draw(width=100).to_dict()["layer"][0]["encoding"]["y"]["scale"]["type"] == "linear"


def test_of_many_depths_the_ends_and_of_one_step_nothing() -> None:
    [block] = blocks(results(smooth(lambda *_: 2.0), depths=(8, 14, 20, 26)))
    assert [panel.title for panel in block.panels[:2]] == ["8 layers", "26 layers"]
    assert block.notes == ("Of 4 values of the axis, the first and the last.",)
    assert not blocks(results(smooth(lambda *_: 2.0), steps=(0,)))
    assert not blocks(results({}))


def test_sharpness_stands_against_each_edge_once() -> None:
    edges = {"plain": 38.0, "res": 38.0, "slow": 380.0}
    rows: dict[str, Value] = {
        "sharpness__lambda_max": lambda arm, depth, seed, step: 20.0 + seed if arm == "plain" else 45.0,
        "sharpness__edge": lambda arm, *_: edges[arm],
    }
    [block] = blocks(results(rows))
    assert (block.key, len(block.panels), block.columns) == ("sharpness-main", 2, 2)
    assert [each.label for each in block.legend] == ["plain", "res", "slow", "edge of stability"]
    assert "It stands at (2 + 2 × momentum) / learning rate." in block.caption
    bare = [row for row in rows_of(block.panels[0].draw()) if "series" not in row]
    assert [row["y"] for row in bare] == [38.0] * 3 + [380.0] * 3
    marks = [layer["mark"] for layer in block.panels[0].draw(width=100).to_dict()["layer"]]
    assert [each["color"] for each in marks if "strokeDash" in each] == [MUTED, block.legend[2].color]
    # An edge beyond ten times the largest eigenvalue is not drawn, and the legend does not promise it.
    rows["sharpness__edge"] = lambda *_: 1000.0
    [block] = blocks(results(rows))
    assert [row for row in rows_of(block.panels[0].draw()) if "series" not in row] == []
    assert len(block.legend) == 3


def test_without_an_edge_the_caption_says_why() -> None:
    [block] = blocks(results({"sharpness__lambda_max": lambda *_: 3.0}))
    assert "no bound to be read against" in block.caption


def test_the_page_and_the_export_have_them() -> None:
    sharp: dict[str, Value] = {"sharpness__lambda_max": lambda *_: 3.0, "sharpness__edge": lambda *_: 4.0}
    found = results(smooth(lambda *_: 2.0) | sharp)
    headings: dict[Lang, str] = {"en": "Along the step", "zh": "沿着这一步"}
    for lang, heading in headings.items():
        page = render(found, judge(found), lang=lang, command="x").decode()
        assert heading in page
        assert 'id="step-main"' in page
        assert 'id="sharpness-main"' in page
        assert "7.25" in page  # the table of arms
    assert {"step-main", "sharpness-main"} <= set(figures(found, judge(found)))


SERIES = (Series(name="a", label="A", color="#d9481c", shape="circle"),)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"lines": [Line(series="b", seed=None, x=(0.0,), y=(1.0,))]}, r"no series for the arms \['b'\]"),
        ({"bands": [Band(series="a", x=(0.0,), low=(0.0,), high=(1.0,))], "log": True}, "at or below zero"),
        ({"lines": [Line(series="a", seed=None, x=(0.0,), y=(math.inf,))]}, "finite numbers"),
        ({"bounds": [Bound(series=None, x=(0.0,), y=(math.nan,))]}, "finite numbers"),
        ({}, "finite numbers"),
    ],
)
def test_a_figure_refuses_what_it_cannot_show(given: dict[str, Any], says: str) -> None:
    frame: dict[str, Any] = {"x_title": "x", "y_title": "y", "describe": "", "words": {"low": "l", "high": "h"}}
    with pytest.raises(ValueError, match=says):
        by_step(SERIES, **given, **frame, domain=(0.1, 2.0), span=(0.0, 1.0))
