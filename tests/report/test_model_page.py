"""The page of one model: numbers that it shows, what it says of noise and of what cannot be drawn, and its look."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.checkups import plain
from tests.report.chrome import Chrome
from tests.report.test_strings import visible

from depthscope.analysis.model import Expectation, Expected, Fault, ModelDiagnosis
from depthscope.core.readings import Course, ModelProfile
from depthscope.report.charts.depth import DepthValue, by_depth
from depthscope.report.model import Shown, render_model, tell
from depthscope.report.model.course import MOST_STEPS, course_pictures
from depthscope.report.model.pictures import GRADIENT, expected_gradient, pictures
from depthscope.report.model.places import shared_prefix
from depthscope.report.strings import Lang
from depthscope.report.words import Words

SICK = ModelDiagnosis(
    verdict="vanishing",
    cause="gain too small",
    where=("layers.3",),
    sentence="ReLU with torch's default initialiser: .41 a block, theory .408.",
    repair="draw weights with variance 2/fan_in",
    numbers={"rate": 0.41},
    inferred=True,
    others=(Fault(verdict="unused layers", cause="frozen block", where=("layers.5",), sentence="layers.5 is frozen."),),
)


def theory(profile: ModelProfile, value: float = 0.408) -> Expectation:
    band = Expected(value=value, low=0.9 * value, high=1.1 * value)
    return Expectation(multipliers={block.name: band for block in profile.structure.body})


def page(profile: ModelProfile, *, lang: Lang = "en", diagnosis: ModelDiagnosis = SICK) -> bytes:
    shown = Shown(profile=profile, expectation=theory(profile), places=diagnosis.where)
    told = tell(diagnosis, Words(lang))
    return render_model(shown, told, title="Net <b>", command="depthscope probe a:b", version="0.1.0", lang=lang)


def test_the_expected_gradient_is_the_product_of_the_expected_multipliers() -> None:
    profile = plain(12)
    line = {value.at: value.value for value in expected_gradient(Shown(profile=profile, expectation=theory(profile)))}
    measured = profile.values("boundary", "grad_norm")
    start = measured["layers.10"]  # the last block before the head: where the body ends
    assert line == {at: pytest.approx(start * 0.408 ** (11 - at)) for at in range(1, 12)}


def test_a_gap_in_theory_is_a_gap_in_its_line() -> None:
    profile = plain(12)
    whole = theory(profile)
    parts = Expectation(multipliers={name: each for name, each in whole.multipliers.items() if name != "layers.5"})
    line = list(expected_gradient(Shown(profile=profile, expectation=parts)))
    assert {value.at: value.piece for value in line} == {
        **dict.fromkeys(range(6, 12), 1),
        **dict.fromkeys(range(1, 6), 2),
    }
    anchors = {value.piece: value for value in line if value.at in (5, 11)}
    measured = profile.values("boundary", "grad_norm")
    assert [anchors[piece].value for piece in (1, 2)] == [measured["layers.10"], measured["layers.4"]]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_a_reader_must_know_is_said(lang: Lang) -> None:
    words = Words(lang)
    text = visible(page(plain(30, noise=True, objective="cotangent"), lang=lang))
    for key in ("model.noise", "model.cotangent", "verdict.vanishing", "verdict.unused layers", "status.frozen"):
        assert words(key) in text, key
    assert words("model.inferred") in text
    assert "layers.3" in text
    assert re.findall(r".{0,30}(?:\bNone\b|\bnan\b|\{\w+\}).{0,30}", text) == []
    assert (SICK.sentence in text) == (lang == "en")  # a page speaks one language
    # What was given, with a loss, is not noise without one.
    given = visible(page(plain(30), lang=lang))
    assert words("model.noise") not in given
    assert words("model.cotangent") not in given


def test_values_that_have_no_place_on_a_log_axis_are_counted_and_stand_in_the_table() -> None:
    profile = plain(8, broken=True)
    signal, *_ = pictures(Shown(profile=profile), Words("en"))
    assert Words("en")("model.left_out", n=3) in signal.notes  # two gradients of 0 and one infinite norm
    text = visible(page(profile))
    assert "∞" in text
    assert "12 not finite" in text


def trained(steps: tuple[int, ...]) -> Course:
    """A net whose blocks' multiplier is 1.01 to the power of the step."""
    profile = plain(4, residual=True)
    rows = [
        replace(each, step=step, value=1.01**step)
        for step in steps
        for each in profile.readings
        if each.quantity in ("grad_multiplier", "residual_ratio")
    ]
    conditions = dict.fromkeys(steps, profile.conditions[0])
    whole = ModelProfile(structure=profile.structure, readings=tuple(rows), conditions=conditions)
    return Course(profile=whole, losses=((0, 2.0), (1, 1.0), (2, math.nan), (3, 5.0)))


def test_the_course_of_a_training_is_a_cell_a_block_and_step() -> None:
    steps = tuple(range(300))
    losses, multipliers, ratios = course_pictures(trained(steps), Words("en"))
    curve = losses.panels[0].draw().datasets["rows-0"]
    assert [(row["x"], row["y"]) for row in curve] == [(0.0, 2.0), (1.0, 1.0)]  # up to the first that is not finite
    (cells,) = multipliers.panels[0].draw().datasets.values()
    assert len({cell["step"] for cell in cells}) <= MOST_STEPS + 1
    assert {cell["step"] for cell in cells} >= {0, 299}  # thinned, ends kept
    assert {cell["at"] for cell in cells} == {0, 1, 2, 3}
    assert all(cell["value"] == pytest.approx(1.01 ** cell["step"]) for cell in cells)
    assert len(next(iter(ratios.panels[0].draw().datasets.values()))) == len(cells)
    assert [each.key for each in course_pictures(trained((3,)), Words("en"))] == ["losses"]
    assert course_pictures(None, Words("en")) == []


def test_a_name_is_text_and_two_renders_are_the_same_bytes() -> None:
    first, second = page(plain(5)), page(plain(5))
    assert first == second
    assert b"Net &lt;b&gt;" in first
    assert b"Net <b>" not in first


def test_figures_refuse_what_they_cannot_draw() -> None:
    zero = DepthValue(series="grad_norm", at=0, name="a", value=0.0)
    with pytest.raises(ValueError, match="at or below zero"):
        by_depth([zero], (GRADIENT,), names=["a"], describe="", words={}, y_title="")


def test_a_prefix_is_cut_at_dots_and_never_the_whole_name() -> None:
    assert shared_prefix(["h.10", "h.11"]) == "h."
    assert shared_prefix(["h.10"]) == "h."
    assert shared_prefix(["head", "heap"]) == ""
    assert shared_prefix([]) == ""


@pytest.fixture
def opened(browser: Chrome, tmp_path: Path) -> Callable[..., Chrome]:
    def open_page(content: bytes, *, width: int = 1440, dark: bool = False) -> Chrome:
        file = tmp_path / "model.html"
        file.write_bytes(content)
        browser.resize(width, 900, mobile=width < 500)
        browser.dark(dark)
        browser.open(file)
        return browser

    return open_page


@pytest.mark.browser
@pytest.mark.parametrize(
    ("blocks", "width", "dark", "lang"), [(300, 1440, False, "en"), (300, 390, True, "zh"), (2, 1440, True, "en")]
)
def test_from_two_blocks_to_three_hundred_it_is_drawn_and_fits(
    opened: Callable[..., Chrome], blocks: int, width: int, dark: bool, lang: Lang
) -> None:
    shown = opened(page(plain(blocks, multiplier=0.98, residual=True), lang=lang), width=width, dark=dark)
    assert shown.errors == []
    assert [url for url in shown.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert shown.run("document.querySelectorAll('.chart svg').length") == 4
    assert shown.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    # Names on the axis never lie on one another, and the first of them is the input.
    boxes = """[...document.querySelectorAll('.chart svg')].map((svg) => {
      const labels = [...svg.querySelectorAll('.role-axis-label')].map((axis) => [...axis.querySelectorAll('text')]
        .filter((e) => e.getAttribute('opacity') !== '0').map((e) => e.getBoundingClientRect()));
      const names = labels.reduce((a, b) => (a.length && a[0].bottom > (b[0]?.bottom ?? 0) ? a : b), []);
      const sorted = names.sort((a, b) => a.left - b.left);
      return [sorted.length, sorted.every((box, i) => i === 0 || sorted[i - 1].right <= box.left + 0.5)];
    })"""
    for count, apart in shown.run(boxes):
        assert 3 <= count <= blocks + 1
        assert apart
