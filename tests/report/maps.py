"""Made-up loss landscapes: a bowl, a rough one with an edge of infinities, lines, and a training's path."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.report.synthetic import PROVENANCE

from depthscope.record.landscape import HessianMap, MapHead, MapRecord, MapSource, Trajectory
from depthscope.study.landscape import Grid, MapSpec

Values = NDArray[np.float64]


def surface(grid: Grid, *, rough: float, seed: int = 0) -> Values:
    """[b, a] (or [a]): a bowl at `rough` 0, with more and more hills the greater it is."""
    axes = np.meshgrid(*[grid.coordinates] * grid.axes)
    away = np.sqrt(sum(np.square(each) for each in axes))
    rng = np.random.default_rng([seed, 5])
    hills = np.zeros_like(away)
    for _ in range(14):
        waves = rng.normal(0, 5, size=len(axes))
        hills += np.sin(sum(w * each for w, each in zip(waves, axes, strict=True)) + rng.uniform(0, 6))
    bowl = np.log(0.08) + 3.6 * (1 - np.exp(-2.2 * away**2)) + 0.5 * away
    return np.asarray(np.exp(bowl + rough * 0.35 * hills * np.minimum(1, 3 * away)), dtype=np.float64)


def source(**more: Any) -> MapSource:
    given = {"kind": "code", "model": "models:resnet20", "data": "models:loader", "loss": "cross_entropy"}
    return MapSource.model_validate(given | more)


def head(spec: MapSpec, *, batch_norms: int = 19, path: Trajectory | None = None, **more: Any) -> MapHead:
    return MapHead(
        spec=spec,
        source=source(**more),
        weights="a" * 32,
        data="b" * 32,
        facts={"parameters": 269_722, "batch_norms": batch_norms},
        trajectory=path,
        provenance=PROVENANCE,
    )


def made(
    *,
    rough: float = 0.0,
    infinite: bool = False,
    missing: int = 0,
    path: bool = False,
    accuracy: bool = True,
    draw: int = 0,
    scale: float = 1.0,
    **spec: Any,
) -> MapRecord:
    """A map as it is read back.

    Args:
        rough: how rough.
        infinite: whether a corner overflows.
        missing: points, the last ones, that are not there yet.
        path: whether the plane is that of a training.
        accuracy: whether there is one.
        draw: of the hills.
        scale: of the loss.
        spec: of the map.
    """
    asked = MapSpec.model_validate({"directions": "trajectory" if path else "random", **spec})
    grid = asked.grid()
    loss = scale * surface(grid, rough=rough, seed=draw)
    if infinite:
        axes = np.meshgrid(*[grid.coordinates] * grid.axes)
        loss[sum(axes) > 0.87 * asked.extent * grid.axes] = np.inf
    shown = np.clip(np.exp(-loss / scale), 0.1, 1.0)
    absent = tuple(range(grid.size - missing, grid.size))
    for each in (loss, shown):
        each.reshape(-1)[list(absent)] = np.nan
    return MapRecord(
        head=head(asked, path=_path(asked.axes) if path else None),
        loss=loss,
        accuracy=shown if accuracy else None,
        missing=absent,
        hessian=_hessian(asked, rough),
    )


def _path(axes: int) -> Trajectory:
    steps = tuple(range(0, 1001, 50))
    turn = [(1 - step / 1000) for step in steps]
    path = tuple((0.95 * s, 0.5 * math.sin(3 * s) * s)[:axes] for s in turn)
    return Trajectory(steps=steps, path=path, explained=(0.8723, 0.0812)[:axes])


def _hessian(spec: MapSpec, rough: float) -> HessianMap | None:
    grid = spec.hessian_grid()
    if grid is None:
        return None
    axes = np.meshgrid(*[grid.coordinates] * grid.axes)
    away = np.sqrt(sum(np.square(each) for each in axes))
    wave = 1 + 0.5 * np.sin(4 * axes[0] + 2)
    largest = 20 + 200 * away
    smallest = -largest * np.clip((0.02 + 0.3 * rough * away**1.5) * wave, 0, 1.4)
    small = np.full_like(largest, 1e-6)
    return HessianMap(grid=grid, lambda_max=largest, lambda_min=smallest, residual_max=small, residual_min=small)
