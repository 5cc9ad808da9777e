"""Figures: valid Vega-Lite, values exact, and a loud refusal of what cannot be drawn."""

from __future__ import annotations

import copy
import dataclasses
import math
from itertools import pairwise
from typing import Any

import altair as alt
import pytest

from depthscope.analysis.finding import Estimate, Finding
from depthscope.report import charts
from depthscope.report.charts import CheckPoint, Curve, Dot, LayerValue, Mark, Reference, TheoryPoint
from depthscope.report.charts.base import spread
from depthscope.report.charts.claims import wanted_range
from depthscope.report.palette import DARK, Series, assign, mix, ramp

PLAIN = Series(name="plain", label="plain net", color="#d9481c", shape="circle")
RES = Series(name="res", label="residual net", color="#1f63c4", shape="square")
WORDS = dict.fromkeys(
    ("axis", "seed", "estimate", "low", "high", "layer", "position", "median", "lowest", "highest"), "word"
) | dict.fromkeys(("theory", "margin", "each_seed"), "word")
DOTS = [
    Dot(series=name, at=depth, seed=seed, value=0.9 - 0.001 * seed - (0.01 * depth if name == "plain" else 0))
    for name in ("plain", "res")
    for depth in (8, 20, 56)
    for seed in (0, 1, 2)
]
MARKS = [
    Mark(series=name, at=depth, value=0.5, low=0.4, high=0.6, n=3) for name in ("plain", "res") for depth in (8, 20, 56)
]


def tables(chart: Any) -> list[list[dict[str, Any]]]:
    """The rows of a figure, after Altair has checked all of it against the schema of Vega-Lite."""
    return list(chart.to_dict()["datasets"].values())


def against_axis(dots: list[Dot] = DOTS, marks: list[Mark] = MARKS, **more: Any) -> Any:
    return charts.against_axis(
        dots, marks, [PLAIN, RES], x_title="depth", y_title="accuracy", describe="told", words=WORDS, **more
    )


def test_against_axis_keeps_every_value_exact_and_moves_only_along_depth() -> None:
    rows = next(table for table in tables(against_axis(tags=True, percent=True)) if "seed" in table[0])
    assert [(row["at"], row["seed"], row["value"]) for row in rows] == [(dot.at, dot.seed, dot.value) for dot in DOTS]
    places = {(row["series"], row["at"], row["seed"]): row["place"] for row in rows}
    assert len(set(places.values())) == len(DOTS)  # none hides another
    for (_, depth, _), place in places.items():
        assert abs(math.log(place / depth)) < math.log(56 / 20) / 4  # nearer to its own depth than to the next
    assert against_axis().to_dict()["description"] == "told"


def test_a_figure_can_be_copied_and_changed_like_any_of_altairs() -> None:
    """Its layers' parts are shared between copies, so that none may see what becomes of another."""
    figure = against_axis(tags=True)
    told = figure.to_dict()
    assert copy.deepcopy(figure).to_dict() == figure.copy().to_dict() == told
    assert figure.properties(height=77).to_dict() == told | {"height": 77}
    changed = figure.encode(x=alt.X("seed:Q"))
    assert changed.to_dict()["encoding"]["x"]["field"] == "seed"
    assert figure.to_dict() == told
    first = figure.layer[0].encode(y=alt.Y("seed:Q"))
    assert first.to_dict()["encoding"]["y"]["field"] == "seed"
    assert figure.to_dict() == told


def test_against_axis_is_the_same_twice_and_draws_no_whisker_without_an_interval() -> None:
    assert against_axis().to_dict() == against_axis().to_dict()
    bare = [Mark(series=mark.series, at=mark.at, value=1.0, low=None, high=None, n=3) for mark in MARKS]
    kinds = [layer["mark"]["type"] for layer in against_axis(marks=bare).to_dict()["layer"]]
    assert "rule" not in kinds
    assert "rule" in [layer["mark"]["type"] for layer in against_axis().to_dict()["layer"]]


def test_a_level_is_drawn_where_it_is_near_the_values() -> None:
    def drawn(level: float) -> tuple[bool, list[float]]:
        layers = against_axis(reference=Reference(name="chance", levels={20: level, 56: level})).to_dict()["layer"]
        domain = next(each["encoding"]["y"]["scale"]["domain"] for each in layers if "scale" in each["encoding"]["y"])
        return "text" in [each["mark"]["type"] for each in layers], domain

    far, near = drawn(0.001), drawn(0.3)
    assert (far[0], near[0]) == (False, True)
    assert near[1][0] < 0.3 < far[1][0] < 0.4


def test_a_reference_that_differs_by_place_is_a_line() -> None:
    levels = {8.0: 0.5, 20.0: 0.45, 56.0: 0.4}
    chart = against_axis(reference=Reference(name="chance", levels=levels)).to_dict()
    dashed = [each for each in chart["layer"] if each["mark"].get("strokeDash")]
    assert [each["mark"]["type"] for each in dashed] == ["line"]
    rows = chart["datasets"][dashed[0]["data"]["name"]]
    assert {row["place"]: row["value"] for row in rows} == levels


@pytest.mark.parametrize(("level", "drawn"), [(1.5, True), (3.0, False)])
def test_a_level_stands_among_curves_where_their_axis_reaches_it(level: float, drawn: bool) -> None:
    same = Reference(name="chance", levels={20: level, 56: level})
    kinds = [each["mark"]["type"] for each in curves(reference=same).to_dict()["layer"]]
    assert ("rule" in kinds) is drawn
    apart = Reference(name="chance", levels={20: level, 56: level / 2})
    assert "rule" not in [each["mark"]["type"] for each in curves(reference=apart).to_dict()["layer"]]


@pytest.mark.parametrize(
    ("dots", "message"),
    [
        ([], "none at all"),
        ([Dot(series="plain", at=8, seed=0, value=math.nan)], "finite"),
        ([Dot(series="other", at=8, seed=0, value=0.5)], "no series for the arms"),
    ],
)
def test_against_axis_refuses(dots: list[Dot], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        against_axis(dots)


def test_two_arms_under_one_label_are_refused() -> None:
    twin = Series(name="res", label="plain net", color="#1f63c4", shape="square")
    with pytest.raises(ValueError, match="different names and labels"):
        charts.against_axis(DOTS, MARKS, [PLAIN, twin], x_title="", y_title="", describe="", words=WORDS)


def curves(**more: Any) -> Any:
    given = [Curve(at=depth, seed=seed, x=(1, 2), y=(2.0, 1.0)) for depth in (20, 56) for seed in (0, 1, None)]
    options: dict[str, Any] = {
        "domain": (0.5, 2.5),
        "span": (1.0, 2.0),
        "shades": {20: "#aaaaaa", 56: "#000000"},
    } | more
    shades = options.pop("shades")
    return charts.training_curves(
        given, shades, x_title="epoch", y_title="loss", describe="told", words=WORDS, **options
    )


def test_training_curves_tell_seeds_from_their_mean_and_refuse_a_depth_without_a_shade() -> None:
    found = tables(curves(legend=True))
    assert {row["seed"] for row in found[0]} == {0, 1}
    assert {row["seed"] for row in found[1]} == {None}
    tables(curves(log=True))
    with pytest.raises(ValueError, match=r"no shade at \[56\]"):
        curves(shades={20: "#aaaaaa"})


VALUES = [
    LayerValue(series=name, at=at, quantity=quantity, layer=layer, name=f"l{layer}", value=2e-9, low=1e-9, high=3e-9)
    for name in ("plain", "res")
    for at in (0, 1)
    for quantity in ("dh_norm", "h_norm")
    for layer in range(4)
]


def profile(values: list[LayerValue] = VALUES, **more: Any) -> Any:
    options: dict[str, Any] = {
        "quantities": {"dh_norm": "|dL/dh|", "h_norm": "|h|"},
        "steps": ("0", "last"),
        "quantity": "dh_norm",
        "at": 0,
    }
    options |= more
    return charts.layer_profile(values, [PLAIN, RES], x_title="layer", describe="told", words=WORDS, **options)


def test_layer_profile_has_its_two_parameters_and_a_log_axis() -> None:
    theory = [TheoryPoint(series="plain", quantity="dh_norm", layer=layer, value=2e-9) for layer in range(4)]
    spec = profile(theory=theory, legend=True, y_title="gradient").to_dict()
    assert {param["name"]: param["value"] for param in spec["params"]} == {"shown_quantity": "dh_norm", "shown_at": 0}
    scales = [layer["encoding"]["y"]["scale"]["type"] for layer in spec["layer"] if "scale" in layer["encoding"]["y"]]
    assert set(scales) == {"log"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": 0.0}, "log axis"),
        ({"value": math.inf}, "finite"),
        ({"series": "x"}, "no series"),
        ({"quantity": "x"}, "quantities are"),
        ({"at": 7}, "steps are numbered 0 to 1"),
    ],
)
def test_layer_profile_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        profile([dataclasses.replace(VALUES[0], **change)])


def finding(expect: Any = "at_least", margin: float = 0.0, **estimate: Any) -> Finding:
    options: dict[str, Any] = {"name": "x", "value": 0.5, "low": 0.3, "high": 0.7, "n": 3, "unit": "nats"} | estimate
    one = Estimate(**options)
    return Finding(
        claim="c",
        text={"en": "claim"},
        kind="difference",
        confirmatory=True,
        verdict="supported",
        margin=margin,
        expect=expect,
        estimates=(one,),
        reason="r",
    )


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (finding("at_least", -0.1), (-0.1, math.inf)),
        (finding("at_most", 0.2), (-math.inf, 0.2)),
        (finding("within", 0.03, unit=""), (0.97, 1.03)),
        (finding("at_least", 0.8, unit="fraction"), (1.0, math.inf)),
    ],
)
def test_claims_shade_the_side_that_the_claim_names(made: Finding, wanted: tuple[float, float]) -> None:
    assert wanted_range(made, made.estimates[0].unit) == wanted
    chart = charts.claim_interval(made, [("x", made.estimates[0])], describe="told", words=WORDS)
    region = tables(chart)[0][0]
    low, high = chart.to_dict()["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert region == {"x": max(wanted[0], low), "x2": min(wanted[1], high)}
    assert low < 0.3
    assert high > 0.7


def test_a_claim_shows_no_impossible_value() -> None:
    made = finding("at_least", 0.2, value=0.98, low=0.9, high=1.0)
    for possible, top in (((0.0, 1.0), 1.0), ((-math.inf, math.inf), 1.096)):
        chart = charts.claim_interval(
            made, [("x", made.estimates[0])], describe="", words=WORDS, possible=possible, percent=True
        )
        low, high = chart.to_dict()["layer"][0]["encoding"]["x"]["scale"]["domain"]
        assert high == pytest.approx(top)
        assert tables(chart)[0][0] == {"x": 0.2, "x2": high}
        assert low > 0


def test_a_claim_without_a_value_is_refused_and_one_without_an_interval_is_not() -> None:
    with pytest.raises(ValueError, match="no estimate to draw"):
        charts.claim_interval(finding(), [("x", Estimate(name="x", value=None, n=0))], describe="", words=WORDS)
    made = finding(values=(0.4, 0.6), low=None, high=None)
    rows = tables(charts.claim_interval(made, [("x", made.estimates[0])], describe="", words=WORDS))
    assert [{"row": "x", "x": 0.4}, {"row": "x", "x": 0.6}] in rows


def checks(points: list[CheckPoint]) -> Any:
    methods = {"central": "central", "five_point": "five", "complex": "complex"}
    kinds = {"median": "median", "worst": "worst"}
    return charts.gradient_check(
        points, methods=methods, kinds=kinds, x_title="h", y_title="error", describe="told", domain=(1e-17, 1.0)
    )


def test_gradient_check_draws_the_complex_step_as_a_level_line() -> None:
    points = [CheckPoint(method="central", h=10.0**-k, kind="median", value=1e-9) for k in range(1, 5)]
    points.append(CheckPoint(method="complex", h=1e-20, kind="median", value=4e-16))
    spec = checks(points).to_dict()
    level = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "rule")
    assert "x" not in level["encoding"]
    assert [row["method"] for row in spec["datasets"][level["data"]["name"]]] == ["complex"]
    with pytest.raises(ValueError, match="log axis"):
        checks([CheckPoint(method="central", h=1e-4, kind="median", value=0.0)])
    with pytest.raises(ValueError, match="unknown methods"):
        checks([CheckPoint(method="magic", h=1e-4, kind="median", value=1.0)])


def test_arms_keep_their_colours_and_plain_is_warm() -> None:
    looks = assign([("plain", False), ("A", True), ("plain", False), ("orthogonal", False), ("B", True)])
    assert len(set(looks.values())) == 4
    assert looks["plain"] == ("#d9481c", "circle")
    assert looks["A"] == ("#1f63c4", "square")
    assert all(color in DARK for color, _ in looks.values())


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_stand_out_from_their_paper() -> None:
    paper = "#ffffff"
    for light, dark in DARK.items():
        if light in (paper, "#e3e6ea", "#eef1f4"):
            continue  # paper, hairlines and washes
        floor = 4.5 if light in ("#1f2328", "#646b74", "#0b7a62", "#b4361c", "#7a6a1f") else 2.2
        assert contrast(light, paper) >= floor, light
        assert contrast(dark, DARK[paper]) >= floor, dark


def test_ramps_end_in_the_full_colour() -> None:
    light, dark = ramp("#d9481c", 3)
    assert light[-1] == "#d9481c"
    assert dark[light[-1]] == DARK["#d9481c"]
    assert ramp("#d9481c", 1)[0] == ["#d9481c"]
    assert mix("#000000", "#ffffff", 0.5) == "#808080"


def test_spread_keeps_order_and_gap() -> None:
    places = [5.0, 5.0, 5.0, 40.0, 41.0]
    found = spread(places, 10)
    ordered = sorted(found)
    assert all(b - a >= 10 - 1e-9 for a, b in pairwise(ordered))
    assert sum(found[:3]) == pytest.approx(15)
    assert spread([1.0, 100.0], 10) == [1.0, 100.0]
