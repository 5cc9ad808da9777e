"""The pieces that a page is put together from: blocks of panels, each panel one chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from depthscope.report.palette import Series


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One chart.

    Attributes:
        key: fit for an HTML id; the same chart has the same key wherever it stands.
        title: heading above the chart; empty where the block's says all.
        draw: makes the chart; takes `width`, `height`, and for profiles `at` and `quantity`.
        dark: colours of this chart alone, light -> dark.
        tagged: whether the arms' names stand in the chart.
        square: whether the chart is as high as wide.
    """

    key: str
    title: str
    describe: str
    draw: Callable[..., Any]
    dark: Mapping[str, str] = field(default_factory=dict)
    tagged: bool = False
    square: bool = False


@dataclass(frozen=True, kw_only=True)
class Controls:
    """What a reader can choose in the panels of one block.

    Attributes:
        quantities: (key, name for readers).
        steps: names of the steps, in order.
        at: index of the step shown first.
        depths: (panel key, name) where one depth at a time is shown; empty where all stand side by side.
        axis: what such a choice is of.
    """

    quantities: tuple[tuple[str, str], ...]
    steps: tuple[str, ...]
    at: int
    depths: tuple[tuple[str, str], ...] = ()
    axis: str = ""


@dataclass(frozen=True, kw_only=True)
class Legend:
    """One line of a legend: a symbol and what it stands for; `strength` under 1 pales its colour."""

    label: str
    color: str
    shape: str = "line"
    strength: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Block:
    """Panels that are read together.

    Attributes:
        kind: such as `depth`, `curves`, `profile` or `map`; a class of the figure.
        key: fit for an HTML id and a file name.
        tagged: whether the arms' names stand in the figure itself, where it is wide enough.
        stacked: whether the panels stand one below the other on every screen.
        about: the conditions of what is shown, which belong to the picture wherever it stands.
        columns: panels side by side; None goes by their number.
        scale: a chart above the panels: the colours that they share.
    """

    kind: str
    key: str
    heading: str
    caption: str
    panels: tuple[Panel, ...]
    legend: tuple[Legend, ...] = ()
    controls: Controls | None = None
    notes: tuple[str, ...] = ()
    tagged: bool = False
    stacked: bool = False
    about: str = ""
    columns: int | None = None
    scale: Panel | None = None


def legend_of(series: tuple[Series, ...]) -> tuple[Legend, ...]:
    """The arms as legend lines."""
    return tuple(Legend(label=each.label, color=each.color, shape=each.shape) for each in series)
