"""The figures of a comparison: training curves, and |dL/dh| by depth before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from depthscope.analysis.profiles import median_and_range
from depthscope.core.readings import ModelProfile
from depthscope.record.variants import VariantRun
from depthscope.report import charts
from depthscope.report.charts.lines import Line
from depthscope.report.model.places import fits
from depthscope.report.palette import Series
from depthscope.report.shapes import Block, Panel, legend_of
from depthscope.report.words import Words

POINTS = 120
"""Points of a curve at most: a panel has room for no more, and each is the mean of the updates since the last."""
DECADES = 30.0
"""Greatest over least loss from which on a log axis shows more than a linear one."""


def training_block(runs: Sequence[VariantRun], series: Sequence[Series], words: Words) -> Block | None:
    """The training loss of every variant; None where no run has one."""
    lines: list[Line] = []
    for each in series:
        own = {run.seed: run.losses for run in runs if run.arm == each.name and run.losses}
        finite = {seed: until_infinite(losses) for seed, losses in own.items()}
        finite = {seed: losses for seed, losses in finite.items() if losses}
        lines += [binned(each.name, seed, losses) for seed, losses in finite.items() if len(finite) > 1]
        if finite:
            shortest = min(map(len, finite.values()))
            mean = np.mean([losses[:shortest] for losses in finite.values()], axis=0)
            lines.append(binned(each.name, None, mean.tolist()))
    values = [value for line in lines for value in line.y]
    if not values:
        return None
    low, high = min(values), max(values)
    log = low > 0 and high / low > DECADES
    domain = (low / 1.1, high * 1.1) if log else (min(low, 0.0), high * 1.03 if high > 0 else 1.0)
    last = max(x for line in lines for x in line.x)

    def draw(*, width: int | None = None, height: int = 300) -> Any:
        return charts.lines_by_series(
            lines,
            series,
            x_title=words("compare.x_step"),
            y_title=words("compare.loss"),
            describe=words("compare.curves_caption"),
            domain=domain,
            span=(0.0, last),
            log=log,
            width=width,
            height=height,
        )

    panel = Panel(key="curves", title="", describe=words("compare.curves_caption"), draw=draw)
    return Block(
        kind="curves",
        key="curves",
        heading=words("compare.curves_section"),
        caption=words("compare.curves_caption"),
        panels=(panel,),
        legend=legend_of(tuple(series)),
    )


def profile_block(runs: Sequence[VariantRun], series: Sequence[Series], words: Words) -> Block | None:
    """|dL/dh| by depth at the start and at the end, side by side on shared scales."""
    sides = {when: _profiles(runs, series, when) for when in ("first", "last")}
    values = [value for lines in sides.values() for line in lines for value in line.y]
    if not values:
        return None
    domain = (min(values) / 1.6, max(values) * 1.6)
    panels = tuple(
        _panel(f"gradient-{when}", words(title), lines, series, domain, words)
        for (when, lines), title in zip(sides.items(), ("compare.before", "compare.after"), strict=True)
        if lines
    )
    return Block(
        kind="profile",
        key="gradient",
        heading=words("compare.profile_section"),
        caption=words("compare.profile_caption"),
        panels=panels,
        legend=legend_of(tuple(series)),
    )


def _panel(
    key: str, title: str, lines: Sequence[Line], series: Sequence[Series], domain: tuple[float, float], words: Words
) -> Panel:
    def draw(*, width: int | None = None, height: int = 280) -> Any:
        return charts.lines_by_series(
            lines,
            series,
            x_title=words("compare.depth"),
            y_title="|dL/dh|",
            describe=f"|dL/dh|, {title}",
            domain=domain,
            span=(0.0, 1.0),
            log=True,
            percent_x=True,
            width=width,
            height=height,
        )

    return Panel(key=key, title=title, describe=f"|dL/dh|, {title}", draw=draw)


def _profiles(runs: Sequence[VariantRun], series: Sequence[Series], when: str) -> list[Line]:
    lines: list[Line] = []
    for each in series:
        profiles = {
            run.seed: profile
            for run in runs
            if run.arm == each.name and (profile := run.first if when == "first" else run.last) is not None
        }
        if not profiles:
            continue
        seeds = {seed: _gradient(profile) for seed, profile in profiles.items()}
        ends = [boundary.name for boundary in next(iter(profiles.values())).structure.boundaries]
        if len(seeds) > 1:
            lines += [_line(each.name, seed, found, ends) for seed, found in seeds.items() if found]
        middle = {
            name: median_and_range([found[name] for found in seeds.values() if name in found]).median
            for name in ends
            if any(name in found for found in seeds.values())
        }
        if middle:
            lines.append(_line(each.name, None, middle, ends))
    return lines


def _gradient(profile: ModelProfile) -> dict[str, float]:
    return {name: value for name, value in profile.values("boundary", "grad_norm").items() if fits(value)}


def _line(series: str, seed: int | None, found: dict[str, float], ends: Sequence[str]) -> Line:
    last = max(len(ends) - 1, 1)
    kept = [(at / last, found[name], name) for at, name in enumerate(ends) if name in found]
    xs, ys, names = zip(*kept, strict=True)
    return Line(series=series, seed=seed, x=xs, y=ys, names=names)


def until_infinite(losses: Sequence[float]) -> list[float]:
    """The losses before the first that is not finite."""
    bad = next((at for at, loss in enumerate(losses) if not math.isfinite(loss)), len(losses))
    return list(losses[:bad])


def binned(series: str, seed: int | None, losses: Sequence[float], steps: Sequence[int] | None = None) -> Line:
    """A curve of at most `POINTS` points, each the mean of the updates since the last; `steps`: 0, 1, ... if None."""
    edges = np.unique(np.linspace(0, len(losses), min(POINTS, len(losses)) + 1).round().astype(int)).tolist()
    bins = list(pairwise(edges))
    at = range(len(losses)) if steps is None else steps
    return Line(
        series=series,
        seed=seed,
        x=tuple(float(np.mean(at[low:high])) for low, high in bins),
        y=tuple(float(np.mean(losses[low:high])) for low, high in bins),
    )
