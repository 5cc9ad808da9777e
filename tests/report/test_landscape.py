"""Loss landscapes: shades and isolines are where the numbers are, maps share a scale, and nothing is hidden."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.report import maps
from tests.report.chrome import Chrome
from tests.report.test_visible import TRACES, read

from depthscope.analysis.landscape import curvature_ratios
from depthscope.record.landscape import HessianMap, MapRecord
from depthscope.report import png, svg
from depthscope.report.charts.landscape import Map, loss_map
from depthscope.report.landscape import landscape_figures, render_landscape
from depthscope.report.landscape.conditions import conditions
from depthscope.report.landscape.figures import Shown, convexity_block, loss_scale, map_block
from depthscope.report.landscape.isolines import isolines
from depthscope.report.landscape.page import told
from depthscope.report.landscape.scale import Scale, bar, picture, scale_of
from depthscope.report.strings import Lang
from depthscope.report.words import Words
from depthscope.study.landscape import Grid

EN = Words("en")
GRID = Grid(axes=2, num=21, extent=1.0)
A, B = np.meshgrid(GRID.coordinates, GRID.coordinates)


def pixels(url: str) -> np.ndarray[Any, Any]:
    """[rows, columns, 4] of a picture, the first row at the foot."""
    content = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGBA"))[::-1]


def page(record: MapRecord, lang: Lang = "en") -> bytes:
    return render_landscape(record, title="ResNet-20", command="depthscope landscape a:b", version="0.1.0", lang=lang)


def rows(chart: Any, key: str) -> list[dict[str, Any]]:
    """The rows of the table that has this column, after Altair has checked the figure against the schema."""
    return next(table for table in chart.to_dict()["datasets"].values() if table and key in table[0])


def block(*records: MapRecord) -> Any:
    shown = [Shown(key=f"m{index}", title=f"map {index}", record=each) for index, each in enumerate(records)]
    scale = loss_scale(shown)
    assert scale is not None
    return map_block(shown, EN, key="landscape", heading="", scale=scale)


def test_a_scale_is_logarithmic_where_the_loss_spans_decades_and_levels_lie_inside() -> None:
    narrow, wide = scale_of([A**2 + 1]), scale_of([np.exp(5 * A)])
    assert narrow is not None
    assert wide is not None
    assert (narrow.log, wide.log) == (False, True)
    assert narrow.levels == (1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9)
    valley = (0.008, 0.01, 0.012, 0.014, 0.016, 0.018, 0.02)  # denser, up to three times the least value
    assert wide.levels == (*valley, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    below = scale_of([A])
    assert below is not None
    assert not below.log
    flat, huge = scale_of([np.ones((3, 3))]), scale_of([np.array([1e-3, 1.0, 1e30])])
    assert flat is not None
    assert huge is not None
    assert flat.levels == ()
    assert (huge.high, huge.clipped) == (1e5, True)
    assert scale_of([np.full((3, 3), np.inf)]) is None


def test_pixels_are_the_values_with_b_upward_and_holes_where_nothing_is_finite() -> None:
    values = 3.0 ** (A + 2 * B)
    values[0, 3], values[5, 0] = np.inf, np.nan
    scale = scale_of([values])
    assert scale is not None
    found = pixels(picture(values, scale))
    assert found.shape == (21, 21, 4)
    whole = np.isfinite(values)
    assert ((found[..., 3] == 255) == whole).all()
    wanted = scale.colors(values)
    assert np.abs(found[whole][:, :3].astype(int) - wanted[whole]).max() <= 3  # one shade of 240
    light = found[..., :3].sum(-1)
    assert light[-1, -1] > light[-1, 0] > light[1, 0]  # a goes to the right, b upward
    strip = pixels(bar(scale))[0]
    assert tuple(strip[0, :3]) == (0x15, 0x20, 0x4A)
    assert tuple(strip[-1, :3]) == (0xF6, 0xF0, 0xCF)


def test_isolines_lie_where_the_value_is_the_level() -> None:
    plane = A + 0.5 * B
    scale = Scale(low=-1.5, high=1.5, log=False, levels=(-0.55, 0.25))
    lines, _ = isolines(GRID.coordinates, plane, scale)
    assert {line.level for line in lines} == {-0.55, 0.25}
    for line in lines:
        assert all(a + 0.5 * b == pytest.approx(line.level, abs=2e-3) for a, b in line.points)
    # On a logarithmic scale values between points go by the logarithm: exp(2 a) is exact.
    steep = Scale(low=math.exp(-2), high=math.exp(2), log=True, levels=(0.5, 3.0))
    lines, _ = isolines(GRID.coordinates, np.exp(2 * A), steep)
    for line in lines:
        assert all(a == pytest.approx(math.log(line.level) / 2, abs=2e-3) for a, _ in line.points)


def test_isolines_have_numbers_in_their_gaps_and_end_where_nothing_is_finite() -> None:
    bowl = np.hypot(A, B)
    scale = scale_of([bowl])
    assert scale is not None
    lines, numbers = isolines(GRID.coordinates, bowl, scale)
    assert 2 <= len(numbers) <= len(scale.levels)
    for number in numbers:
        own = [point for line in lines if line.level == number.level for point in line.points]
        assert math.hypot(number.a, number.b) == pytest.approx(number.level, abs=0.01)
        assert min(math.hypot(a - number.a, b - number.b) for a, b in own) > 0.04
    half = np.where(A < 0, bowl, np.inf)
    lines, _ = isolines(GRID.coordinates, half, scale)
    assert lines
    assert all(a < 0 for line in lines for a, _ in line.points)


def test_maps_that_are_read_together_share_colours_and_isolines() -> None:
    made = block(maps.made(), maps.made(rough=1.0, scale=5.0))
    figures = [panel.draw(width=400) for panel in made.panels]
    both = {line["line"]: line for figure in figures for line in rows(figure, "line")}
    assert both
    own = scale_of([maps.made().loss])
    shared = loss_scale([Shown(key="", title="", record=each) for each in (maps.made(), maps.made(rough=1, scale=5))])
    assert own is not None
    assert shared is not None
    assert shared.high > own.high
    bare = next(table[0]["url"] for table in figures[0].datasets.values() if "url" in table[0])
    assert bare == picture(maps.made().loss, shared) != picture(maps.made().loss, own)
    ticks = {row["x"] for row in rows(made.scale.draw(width=400), "pale")}
    assert ticks == set(shared.levels)


def test_a_map_tells_each_point_on_hover_and_none_where_it_stands_still() -> None:
    record = maps.made(points=11, rough=0.5, infinite=True, missing=3)
    panel = block(record).panels[0]
    told = rows(panel.draw(), "v1")
    assert len(told) == 121
    for row, loss, accuracy in zip(told, record.loss.ravel(), record.accuracy.ravel(), strict=True):  # type: ignore[union-attr]
        if math.isfinite(loss):
            assert row["v0"] == pytest.approx(loss, rel=5e-4)
            assert row["v1"] == pytest.approx(accuracy, rel=5e-4)
            assert "what" not in row
        else:
            assert row["what"] in ("∞ (too large for the number format)", "still missing")
    assert [row["what"] for row in told[-3:]] == ["still missing"] * 3
    assert not any("v1" in table[0] for table in panel.draw(width=400).datasets.values() if table)


def test_what_is_not_finite_or_missing_is_said_and_drawn() -> None:
    record = maps.made(points=21, infinite=True, missing=2)
    made = block(record)
    infinite = int(np.isinf(record.loss).sum())
    assert infinite > 1
    assert f"{infinite} points are not finite and left hatched." in made.notes
    assert "2 of 441 points are still missing." in made.notes
    assert "not finite" in [each.label for each in made.legend]
    assert len(rows(made.panels[0].draw(width=300), "a2")) == infinite
    assert "not finite" not in [each.label for each in block(maps.made(points=11, missing=5)).legend]


def test_a_path_is_drawn_in_order_with_its_variance_and_what_lies_outside() -> None:
    record = maps.made(points=11, path=True, extent=0.5)
    made = block(record)
    chart = made.panels[0].draw(width=300)
    path = record.head.trajectory
    assert path is not None
    drawn = rows(chart, "at")
    assert [(row["a"], row["b"]) for row in drawn] == [tuple(place) for place in path.path]
    assert drawn[0]["name"] == "0 updates"
    titles = [layer["encoding"]["x"]["axis"]["title"] for layer in chart.to_dict()["layer"]]
    assert titles[0] == "principal direction 1 (a), 87.2% of the path's variance"
    outside = sum(max(abs(a), abs(b)) > 0.5 for a, b in path.path)
    assert f"The path leaves the square: {outside} of its {len(path.path)} places lie outside." in made.notes


def test_the_conditions_name_batch_norm_examples_and_directions() -> None:
    several = [maps.made(points=3, seed=seed) for seed in (0, 1)]
    assert conditions(several, EN) == (
        "512 examples, batch norm by its running statistics, filter-normalised directions of seeds 0, 1, float32."
    )
    other = maps.made(points=3, norm="batch", normalise="none", examples=1, precision="bfloat16", seed=4)
    assert conditions([other], EN) == (
        "1 example, batch norm re-estimated at every point, directions of seed 4, not normalised, bfloat16."
    )
    without = maps.made(points=3)
    without.head.facts["batch_norms"] = 0
    assert "no batch norm" in conditions([without], EN)


def test_ratios_are_of_the_most_negative_eigenvalue_over_the_largest() -> None:
    largest = np.array([4.0, 4.0, -1.0, np.nan, 4.0, 0.0, 4.0, 4.0, 4.0]).reshape(3, 3)
    smallest = np.array([-1.0, 2.0, -2.0, np.nan, 0.0, 0.0, -4.0, -8.0, -np.inf]).reshape(3, 3)
    grid = Grid(axes=2, num=3, extent=1.0)
    hessian = HessianMap(
        grid=grid, lambda_max=largest, lambda_min=smallest, residual_max=largest, residual_min=largest, missing=(3,)
    )
    wanted = np.array([0.25, 0, np.inf, np.nan, 0, 0, 1, 2, np.inf]).reshape(3, 3)
    assert np.array_equal(curvature_ratios(hessian), wanted, equal_nan=True)


def test_curvature_has_the_same_scale_whatever_is_shown() -> None:
    calm = convexity_block(
        [Shown(key="a", title="", record=maps.made(points=5, hessian_points=5))], EN, key="c", heading=""
    )
    assert calm is not None
    assert calm.scale is not None
    assert {row["x"] for row in rows(calm.scale.draw(width=300), "pale")} == {0.1, 0.2, 0.5}
    assert convexity_block([Shown(key="a", title="", record=maps.made(points=5))], EN, key="c", heading="") is None


def test_the_sentences_depend_on_what_was_found() -> None:
    assert told(maps.made(points=11), EN)[0].startswith("The loss is 0.08 at the network and nowhere lower among 121")
    rough = maps.made(points=51, rough=1.0, infinite=True)
    lowest = float(np.nanmin(rough.loss))
    assert lowest < rough.centre_loss
    assert f"The lowest of {int(np.isfinite(rough.loss).sum()):,} points is {lowest:.4g}" in told(rough, EN)[0]
    assert told(rough, EN)[1].endswith("are not finite and left hatched.")
    empty = maps.made(points=3, missing=9)
    assert told(empty, EN) == ["No point has a finite loss."]
    curved = told(maps.made(points=11, rough=1.0, hessian_points=5), EN)
    assert "largest eigenvalue is 20.000" in curved[-2]
    assert re.fullmatch(r"In \d+ of 25 points a direction curves downward .*", curved[-1])


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "given",
    [
        {"points": 11, "hessian_points": 5},
        {"points": 11, "rough": 1.0, "infinite": True, "missing": 4},
        {"points": 11, "path": True},
        {"points": 11, "axes": 1, "infinite": True, "hessian_points": 5},
        {"points": 3, "missing": 9},
        {"points": 11, "accuracy": False},
    ],
)
def test_a_page_reads_well_whatever_the_map(given: dict[str, Any], lang: Lang) -> None:
    record = maps.made(**given)
    made = page(record, lang)
    assert made == page(record, lang)
    assert re.findall(f".{{0,40}}(?:{TRACES}).{{0,40}}", read(made)) == []
    assert b"li2018landscape" in made
    if lang == "zh":
        assert "the network" not in read(made)
    for figure in landscape_figures(record, title="ResNet-20", lang=lang).values():
        assert svg(figure).startswith(b"<svg")
        assert ("" if lang == "zh" else " ").join(figure["title"]["subtitle"]) == conditions([record], Words(lang))


def test_a_figure_is_exported_small() -> None:
    figures = landscape_figures(maps.made(rough=1.0, infinite=True, hessian_points=11), title="ResNet-20")
    assert list(figures) == ["landscape", "convexity"]
    assert len(svg(figures["landscape"])) < 200_000
    assert png(figures["landscape"], scale=1).startswith(b"\x89PNG")
    assert len(page(maps.made(rough=1.0))) < 1_200_000


def test_a_map_that_is_no_square_is_refused() -> None:
    words = dict.fromkeys(("a", "b", "missing", "step"), "word")
    with pytest.raises(ValueError, match="3 x 3 points needs as many values"):
        loss_map(
            Map(picture="", coordinates=(-1, 0, 1), values=[("loss", [1.0] * 8)]),
            x_title="",
            y_title="",
            describe="",
            words=words,
        )


@pytest.fixture
def opened(browser: Chrome, tmp_path: Path) -> Callable[..., Chrome]:
    def open_page(record: MapRecord, *, width: int = 1200, dark: bool = False, lang: Lang = "en") -> Chrome:
        file = tmp_path / "landscape.html"
        file.write_bytes(page(record, lang))
        browser.resize(width, 900, mobile=width < 500)
        browser.dark(dark)
        browser.open(file)
        return browser

    return open_page


SQUARES = """[...document.querySelectorAll('.square')].map((each) => {
  const view = depthscope.views.get(each.dataset.chart);
  return [view.width(), view.height(), each.querySelectorAll('image').length];
})"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1200, 390])
def test_in_a_browser_maps_are_square_and_tell_their_values(opened: Callable[..., Chrome], width: int) -> None:
    tab = opened(maps.made(points=21, rough=0.5, infinite=True, hessian_points=5), width=width, dark=width < 500)
    assert tab.errors == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    squares = tab.run(SQUARES)
    assert len(squares) == 2
    for wide, high, images in squares:
        assert wide > 240
        assert wide == high
        assert images == 1
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    tab.run(
        """(() => { const map = document.querySelector('.square svg'); map.scrollIntoView({behavior: 'instant'});
        const box = map.querySelector('image').getBoundingClientRect();
        window.at = [box.left + 0.25 * box.width, box.top + 0.5 * box.height]; })()"""
    )
    x, y = tab.run("window.at")
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    tab.wait_for("document.querySelector('#vg-tooltip-element.visible')?.innerText.includes('accuracy')")
