"""Figures of a run's maps: what a picture of the loss shows, in numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from depthscope.record.landscape import MapRecord

Array = NDArray[np.float64]


def map_figures(record: MapRecord) -> dict[str, float]:
    """The metrics of one map. A figure that it cannot have is left out."""
    rough = roughness(record.loss, np.array(record.grid.coordinates))
    return {} if rough is None else {"landscape_roughness": rough}


def run_figures(maps: Sequence[MapRecord], planes: int) -> dict[str, float]:
    """The metrics of a run: means over its planes; a figure that is not there of all of them is left out."""
    found = [map_figures(each) for each in maps]
    shared = set.intersection(*map(set, found)) if len(found) == planes and found else set()
    return {name: float(np.mean([each[name] for each in found])) for name in sorted(shared)}


def roughness(loss: Array, coordinates: Array) -> float | None:
    """What no quadratic explains of the loss on a grid: 0 for a perfect bowl, at most 1, and the same in any unit.

    The root mean square of the residual of the least-squares quadratic polynomial in (a, b), over that of the loss's
    deviation from its mean.

    Args:
        loss: [b, a], or [a] of one axis.
        coordinates: of each axis.

    Returns:
        None where a point is not finite; 0 where the loss is the same everywhere.

    >>> along = np.linspace(-1, 1, 5)
    >>> round(roughness(along**2, along), 6), round(roughness(np.abs(along) + 0 * along[:, None], along), 3)
    (0.0, 0.286)
    """
    if not np.all(np.isfinite(loss)):
        return None
    scale = float(np.max(np.abs(loss)))
    if scale == 0.0:
        return 0.0
    values = (loss / scale).ravel()  # squares of large losses overflow
    axes = np.meshgrid(*[coordinates / np.max(coordinates)] * loss.ndim, indexing="xy")
    a = [each.ravel() for each in axes]
    terms = [np.ones_like(values), *a, *(a[i] * a[j] for i in range(len(a)) for j in range(i, len(a)))]
    design = np.stack(terms, axis=1)
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    spread = float(np.sqrt(np.mean((values - values.mean()) ** 2)))
    if spread <= 1e-12:  # of the rounding alone
        return 0.0
    return float(np.sqrt(np.mean((values - fitted) ** 2))) / spread
