"""The ranking on the page and as a figure; parameters beside the baseline's in every table of arms."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.report import synthetic

from depthscope.analysis.findings import judge
from depthscope.analysis.ranking import rankings
from depthscope.analysis.table import Results
from depthscope.record.schema import Outcome, RunRecord
from depthscope.report import content, render
from depthscope.report.charts import RankPoint, RankRow, ranked_arms
from depthscope.report.charts.ranking import wrapped
from depthscope.report.export import figures, png
from depthscope.report.ranking import ranking_block, ranking_sections
from depthscope.report.strings import Lang
from depthscope.report.words import Words
from depthscope.study.expand import expand
from depthscope.study.study import StudySpec
from depthscope.study.toml import load


def ranked(metric: str = "train_accuracy", *, lost: str = "") -> Results:
    """The made-up cifar10 study, its part ranked; `lost` is an arm whose deep runs all diverged."""
    document = load("cifar10", "quick").model_dump(mode="json")
    document["parts"]["main"]["ranked"] = metric
    found = synthetic.made(expand(StudySpec.model_validate(document)))
    records = dict(found.records)
    for cell in found.plan.cells:
        record = records[cell.run_id]
        if cell.arm == lost and cell.axes["depth"] > 20:
            record = record.model_copy(update={"outcome": Outcome(status="diverged", step=3), "summary": {}})
        if cell.arm == "A0" and record.parameters is not None:
            record = record.model_copy(update={"parameters": record.parameters * 3 // 2})
        records[cell.run_id] = record
    return Results(plan=found.plan, records=records, load_table=lambda run_id, name: None)  # no curves: quick


@pytest.fixture(scope="module")
def pages() -> Mapping[str, str]:
    found = ranked(lost="plain")
    findings = judge(found)
    return {lang: render(found, findings, lang=lang, command="x").decode() for lang in ("en", "zh")}


def section(page: str) -> str:
    (found,) = re.findall(r'<section id="ranking">.*?</section>', page, re.DOTALL)
    return str(found)


def test_the_page_has_a_ranking_in_both_languages(pages: Mapping[str, str]) -> None:
    english, chinese = section(pages["en"]), section(pages["zh"])
    counted = (
        r"Of 3 pairs of arms, compared seed by seed and all together, [01] (is|are) settled at 95%, and 2 are decided"
    )
    assert re.search(counted + " by lost runs: every run of one arm diverged, and none of the other", english)
    assert "另有 2 对由失败的运行决定" in chinese
    assert "possible" in english or "settled</small>" in english
    assert "对中" in chinese
    assert "名次" in chinese
    for page in pages.values():
        assert 'href="#ranking"' in page
    rows = re.findall(r'<th scope="row">.*?</th>\s*<td class="num" data-label="rank"><span>(\d+)', english, re.DOTALL)
    assert rows == ["1", "2", "3"]


def test_lost_runs_stand_last_and_are_told(pages: Mapping[str, str]) -> None:
    english = section(pages["en"])
    last = english[english.rindex('<th scope="row">') :]
    assert "plain" in last
    assert "depth 56: 3 of 3" in last


def test_parameters_are_told_beside_the_baselines_in_the_ranking_and_in_the_table_of_arms(
    pages: Mapping[str, str],
) -> None:
    page = pages["en"]
    assert section(page).count("<small>+50.0%</small>") == 1
    arms = page[page.index('<section id="part-main">') :]
    assert arms.count("<small>+50.0%</small>") == 2  # at each depth; the others have as many as the baseline


def test_no_ranking_without_being_asked(pages: Mapping[str, str]) -> None:
    assert ranking_sections(synthetic.cifar(), Words("en")) == []


@pytest.mark.parametrize("metric", ["train_accuracy", "train_loss"])
def test_the_figure_is_exported_with_a_row_for_each_arm(metric: str) -> None:
    spec = figures(ranked(metric, lost="plain"), ())["ranking-main"]
    assert png(spec).startswith(b"\x89PNG")
    left = spec["vconcat"][-1]["concat"][0]["layer"][0]["encoding"]["y"]["axis"]
    assert left["values"] == [0, 1, 2]
    assert left["tickCount"] == 3  # with fewer Vega leaves names out
    assert any(row.get("text") == "✕ 3 of 3 lost" for rows in spec["datasets"].values() for row in rows)


def row(label: str, *values: float | None) -> RankRow:
    points = tuple(
        RankPoint(depth=at, name=f"{at}", value=value, low=None, high=None, seeds=()) for at, value in enumerate(values)
    )
    return RankRow(label=label, rank="1", points=points)


def test_the_chart_is_valid_whole_and_refuses_what_has_nothing_to_draw() -> None:
    words = dict.fromkeys(("depth", "seed", "estimate", "low", "high"), "x")
    more = {"x_title": "x", "rank_title": "rank", "describe": "d", "words": words, "worse": "right"}
    chart = ranked_arms([row("a" * 60, 1.0, 2.0), row("b", 1e-3, 1e-4)], ["#aaaaaa", "#1f63c4"], log=True, **more)  # type: ignore[arg-type]
    assert chart.to_dict()
    with pytest.raises(ValueError, match="none at all"):
        ranked_arms([row("a", None)], ["#1f63c4"], **more)  # type: ignore[arg-type]


def test_long_names_stand_in_two_lines() -> None:
    assert wrapped("reference: ResNet A, branches start at zero") == ["reference: ResNet A,", "branches start at zero"]
    assert len(wrapped("参照：ResNet A，支路从零开始的网络结构")) == 2
    assert wrapped("a" * 200) == ["a" * 200]


def test_of_two_depths_that_were_lost_one_line_is_told() -> None:
    shades = ("#99bbee", "#1f63c4")

    def texts(first: str, second: str) -> list[str]:
        lost = tuple(
            RankPoint(depth=at, name=f"{6 * (at + 1)} layers", value=None, low=None, high=None, seeds=(), lost=told)
            for at, told in enumerate((first, second))
        )
        good = RankPoint(depth=1, name="12 layers", value=0.5, low=0.0, high=0.9, seeds=((0, 0.5),))
        rows = [RankRow(label="good", rank="1", points=(good,)), RankRow(label="x", rank="2", points=lost)]
        words = dict.fromkeys(("depth", "seed", "estimate", "low", "high"), "")
        told: Any = {
            "x_title": "x",
            "rank_title": "rank",
            "describe": "x",
            "words": words,
            "worse": "left",
            "percent": True,
        }
        figure = ranked_arms(rows, shades, **told).to_dict()
        ends = [layer["encoding"]["x"]["scale"]["domain"] for layer in figure["layer"] if "x" in layer["encoding"]]
        assert all(high <= 1.0 for _, high in ends)
        return [row["text"] for table in figure["datasets"].values() for row in table if "text" in row]

    assert texts("2 of 2 lost", "2 of 2 lost") == ["✕ 2 of 2 lost"]
    assert texts("1 of 2 lost", "2 of 2 lost") == ["✕ 6 layers: 1 of 2 lost, 12 layers: 2 of 2 lost"]
    assert texts("", "2 of 2 lost") == ["✕ 2 of 2 lost"]


def test_a_whisker_that_reaches_zero_ends_where_a_log_axis_does() -> None:
    points = [RankPoint(depth=0, name="", value=at, low=0.0, high=2 * at, seeds=((0, at),)) for at in (1e-3, 1.0)]
    rows = [RankRow(label=str(at), rank=str(at), points=(point,)) for at, point in enumerate(points)]
    words = dict.fromkeys(("depth", "seed", "estimate", "low", "high"), "")
    told: Any = {"x_title": "x", "rank_title": "rank", "describe": "x", "words": words, "worse": "right", "log": True}
    figure = ranked_arms(rows, ("#1f63c4",), **told).to_dict()
    low, high = figure["layer"][-1]["encoding"]["x"]["scale"]["domain"]
    assert 0 < low < 1e-3 < 1.0 < high
    whiskers = [row for table in figure["datasets"].values() for row in table if "x2" in row]
    assert [row["x"] for row in whiskers] == [low, low]


def test_the_ranking_is_the_first_figure_and_stands_once(pages: Mapping[str, str]) -> None:
    page = pages["en"]
    figures_of = re.findall(r'data-chart="(ranking-[^"]*-figure)"', page)
    assert len(figures_of) == len(set(figures_of)) == 1
    assert re.findall(r'data-chart="([^"]*)"', page)[0] == figures_of[0]


def long_dashes(results: Results, lang: Lang = "en") -> tuple[list[float], str]:
    """(levels of the lines of chance in the figure of the first ranking, its caption)."""
    words = Words(lang)
    (view, *_) = content.views(results, words)
    block = ranking_block(rankings(results)[0], view, words)
    assert block is not None
    drawn: Any = block.panels[0].draw()
    drawn = drawn.to_dict()
    rules = [each for each in drawn["layer"] if each["mark"].get("strokeDash") == [7, 4]]
    return [row["x"] for rule in rules for row in drawn["datasets"][rule["data"]["name"]]], block.caption


def guessing(results: Results, loss: Callable[[RunRecord], float | None]) -> Results:
    told = {key: each.model_copy(update={"chance_loss": loss(each)}) for key, each in results.records.items()}
    return Results(plan=results.plan, records=told, load_table=results.load_table)


def test_the_line_at_chance_is_of_what_is_measured_on_the_training_examples() -> None:
    at, caption = long_dashes(ranked("train_accuracy"))
    assert at == [0.1]
    assert "The line of long dashes is chance, 10.0%." in caption
    losses = guessing(ranked("train_loss"), lambda record: math.log(10))
    at, caption = long_dashes(losses)
    assert at == [math.log(10)]
    assert "The line of long dashes is a guess, 2.303." in caption
    assert "长虚线为随机猜测，2.303。" in long_dashes(losses, "zh")[1]
    # The best constant answer on other examples is another, and no record holds what it costs.
    for results in (guessing(ranked("test_loss"), lambda record: math.log(10)), ranked("train_loss")):
        assert long_dashes(results) == ([], long_dashes(results)[1])
        assert "long dashes" not in long_dashes(results)[1]


def test_where_chance_is_not_one_level_it_is_no_line() -> None:
    at, caption = long_dashes(guessing(ranked("train_loss"), lambda record: 1.0 + record.spec.depth))
    assert at == []
    assert "long dashes" not in caption
