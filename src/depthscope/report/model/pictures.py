"""The pictures of one model: signal, gradient and multipliers by depth, the expected ones beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from depthscope.analysis.model.expected import Expectation, Expected
from depthscope.core.readings import Course, ModelProfile, Place
from depthscope.report import charts
from depthscope.report.charts.depth import DepthValue, Shape
from depthscope.report.model.course import course_pictures
from depthscope.report.model.places import addition_places, axis_names, contents, ends, fits
from depthscope.report.palette import INK, REFUTED, WASH, Series
from depthscope.report.shapes import Block, Legend, Panel, legend_of
from depthscope.report.words import Words

GRADIENT = Series(name="grad_norm", label="|dL/dh|", color="#d9481c", shape="circle")
SIGNAL = Series(name="norm", label="|h|", color="#1f63c4", shape="square")
RATIO = Series(name="residual_ratio", label="|F|/|x|", color="#0d917e", shape="diamond")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What pictures of a model are drawn from.

    Attributes:
        profile: as measured; its last step is shown.
        expectation: what theory expects of it.
        places: names that the diagnosis points at.
        course: of a watched training: all its steps.
    """

    profile: ModelProfile
    expectation: Expectation = field(default_factory=Expectation)
    places: Collection[str] = ()
    course: Course | None = None


def pictures(shown: Shown, words: Words) -> list[Block]:
    """Every picture that there are readings for: of a training its course, then one step."""
    one = [made for draw in (_signal, _multipliers, _ratios, _ranks, _jacobians) if (made := draw(shown, words))]
    return [*course_pictures(shown.course, words), *one]


def _signal(shown: Shown, words: Words) -> Block | None:
    theory = list(expected_gradient(shown))
    panels, left_out = [], 0
    for series in (GRADIENT, SIGNAL):
        values, omitted = at_boundaries(shown, series)
        left_out += omitted
        if values:
            drawn = theory if series is GRADIENT else []
            panels.append(_panel(shown, words, series.name, values, (series,), y_title=series.label, expected=drawn))
    if not panels:
        return None
    return Block(
        kind="signal",
        key="signal",
        heading=words("model.signal_section"),
        caption=words("model.signal_caption"),
        panels=tuple(panels),
        legend=_legend(shown, words, (GRADIENT, SIGNAL), dashed=bool(theory)),
        notes=(*([words("model.signal_expected")] if theory else []), *left_out_note(left_out, words)),
        stacked=True,
    )


def _multipliers(shown: Shown, words: Words) -> Block | None:
    series = Series(name="grad_multiplier", label=words("reading.grad_multiplier"), color="#d9481c", shape="circle")
    at = {block.name: block.index + 1.0 for block in shown.profile.structure.blocks}
    return _stems(shown, words, "block", series, at, shown.expectation.multipliers, section="multiplier", shape="stems")


def _ratios(shown: Shown, words: Words) -> Block | None:
    at = addition_places(shown.profile.structure)
    return _stems(shown, words, "addition", RATIO, at, shown.expectation.ratios, section="ratio", shape="dots")


def _stems(
    shown: Shown,
    words: Words,
    place: Place,
    series: Series,
    at: Mapping[str, float],
    expected: Mapping[str, Expected],
    *,
    section: str,
    shape: Shape,
) -> Block | None:
    values, left_out = _values(shown, place, series, at)
    if not values:
        return None
    theory = [
        DepthValue(
            series=series.name,
            at=at[name],
            name=name,
            value=each.value,
            band=(each.low, each.high) if fits(each.low) and fits(each.high) else None,
        )
        for name, each in expected.items()
        if name in at and fits(each.value)
    ]
    panel = _panel(
        shown, words, series.name, values, (series,), y_title=series.label, expected=theory, shape=shape, reference=1.0
    )
    return Block(
        kind=section,
        key=section,
        heading=words(f"model.{section}_section"),
        caption=words(f"model.{section}_caption"),
        panels=(panel,),
        legend=_legend(shown, words, (series,), dashed=bool(theory)),
        notes=(*([words("model.ticks")] if theory else []), *left_out_note(left_out, words)),
    )


def _ranks(shown: Shown, words: Words) -> Block | None:
    series = Series(name="rank", label=words("reading.rank"), color="#6a4fc0", shape="circle")
    values, left_out = at_boundaries(shown, series)
    if not values:
        return None
    at = _boundary_places(shown)
    limits = [
        DepthValue(series="rank", at=at[name], name=name, value=value)
        for name, value in shown.profile.values("boundary", "rank_limit").items()
        if fits(value)
    ]
    panel = _panel(shown, words, "rank", values, (series,), y_title=series.label, expected=limits)
    return Block(
        kind="rank",
        key="rank",
        heading=words("model.rank_section"),
        caption=words("model.rank_caption"),
        panels=(panel,),
        legend=_legend(shown, words, (series,), dashed=False),
        notes=left_out_note(left_out, words),
    )


def _jacobians(shown: Shown, words: Words) -> Block | None:
    largest = Series(name="jacobian_max", label=words("reading.jacobian_max"), color="#a03d78", shape="triangle-up")
    rms = Series(name="jacobian_mean_square", label=words("reading.jacobian_rms"), color="#55aadd", shape="circle")
    at = {block.name: block.index + 1.0 for block in shown.profile.structure.blocks}
    high, low = _values(shown, "block", largest, at), _values(shown, "block", rms, at, change=math.sqrt)
    if not high[0] and not low[0]:
        return None
    panel = _panel(
        shown, words, "jacobian", [*high[0], *low[0]], (largest, rms), y_title=words("reading.jacobian"), reference=1.0
    )
    return Block(
        kind="jacobian",
        key="jacobian",
        heading=words("model.jacobian_section"),
        caption=words("model.jacobian_caption"),
        panels=(panel,),
        legend=_legend(shown, words, (largest, rms), dashed=False),
        notes=left_out_note(high[1] + low[1], words),
    )


def expected_gradient(shown: Shown) -> Iterator[DepthValue]:
    """|dL/dh| by the expected multipliers, each unbroken run of blocks started at its measured output end."""
    measured = shown.profile.values("boundary", "grad_norm")
    names = [boundary.name for boundary in shown.profile.structure.boundaries]
    value, piece = math.nan, 0
    for block in reversed(shown.profile.structure.blocks):
        factor = shown.expectation.multipliers.get(block.name)
        if factor is None or not fits(factor.value):
            value = math.nan
            continue
        if not fits(value):
            value, piece = measured.get(names[block.index + 1], math.nan), piece + 1
            if not fits(value):
                continue
            yield _expected(block.index + 1, names, value, piece)
        value *= factor.value
        if fits(value):
            yield _expected(block.index, names, value, piece)


def _expected(at: int, names: Sequence[str], value: float, piece: int) -> DepthValue:
    return DepthValue(series=GRADIENT.name, at=at, name=names[at], value=value, piece=piece)


def _boundary_places(shown: Shown) -> dict[str, float]:
    return {boundary.name: float(boundary.index) for boundary in shown.profile.structure.boundaries}


def at_boundaries(shown: Shown, series: Series) -> tuple[list[DepthValue], int]:
    """The readings of a quantity at boundaries, and how many a log axis cannot show."""
    return _values(shown, "boundary", series, _boundary_places(shown))


def _values(
    shown: Shown,
    place: Place,
    series: Series,
    at: Mapping[str, float],
    *,
    change: Callable[[float], float] = float,
) -> tuple[list[DepthValue], int]:
    told = {block.name: contents(block) for block in shown.profile.structure.blocks}
    found = {name: value for name, value in shown.profile.values(place, series.name).items() if name in at}
    values = [
        DepthValue(
            series=series.name,
            at=at[name],
            name=name,
            value=change(value),
            flagged=name in shown.places,
            told=told.get(name, ""),
        )
        for name, value in found.items()
        if fits(value)
    ]
    return values, len(found) - len(values)


def left_out_note(count: int, words: Words) -> tuple[str, ...]:
    """What to say of values that a log axis cannot show."""
    if not count:
        return ()
    return (words("model.left_out_one") if count == 1 else words("model.left_out", n=count),)


def _legend(shown: Shown, words: Words, series: tuple[Series, ...], *, dashed: bool) -> tuple[Legend, ...]:
    more = [Legend(label=words("model.expected"), color=INK, shape="dashed")] if dashed else []
    if shown.places:
        more.append(Legend(label=words("model.culprit"), color=REFUTED, shape="ring"))
    if ends(shown.profile.structure):
        more.append(Legend(label=words("model.ends"), color=WASH, shape="square"))
    return (*legend_of(series), *more)


def _panel(
    shown: Shown,
    words: Words,
    key: str,
    values: Sequence[DepthValue],
    series: tuple[Series, ...],
    *,
    y_title: str,
    **more: Any,
) -> Panel:
    structure = shown.profile.structure
    names, prefix = axis_names(structure, words("model.input"))
    describe = words("model.describe", what=y_title, n=len(structure.blocks))

    def draw(*, width: int | None = None, height: int = 250) -> Any:
        return charts.by_depth(
            values,
            series,
            names=names,
            x_title=f"{prefix}*" if prefix else "",
            ends=ends(structure),
            y_title=y_title,
            describe=describe,
            words={key: words(f"model.{key}") for key in ("place", "value", "expected", "note")},
            width=width,
            height=height,
            **more,
        )

    return Panel(key=key, title="", describe=describe, draw=draw)
