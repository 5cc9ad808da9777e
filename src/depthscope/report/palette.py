"""Colours and shapes: one for each arm, the same in every figure of a study.

Vermillion to blue is the axis that the common kinds of colour blindness keep apart (Okabe and Ito);
a plain arm is warm, a residual arm cold, and each arm also has its own shape. Every colour has a
twin for dark backgrounds. Figures are made with the light ones; `DARK` maps light to dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

INK, MUTED, RULE, PAPER, WASH = "#1f2328", "#646b74", "#e3e6ea", "#ffffff", "#eef1f4"
SUPPORTED, REFUTED, UNDECIDED = "#0b7a62", "#b4361c", "#7a6a1f"

_WARM = ("#d9481c", "#e59a00", "#a03d78", "#6b7280")
_COLD = ("#1f63c4", "#0d917e", "#55aadd", "#6a4fc0")
_SHAPES_WARM = ("circle", "triangle-up", "cross", "triangle-left")
_SHAPES_COLD = ("square", "diamond", "triangle-down", "triangle-right")

DARK: Mapping[str, str] = MappingProxyType(
    {
        INK: "#e6e9ed",
        MUTED: "#9aa3ad",
        RULE: "#2d333b",
        PAPER: "#14171c",
        WASH: "#20252c",
        SUPPORTED: "#3fc8a6",
        REFUTED: "#ff8a66",
        UNDECIDED: "#d8c264",
        "#d9481c": "#ff7a4d",
        "#e59a00": "#f7b733",
        "#a03d78": "#e07ab8",
        "#6b7280": "#b4bcc6",
        "#1f63c4": "#6ea8ff",
        "#0d917e": "#35c9b0",
        "#55aadd": "#8fd0f5",
        "#6a4fc0": "#a996f5",
        "#7b4bb3": "#b793ea",
        "#c2881b": "#e5b454",
    }
)


@dataclass(frozen=True, kw_only=True)
class Series:
    """One arm as it is drawn.

    Attributes:
        name: the arm's name in the study.
        label: its name for readers.
        color: on light paper.
        shape: a Vega symbol.
    """

    name: str
    label: str
    color: str
    shape: str


def assign(arms: Sequence[tuple[str, bool]]) -> dict[str, tuple[str, str]]:
    """(colour, shape) of each arm's name.

    Args:
        arms: (name, whether it has a shortcut), in the study's order; a name may come again in
            another part and keeps its colour.
    """
    given: dict[str, tuple[str, str]] = {}
    count = {True: 0, False: 0}
    for name, residual in arms:
        if name in given:
            continue
        colors, shapes = (_COLD, _SHAPES_COLD) if residual else (_WARM, _SHAPES_WARM)
        index, turn = count[residual] % len(colors), count[residual] // len(colors)
        # A colour that comes again comes with another shape: 16 looks of either kind.
        given[name] = (colors[index], shapes[(index + turn) % len(shapes)])
        count[residual] += 1
    return given


def mix(color: str, other: str, share: float) -> str:
    """`share` of `other` mixed into `color`, both as #rrggbb."""
    pairs = zip(_rgb(color), _rgb(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


FAINTEST = 0.58
"""How far the palest shade of a ramp has gone toward the paper."""


def ramp(color: str, count: int) -> tuple[list[str], dict[str, str]]:
    """`count` shades of one hue, from faint (shallow) to full (deep), and their twins for dark paper."""
    dark = DARK.get(color, color)
    shares = [FAINTEST * (count - 1 - index) / max(count - 1, 1) for index in range(count)]
    light = [mix(color, PAPER, share) for share in shares]
    return light, {shade: mix(dark, DARK[PAPER], share) for shade, share in zip(light, shares, strict=True)}


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
