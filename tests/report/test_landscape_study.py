"""The landscapes of a study: the run in the middle of each cell, the others behind it, all on one scale."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report import maps, synthetic
from tests.report.chrome import Chrome
from tests.report.conftest import COMMAND, Study
from tests.report.test_visible import TRACES, read

from depthscope.analysis.table import Results
from depthscope.record.landscape import MapRecord
from depthscope.report import citations, figures, render, svg
from depthscope.report.content import views
from depthscope.report.landscape.study import Section, landscapes, middle
from depthscope.report.words import Words
from depthscope.study.landscape import Maps

EN = Words("en")


def mapped(study: Study, *, planes: int = 1, points: int = 7, **more: Any) -> Results:
    """The study's results with maps; at the centre the loss of seed s is 0.08 (1 + s)."""
    specs = study.results.plan.runs

    def load(run_id: str) -> tuple[MapRecord, ...]:
        spec = specs[run_id]
        rough = 0.5 if spec.shortcut == "none" and spec.depth > 20 else 0.0
        return tuple(
            maps.made(points=points, rough=rough, draw=spec.seed, seed=plane, scale=1.0 + spec.seed, **more)
            for plane in range(planes)
        )

    return replace(study.results, load_maps=load)


def only(results: Results, words: Words = EN) -> Section:
    found = landscapes(results, words)
    assert len(found) == 1
    return found[0]


def test_each_cell_shows_the_run_whose_loss_at_the_centre_is_the_middle_one(cifar: Study) -> None:
    section = only(mapped(cifar, planes=2))
    titles = [panel.title for panel in section.blocks[0].panels]
    cells = views(cifar.results, EN)[0].cells()
    assert len(titles) == len(cells)
    assert titles[0] == "plain, 20 layers, seed 1"
    assert all(title.endswith("seed 1") for title in titles)
    assert [title.split(", ")[-2] for title in titles[:3]] == ["20 layers"] * 3  # arms side by side, the deeper below
    assert section.blocks[0].columns == 3
    assert f"all {section.count} maps are below" in " ".join(section.blocks[0].notes)
    assert section.count == 2 * len(cifar.results.rows)
    assert len(section.all_maps[0].panels) == section.count


def test_the_middle_of_an_even_number_is_the_lower_and_infinity_the_highest(cifar: Study) -> None:
    row = cifar.results.rows[0]
    losses = [0.3, 0.1, 0.2, math.inf]
    given = []
    for loss in losses:
        record = maps.made(points=3)
        record.loss[1, 1] = loss
        given.append((row, record))
    assert middle(given)[1].centre_loss == 0.2
    assert middle(given[:2])[1].centre_loss == 0.1
    other = maps.made(points=3, seed=1)
    other.loss[1, 1] = 0.0
    assert middle([*given[:1], (row, other)])[1].centre_loss == 0.3  # of the first directions alone


def test_all_maps_have_one_scale_the_folded_ones_too(cifar: Study) -> None:
    section = only(mapped(cifar, planes=2))
    bars = [block.scale.draw(width=300).to_dict() for block in (section.blocks[0], section.all_maps[0]) if block.scale]
    domains = [bar["layer"][0]["encoding"]["x"]["scale"]["domain"] for bar in bars]
    assert domains[0] == domains[1]
    lowest = min(float(each.loss.min()) for each in section.records)
    assert domains[0][0] == lowest


def test_nothing_is_folded_where_all_are_shown(cifar: Study) -> None:
    single = mapped(cifar)
    load = single.load_maps
    plan = single.plan
    results = replace(single, load_maps=lambda run_id: load(run_id) if plan.runs[run_id].seed == 0 else ())
    section = only(results)
    assert section.all_maps == ()
    assert section.count == len(section.blocks[0].panels)
    assert not any("maps are below" in note for note in section.blocks[0].notes)


def test_a_study_without_maps_has_no_section(cifar: Study) -> None:
    assert landscapes(cifar.results, EN) == []
    assert "Loss landscapes" not in read(cifar.page())
    assert not any(name.startswith("landscape") for name in figures(cifar.results, cifar.findings))


def test_lines_are_thin_but_for_the_middle_one_of_an_arm_and_depth(cifar: Study) -> None:
    section = only(mapped(cifar, planes=2, axes=1))
    (block,) = section.blocks
    assert [panel.title for panel in block.panels] == ["20 layers", "56 layers"] * 2  # loss, then accuracy
    assert "Thin lines are seeds and directions" in block.caption
    chart = block.panels[0].draw(width=300).to_dict()
    strengths = [(layer["mark"]["strokeWidth"], layer["data"]["name"]) for layer in chart["layer"][1:3]]
    (thin, few), (strong, one) = strengths
    assert thin < strong
    named = {name: {(row["series"], row["name"]) for row in chart["datasets"][name]} for name in (few, one)}
    assert {name for _, name in named[one]} == {"seed 1, directions of seed 0"}
    assert len(named[one]) == 3
    assert len(named[few]) == 3 * (3 * 2 - 1)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_and_the_figures_have_them(cifar: Study, lang: Any) -> None:
    results = mapped(cifar, planes=2, hessian_points=5)
    page = render(results, cifar.findings, command=COMMAND, lang=lang)
    assert page == render(results, cifar.findings, command=COMMAND, lang=lang)
    text = read(page)
    assert re.findall(f".{{0,40}}(?:{TRACES}).{{0,40}}", text) == []
    assert Words(lang)("land.section") in text
    assert Words(lang)("gloss.hessian.text") in text
    assert Words(lang)("land.all", count=36) in text
    if lang == "zh":
        for key in ("land.map_caption", "land.maps", "land.convexity", "land.centre"):
            assert EN(key) not in text
    drawn = figures(results, cifar.findings, lang=lang)
    assert {"landscape-main", "convexity-main"} <= set(drawn)
    assert svg(drawn["landscape-main"]).startswith(b"<svg")
    assert "批归一化" in drawn["landscape-main"]["title"]["subtitle"][1] or lang == "en"


def test_the_method_is_cited_where_a_study_asks_for_maps(cifar: Study) -> None:
    plan = cifar.results.plan
    asked = replace(plan, study=plan.study.model_copy(update={"landscape": Maps()}))
    assert "li2018landscape" in citations(asked)
    assert "li2018landscape" not in citations(plan)


def test_a_page_of_twelve_maps_of_51_points_stays_light() -> None:
    study = synthetic.cifar()
    keep = {row.cell.run_id for row in study.rows[:12]}
    results = replace(
        study,
        load_maps=lambda run_id: (maps.made(rough=1.0, draw=len(run_id)),) if run_id in keep else (),
    )
    assert len(render(results, (), command=COMMAND)) < 5_000_000


@pytest.mark.browser
def test_in_a_browser_the_others_are_drawn_when_they_are_opened(cifar: Study, browser: Chrome, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_bytes(render(mapped(cifar, planes=1, points=5), cifar.findings, command=COMMAND))
    browser.resize(1280, 900)
    browser.dark(False)
    browser.open(file)
    drawn = "document.querySelectorAll('#landscapes details .square image').length"
    assert browser.run("document.querySelectorAll('#landscapes > .wide .square image').length") == 6
    assert browser.run(drawn) == 0
    browser.run("document.querySelector('#landscapes details > summary').click()")
    browser.wait_for(f"{drawn} === 18", timeout=120)
    assert browser.errors == []
