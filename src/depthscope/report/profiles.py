"""The layer profiles of a view as a block: a panel a depth, with the choice of quantity and step."""

from __future__ import annotations

from typing import Literal

from depthscope.analysis.expected import gradient_profile
from depthscope.analysis.table import Results
from depthscope.analysis.units import squared
from depthscope.report import charts
from depthscope.report.charts.profile import Level, TheoryPoint, domains_of
from depthscope.report.content import View, significant
from depthscope.report.layers import LAST, DepthProfile, depth_profiles, intact
from depthscope.report.palette import INK, Series
from depthscope.report.shapes import Block, Controls, Legend, Panel, legend_of
from depthscope.report.temporal import key_of
from depthscope.report.words import Words

SIDE_BY_SIDE = 2
"""Depths shown at once; with more, the reader chooses one."""


def profile_blocks(results: Results, view: View, words: Words) -> list[Block]:
    """A block of what was logged layer by layer, and one of the lesions, each with all depths; those that there are."""
    return [*_block(results, view, words, "profile"), *_block(results, view, words, "lesion")]


def _block(results: Results, view: View, words: Words, what: Literal["profile", "lesion"]) -> list[Block]:
    profiles = depth_profiles(results, view, lesions=what == "lesion")
    if not profiles:
        return []
    quantities = {key: _quantity(view, key, words) for profile in profiles for key in profile.quantities}
    steps = step_names(profiles[0], words)
    drawn = {value.series for profile in profiles for value in profile.values}
    series = tuple(each for each in view.series if each.name in drawn)
    theories = [_theory(view, profile) for profile in profiles]
    levels = [intact(results, view, profile) if what == "lesion" else () for profile in profiles]
    expected = [point for points in theories for point in points]
    across = [level for found in levels for level in found]
    domains = domains_of([value for profile in profiles for value in profile.values], [*expected, *across])
    panels = [
        _panel(
            view,
            series,
            profile,
            quantities,
            steps,
            domains,
            theory,
            level,
            words,
            key=f"{what}-{view.key}-{profile.place}",
        )
        for profile, theory, level in zip(profiles, theories, levels, strict=True)
    ]
    notes = [words("profile_theory")] if any(theories) else []
    if "block_lesion_loss" in quantities:
        notes.append(words("lesion_blocks"))
    omitted = sum(profile.left_out for profile in profiles)
    if omitted:
        notes.append(words("profile_left_out", count=omitted))
    total = profiles[0].total_steps
    kept = len(profiles[0].steps)
    if kept < total:
        notes.append(words("profile_thinned", count=kept, total=total))
    line = Legend(label=words("theory_line"), color=INK, shape="dashed")
    theory_line = (line,) if any(theories) else ()
    if any(levels):
        theory_line = (Legend(label=words("intact_line"), color=INK, shape="dashed"),)
    one_at_a_time = len(panels) > SIDE_BY_SIDE
    if one_at_a_time:
        panels.reverse()  # the deepest first: it has the most to show
    axis = words("depth_choice") if view.axis == "depth" else words.axis(view.axis)
    choice = tuple((panel.key, panel.title) for panel in panels) if one_at_a_time else ()
    return [
        Block(
            kind="profile",
            key=f"{what}-{view.key}",
            heading=words(_titled(view, f"{what}_section")),
            caption=words(_titled(view, f"{what}_caption")),
            panels=tuple(panels),
            legend=legend_of(series) + theory_line,
            controls=Controls(quantities=tuple(quantities.items()), steps=steps, at=0, depths=choice, axis=axis),
            notes=tuple(notes),
        )
    ]


def _quantity(view: View, quantity: str, words: Words) -> str:
    """What a quantity is called on this view's pictures."""
    key = f"quantity.{quantity}"
    in_time = key_of(view.rows, key)
    name = words(in_time if in_time in words.table else key)
    return words.nats(name) if quantity.endswith("lesion_loss") and not squared(view.rows) else name


def _titled(view: View, key: str) -> str:
    return key_of(view.rows, key) if key.startswith("profile") else key


def step_names(profile: DepthProfile, words: Words) -> tuple[str, ...]:
    """What the step selector shows: numbers, and `last` with its number where all runs share it."""
    last = words("step_last")
    if profile.last_step is not None:
        last = f"{profile.last_step} ({last})"
    return tuple(last if step == LAST else str(step) for step in profile.steps)


def _panel(
    view: View,
    series: tuple[Series, ...],
    profile: DepthProfile,
    quantities: dict[str, str],
    steps: tuple[str, ...],
    domains: dict[str, tuple[float, float]],
    theory: tuple[TheoryPoint, ...],
    levels: tuple[Level, ...],
    words: Words,
    *,
    key: str,
) -> Panel:
    first = next(iter(quantities))
    named = view.named(profile.place, words)
    describe = words(
        "profile_describe",
        quantity=", ".join(quantities[key] for key in profile.quantities),
        where=named,
        arms=", ".join(each.label for each in series),
    )

    def draw(
        *,
        width: int | None = None,
        height: int = 330,
        at: int = 0,
        quantity: str = first,
        y_title: str | None = None,
    ) -> object:
        return charts.layer_profile(
            profile.values,
            series,
            quantities=quantities,
            steps=steps,
            quantity=quantity,
            at=at,
            x_title=words(key_of(view.rows, "x_layer")),
            describe=describe,
            words={key: words(key) for key in ("layer", "position", "median", "lowest", "highest", "theory", "intact")},
            theory=theory,
            levels=levels,
            domains=domains,
            y_title=y_title,
            width=width,
            height=height,
        )

    return Panel(key=key, title=named, describe=describe, draw=draw)


def _theory(view: View, profile: DepthProfile) -> tuple[TheoryPoint, ...]:
    """The closed form where there is one, anchored at the measured value at the output end."""
    if profile.steps[0] != 0:
        return ()
    points: list[TheoryPoint] = []
    starts = {
        (value.series, value.layer): value.value
        for value in profile.values
        if value.at == 0 and value.quantity == "dh_norm"
    }
    for (arm, place), rows in view.cells().items():
        shape = gradient_profile(rows[0].spec) if place == profile.place else None
        if shape is None:
            continue
        anchor = starts.get((arm, len(shape) - 1))
        if anchor is not None:
            points += [
                TheoryPoint(series=arm, quantity="dh_norm", layer=layer, value=significant(anchor * factor))
                for layer, factor in enumerate(shape)
            ]
    return tuple(points)
