"""Isolines of a map, with a few numbers written in their gaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from contourpy import contour_generator
from numpy.typing import NDArray

from depthscope.report.landscape.scale import Scale

Points = NDArray[np.float64]
"""[points, 2]: a and b."""

APART, EDGE = 0.3, 0.92
"""Of half the square: how far two numbers stand apart at least, and how far from the centre one may stand."""
GAP_WIDE, GAP_HIGH = (0.035, 0.017), 0.045
"""Half the gap that a number needs, of half the square: along a, of itself and for each sign; and along b."""
STRAIGHT = 0.0004
"""Of half the square: a point nearer than this to the line between its neighbours is left out."""
SHORTEST = 0.5
"""A line shorter than this, of half the square, has no number."""


@dataclass(frozen=True, kw_only=True)
class Isoline:
    """One piece of a line of equal value."""

    level: float
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True)
class Number:
    """The value of an isoline, written where the line has a gap."""

    level: float
    a: float
    b: float


def isolines(
    coordinates: Sequence[float], values: NDArray[np.float64], scale: Scale
) -> tuple[list[Isoline], list[Number]]:
    """Lines at the levels of a scale. They end where a value is not finite.

    Args:
        coordinates: of both axes.
        values: [rows b, columns a].
        scale: whose levels are drawn; on a logarithmic scale, values between points go by the logarithm too.
    """
    finite = np.isfinite(values)
    safe = np.where(finite, values, scale.high)
    with np.errstate(divide="ignore"):
        shown = np.log(safe) if scale.log else safe
    masked = np.ma.masked_array(shown, mask=~finite)
    maker = contour_generator(coordinates, coordinates, masked, name="serial", corner_mask=True)
    bound = max(abs(each) for each in coordinates)
    lines: list[Isoline] = []
    numbers: list[Number] = []
    for level in scale.levels:
        found = [np.asarray(each) for each in maker.lines(math.log(level) if scale.log else level)]
        found = [each for each in found if len(each) > 1]
        longest = max(found, key=_length, default=None)
        number = None
        if longest is not None and _length(longest) > SHORTEST * bound:
            number = _number(level, longest, numbers, bound)
        for each in found:
            pieces = _cut(each, number, bound) if number is not None and each is longest else [each]
            lines += [Isoline(level=level, points=_plain(piece, bound)) for piece in pieces]
        numbers += [number] if number is not None else []
    return lines, numbers


def _length(points: Points) -> float:
    return float(np.hypot(*np.diff(points, axis=0).T).sum())


def _number(level: float, points: Points, taken: Sequence[Number], bound: float) -> Number | None:
    """Where a number stands well: far from the others, on a level piece of the line."""
    ahead, behind = np.roll(points, -1, axis=0), np.roll(points, 1, axis=0)
    run = (ahead - behind)[1:-1]
    inner = points[1:-1]
    if not len(inner):
        return None
    flat = np.abs(run[:, 0]) / np.maximum(np.hypot(*run.T), 1e-12)
    others = np.array([(each.a, each.b) for each in taken]).reshape(-1, 2)
    apart = np.full(len(inner), 2.0)
    if len(others):
        apart = np.hypot(*(inner[:, None] - others[None]).transpose(2, 0, 1)).min(1) / bound
    good = (np.abs(inner) < EDGE * bound).all(1) & (apart > APART)
    if not good.any():
        return None
    best = int(np.argmax(np.where(good, np.minimum(apart, 0.6) + flat, -1.0)))
    return Number(level=level, a=float(inner[best, 0]), b=float(inner[best, 1]))


def _cut(points: Points, number: Number, bound: float) -> list[Points]:
    """The line without what lies under the number."""
    dense = _dense(points, 0.02 * bound)
    wide = GAP_WIDE[0] + GAP_WIDE[1] * len(f"{number.level:g}")
    off = (dense - (number.a, number.b)) / (wide * bound, GAP_HIGH * bound)
    free = np.hypot(*off.T) > 1
    edges = np.flatnonzero(np.diff(free.astype(int))) + 1
    pieces = [piece for piece, keep in zip(np.split(dense, edges), np.split(free, edges), strict=True) if keep[0]]
    return [piece for piece in pieces if len(piece) > 1]


def _dense(points: Points, step: float) -> Points:
    """The line with points at most about a step apart."""
    parts = []
    for start, end in pairwise(points):
        count = max(1, math.ceil(float(np.hypot(*(end - start))) / step))
        parts.append(start + (end - start) * np.arange(count)[:, None] / count)
    return np.concatenate([*parts, points[-1:]])


def _plain(points: Points, bound: float) -> tuple[tuple[float, float], ...]:
    """With no more points and digits than eyes can tell: what hardly bends is left out."""
    kept = [points[0]]
    for before, at, after in zip(points[:-2], points[1:-1], points[2:], strict=True):
        chord = after - kept[-1]
        off = abs(float(chord[0] * (at - kept[-1])[1] - chord[1] * (at - kept[-1])[0])) / max(
            float(np.hypot(*chord)), 1e-12
        )
        if off > STRAIGHT * bound or float(np.hypot(*(at - kept[-1]))) > 0.15 * bound or (before == after).all():
            kept.append(at)
    kept.append(points[-1])
    digits = 3 - math.floor(math.log10(bound))
    return tuple((round(float(a), digits), round(float(b), digits)) for a, b in kept)
