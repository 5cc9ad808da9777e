"""Figures of a run's maps: what a picture of the loss shows, in numbers.

Two look at what convexity would forbid, since that is what the pictures of Li et al. 2018 (arXiv 1712.09913) are read
for: along a line a convex loss goes down once and up once, and its Hessian has no negative eigenvalue. The third says
how steep the walls are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from depthscope.record.landscape import HessianMap, MapRecord
from depthscope.study.maps import OF_EIGENVALUES

Array = NDArray[np.float64]

METRICS = ("landscape_roughness", "landscape_rise", "landscape_curvature_ratio", "landscape_nonconvex_share")
"""Of a run, from its maps; see `study.metrics`."""

LARGE = 0.1
"""A negative eigenvalue is large from this share of the largest eigenvalue on."""


def map_figures(record: MapRecord) -> dict[str, float]:
    """The metrics of one map. A figure that it cannot have is left out."""
    found = {"landscape_roughness": roughness(record.loss), "landscape_rise": rise(record.loss, record.centre_loss)}
    if record.hessian is not None:
        ratios = curvature_ratios(record.hessian)
        whole = not np.isnan(ratios).any()
        found["landscape_curvature_ratio"] = float(np.median(ratios)) if whole else None
        found["landscape_nonconvex_share"] = float(np.mean(ratios > LARGE)) if whole else None
    return {name: value for name, value in found.items() if value is not None}


def run_figures(maps: Sequence[MapRecord], planes: int) -> dict[str, float]:
    """The metrics of a run: means over the planes that were asked for one; not there where one of these lacks it."""
    if len(maps) != planes:
        return {}
    with_hessian = [each for each in maps if each.spec.hessian_points]
    found = {}
    for name in METRICS:
        asked = with_hessian if name in OF_EIGENVALUES else maps
        values = [figures[name] for each in asked if name in (figures := map_figures(each))]
        if values and len(values) == len(asked):
            found[name] = float(np.mean(values))
    return found


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How far a figure of maps depends on the directions, and how far on the run.

    Attributes:
        metric: its name.
        planes: mean difference between two planes of one run.
        seeds: mean difference between two runs of one cell, on planes of the same directions.
    """

    metric: str
    planes: float
    seeds: float


def spreads(cells: Sequence[Sequence[Sequence[MapRecord]]]) -> tuple[Spread, ...]:
    """Of each figure that every plane has: what a choice of directions changes, beside what a seed changes.

    Args:
        cells: the maps of each run of each cell.

    Returns:
        None of them where no run has two planes, or no cell two runs.
    """
    found = []
    for metric in METRICS:
        if metric in OF_EIGENVALUES:
            continue
        tables = [
            [
                {each.spec.seed: each_of[metric] for each in run if metric in (each_of := map_figures(each))}
                for run in cell
            ]
            for cell in cells
        ]
        planes = [abs(a - b) for cell in tables for run in cell for a, b in combinations(run.values(), 2)]
        seeds = [
            abs(one[plane] - other[plane])
            for cell in tables
            for one, other in combinations(cell, 2)
            for plane in one.keys() & other.keys()
        ]
        if planes and seeds:
            found.append(Spread(metric=metric, planes=float(np.mean(planes)), seeds=float(np.mean(seeds))))
    return tuple(found)


def roughness(loss: Array) -> float | None:
    """The share of a loss's ups and downs that a valley would not have: 0 where each line of the map is one valley.

    Along a line of points f_0 ... f_n the loss moves by sum |f_i+1 - f_i| in all. One descent and one ascent between
    the same ends and the same lowest value m would move by (f_0 - m) + (f_n - m): what is above that is bumps. The
    share is that of a line, and the mean of it is taken over the lines along both axes; so it is the same in any unit
    of the loss, and a cliff at the border does not drown the other lines. It grows with the fineness of the grid where
    bumps are narrower than its cells: compare maps of one grid.

    Args:
        loss: [b, a], or [a] of one axis.

    Returns:
        None where a point is not finite.

    >>> round(roughness(np.array([0.0, 1.0, 0.0, 1.0])), 3), roughness(np.array([4.0, 1.0, 0.0, 1.0, 9.0]))
    (0.667, 0.0)
    """
    if not np.all(np.isfinite(loss)):
        return None
    shares = []
    for axis in range(loss.ndim):
        lines = np.moveaxis(loss, axis, -1).reshape(-1, loss.shape[axis])
        lines = lines / max(float(np.max(np.abs(lines))), np.finfo(float).tiny)  # sums of large losses overflow
        moved = np.abs(np.diff(lines, axis=-1)).sum(axis=-1)
        valley = lines[:, 0] + lines[:, -1] - 2 * lines.min(axis=-1)
        flat = moved <= 1e-12  # of the rounding alone
        shares.append(np.where(flat, 0.0, 1 - valley / np.where(flat, 1.0, moved)))
    return max(float(np.mean(np.concatenate(shares))), 0.0)


def rise(loss: Array, centre: float) -> float | None:
    """By how many orders of magnitude the loss lies above that of the centre: mean of log10(loss / centre) over a map.

    The same in any unit of the loss. It depends on how far the map reaches: compare maps of one extent.

    Returns:
        None where a point is not finite, or a loss is 0 or below.

    >>> rise(np.array([200.0, 2.0, 20.0]), 2.0)
    1.0
    """
    if not np.all(np.isfinite(loss)) or np.min(loss) <= 0:
        return None
    return float(np.mean(np.log10(loss) - np.log10(centre)))


def curvature_ratios(hessian: HessianMap) -> Array:
    """How much the loss curves down against up at each point of a Hessian's grid: -lambda_min / lambda_max.

    0 where no eigenvalue is negative, inf where one is and none is positive; NaN where a point is missing or its loss
    is not finite.
    """
    down, up = np.maximum(-hessian.lambda_min, 0.0), np.maximum(hessian.lambda_max, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where((down == 0) & (up >= 0), 0.0, down / up), dtype=np.float64)
