"""What a gradient scaler and clipping did to the gradients of one step.

A scaler multiplies the loss by S, so that every gradient of the backward pass is S times too large; it divides them
before the optimiser gets them (a fused one divides itself). Clipping multiplies them by c <= 1 between the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

TOLERANCE = {"float64": 1e-9, "float32": 1e-6, "bfloat16": 1e-2, "float16": 2e-3}
"""Relative difference of two norms that rounding explains, by the gradients' dtype: two norms of equal gradients are
equal, and those of gradients multiplied by a power of two too; other factors round each entry."""


@dataclass(frozen=True, kw_only=True)
class Unscaled:
    """Norms of one step's gradients, without the scaler's factor.

    Attributes:
        before: by parameter, at the end of the backward pass.
        after: by parameter, as the optimiser got them; only those that clipping changed.
        scale: the factor that was taken out.
    """

    before: Mapping[str, float]
    after: Mapping[str, float]
    scale: float = 1.0


def unscaled(
    before: Mapping[str, float],
    after: Mapping[str, float],
    *,
    scale: float | None,
    after_scale: float | None,
    dtype: str = "float32",
) -> Unscaled:
    """Take the scaler's factor out of the norms.

    Args:
        before: norms at the end of the backward pass, by parameter.
        after: norms at the optimiser, of those parameters where they were taken.
        scale: S where the scaler is known.
        after_scale: S where a fused optimiser was told it: `after` still holds it then, and so does `before`.
        dtype: of the gradients.

    >>> seen = unscaled({"w": 3072.0}, {"w": 1.5}, scale=1024.0, after_scale=None)
    >>> seen.before, seen.after
    ({'w': 3.0}, {'w': 1.5})
    >>> unscaled({"w": 3072.0}, {"w": 3072.0}, scale=None, after_scale=1024.0)
    Unscaled(before={'w': 3.0}, after={}, scale=1024.0)
    """
    factor = scale if scale is not None else after_scale if after_scale is not None else 1.0
    plain = {name: norm / factor for name, norm in before.items()}
    got = {name: norm / (after_scale or 1.0) for name, norm in after.items()}
    near = TOLERANCE.get(dtype, 1e-6)
    changed = {
        name: norm
        for name, norm in got.items()
        if name not in plain or not math.isclose(norm, plain[name], rel_tol=near)
    }
    return Unscaled(before=plain, after=changed, scale=factor)
