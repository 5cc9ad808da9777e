"""The page in a real browser: every chart drawn, the selectors work, nothing asked of the network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.report import strange, synthetic
from tests.report.chrome import Chrome
from tests.report.conftest import Study, StudyOf

pytestmark = pytest.mark.browser

# Of each visible chart: size of its drawing and number of its marks.
CHARTS = """[...document.querySelectorAll('.chart')].filter((e) => e.checkVisibility()).map((e) => {
  const svg = e.querySelector('svg');
  const box = svg ? svg.getBoundingClientRect() : {width: 0, height: 0};
  return {id: e.dataset.chart, width: box.width, height: box.height,
          marks: svg ? svg.querySelectorAll('.mark-line path, .mark-symbol path, .mark-rule line').length : 0,
          label: svg ? svg.querySelector('[aria-label]')?.getAttribute('aria-label') ?? '' : ''};
})"""
LINES = """(id) => [...document.querySelector(`.chart[data-chart="${id}"]`).querySelectorAll('.mark-line path')]
  .map((path) => path.getAttribute('d')).join('|')"""


@pytest.fixture
def opened(browser: Chrome, tmp_path: Path) -> Callable[..., Chrome]:
    def open_page(study: Study, *, width: int = 1440, dark: bool = False, **more: Any) -> Chrome:
        file = tmp_path / "report.html"
        file.write_bytes(study.page(**more))
        browser.resize(width, 900, mobile=width < 500)
        browser.dark(dark)
        browser.open(file)
        return browser

    return open_page


def assert_clean(page: Chrome) -> None:
    assert page.errors == []
    outside = [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1  # the page itself


def assert_drawn(page: Chrome, least: int) -> None:
    charts = page.run(CHARTS)
    assert len(charts) >= least
    for chart in charts:
        assert chart["width"] > 100, chart
        assert chart["height"] > 30, chart
        assert chart["marks"] > 0, chart
    width = page.run("document.documentElement.clientWidth")
    assert page.run("document.documentElement.scrollWidth") <= width  # nothing scrolls sideways


def test_cifar_on_a_wide_screen(opened: Callable[..., Chrome], cifar: Study) -> None:
    page = opened(cifar)
    assert_clean(page)
    assert_drawn(page, 9)


def test_a_folded_claim_is_drawn_when_it_opens(opened: Callable[..., Chrome], cifar: Study) -> None:
    page = opened(cifar)
    drawn = "document.querySelectorAll('.brief .chart svg').length"
    assert page.run("document.querySelectorAll('.brief .strip path').length") > 0  # the interval is there, in small
    assert page.run(drawn) == 0
    page.run("document.querySelector('.brief > summary').click()")
    page.wait_for(f"{drawn} === 1")
    assert_drawn(page, 10)
    assert_clean(page)


def test_the_spiral_on_a_phone_in_chinese_and_in_the_dark(opened: Callable[..., Chrome], spiral: Study) -> None:
    page = opened(spiral, width=390, dark=True, lang="zh")
    assert_clean(page)
    assert_drawn(page, 20)
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    colors = page.run("[...document.querySelectorAll('.chart svg [stroke]')].map((e) => e.getAttribute('stroke'))")
    assert "#ff7a4d" in colors  # plain, for dark paper
    assert "#d9481c" not in colors


def test_a_change_of_theme_draws_the_charts_again(opened: Callable[..., Chrome], cifar: Study) -> None:
    page = opened(cifar)
    strokes = "[...document.querySelectorAll('.chart svg [stroke]')].some((e) => e.getAttribute('stroke') === '{}')"
    assert page.run(strokes.format("#d9481c"))
    page.dark(True)
    page.wait_for(strokes.format("#ff7a4d") + " && !" + strokes.format("#d9481c"))
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    page.dark(False)
    page.wait_for(strokes.format("#d9481c") + " && !" + strokes.format("#ff7a4d"))
    assert_clean(page)


CHANGE = """(name, value) => { const control = document.querySelector(`#profile-main [data-control="${name}"]`);
  control.value = value; control.dispatchEvent(new Event(name === 'at' ? 'input' : 'change')); }"""


def test_the_step_and_quantity_selectors_change_what_is_drawn(opened: Callable[..., Chrome], cifar: Study) -> None:
    page = opened(cifar)
    lines = f"({LINES})('profile-main-56')"
    at_start = page.run(lines)
    last = page.run("document.querySelector('#profile-main [data-control=\"at\"]').max")
    page.run(f"({CHANGE})('at', {last})")
    page.wait_for(f"{lines} !== {at_start!r}")
    assert page.run("document.querySelector('#profile-main output').textContent") == "390 (last)"
    at_end = page.run(lines)
    page.run(f"({CHANGE})('quantity', 'h_norm')")
    page.wait_for(f"{lines} !== {at_end!r}")
    page.run(f"({CHANGE})('quantity', 'dh_norm')")
    page.run(f"({CHANGE})('at', 0)")
    page.wait_for(f"{lines} === {at_start!r}")  # and back, exactly
    page.dark(True)  # a choice survives a change of theme
    page.run(f"({CHANGE})('at', {last})")
    page.wait_for("document.querySelector('#profile-main svg [stroke=\"#ff7a4d\"]') !== null")
    page.wait_for(f"{lines} === {at_end!r}")
    assert_clean(page)


def test_play_walks_through_training(opened: Callable[..., Chrome], cifar: Study) -> None:
    page = opened(cifar)
    play = "document.querySelector('#profile-main [data-control=\"play\"]')"
    page.run(f"{play}.click()")
    page.wait_for("document.querySelector('#profile-main [data-control=\"at\"]').value >= 2")
    assert page.run(f"{play}.textContent") == "Pause"
    page.run(f"{play}.click()")
    assert page.run(f"{play}.textContent") == "Play"
    assert_clean(page)


def test_one_depth_at_a_time_where_there_are_many(opened: Callable[..., Chrome], spiral: Study) -> None:
    page = opened(spiral)
    shown = "[...document.querySelectorAll('#profile-sweep .panel:not([hidden])')].map((e) => e.dataset.panel)"
    assert page.run(shown) == ["profile-sweep-48"]
    page.run(
        "(() => { const c = document.querySelector('#profile-sweep [data-control=\"depth\"]');"
        " c.value = 'profile-sweep-8'; c.dispatchEvent(new Event('change')); })()"
    )
    page.wait_for("document.querySelector('[data-chart=\"profile-sweep-8\"] svg') !== null")
    assert page.run(shown) == ["profile-sweep-8"]
    assert_drawn(page, 20)
    assert_clean(page)


def test_charts_follow_the_width_of_the_window(opened: Callable[..., Chrome], cifar: Study) -> None:
    page = opened(cifar)
    width = "document.querySelector('.hero .chart svg').getBoundingClientRect().width"
    wide = page.run(width)
    page.resize(390, 844, mobile=True)
    page.wait_for(f"{width} < 380")
    assert wide > 900
    assert_drawn(page, 9)


def test_markup_in_a_study_does_nothing(opened: Callable[..., Chrome], study_of: StudyOf) -> None:
    page = opened(study_of(synthetic.hostile))
    assert page.run("window.hacked") is None
    assert page.run("document.querySelectorAll('img').length") == 0
    assert_clean(page)


@pytest.mark.parametrize("width", [390, 1440])
def test_endless_words_do_not_widen_the_page(opened: Callable[..., Chrome], study_of: StudyOf, width: int) -> None:
    page = opened(study_of(strange.endless_words), width=width)
    assert_clean(page)
    assert_drawn(page, 6)
    assert page.run("document.querySelector('h1').offsetHeight") < 500
    wide = "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().width > 3000).length"
    assert page.run(wide) == 0


def test_a_partial_study_and_paper(opened: Callable[..., Chrome], partial: Study) -> None:
    page = opened(partial)
    assert_clean(page)
    assert_drawn(page, 9)
    assert page.pdf().startswith(b"%PDF")
