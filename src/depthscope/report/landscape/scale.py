"""Which colour a loss has, and at which losses isolines run: one scale for all maps that are read together."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DECADES = 30.0
"""Greatest over least value from which on colours go by the logarithm."""
MOST_RATIO = 1e8
"""Greatest over least value that colours tell apart; what lies above has the colour of the end."""
VALLEY = 3.0
"""Up to so many times the least value isolines are denser, where colours go by the logarithm."""
FEWEST, MOST = 7, 14
"""Isolines at least (where steps of 1, 2 and 5 allow it) and at most."""

SHADES = 240
"""Colours of a picture; one more is the transparent one."""
LOSS = ("#15204a", "#1c4587", "#1f7196", "#3a9c98", "#7fc29b", "#c9dfae", "#f6f0cf")
"""From the least loss to the greatest: each shade is lighter than the last."""
CURVED = ("#f3f1ea", "#ecc9ac", "#dd8f6c", "#b9503f", "#7d1d2c")
"""From a bowl to a saddle: each shade is darker than the last."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Values to shades.

    Attributes:
        low: value of the first shade.
        high: of the last; greater values have it too.
        log: whether shades go by the logarithm.
        levels: where isolines run.
        shades: as #rrggbb.
        clipped: whether a value lies above `high`.
    """

    low: float
    high: float
    log: bool
    levels: tuple[float, ...]
    shades: tuple[str, ...] = LOSS
    clipped: bool = False

    def share(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where values stand between `low` (0) and `high` (1); NaN stays NaN."""
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.log(values) - math.log(self.low) if self.log else values - self.low
        whole = math.log(self.high / self.low) if self.log else self.high - self.low
        return np.asarray(np.clip(moved / (whole or 1.0), 0.0, 1.0), dtype=np.float64)

    def colors(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """[..., 3] red, green, blue."""
        stops = np.array([[int(shade[at : at + 2], 16) for at in (1, 3, 5)] for shade in self.shades], dtype=np.float64)
        place = self.share(np.nan_to_num(values, nan=self.low)) * (len(stops) - 1)
        return np.stack([np.rint(np.interp(place, range(len(stops)), stops[:, each])) for each in range(3)], -1).astype(
            np.uint8
        )

    def pale(self, value: float) -> bool:
        """Whether the shade of a value is so light that a line on it must be dark."""
        red, green, blue = self.colors(np.array([value]))[0].astype(float) / 255
        return bool(0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > 0.3)


def scale_of(values: Iterable[NDArray[np.float64]], *, shades: tuple[str, ...] = LOSS) -> Scale | None:
    """The scale that these maps share; None where no value is finite.

    Logarithmic where all values are above zero and the greatest is `DECADES` times the least.

    >>> scale_of([np.array([0.01, 3.0])]).levels
    (0.012, 0.014, 0.016, 0.018, 0.02, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    >>> scale_of([np.array([1.0, np.inf]), np.array([2.6])]).levels
    (1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4)
    """
    found = [np.asarray(each).ravel() for each in values]
    finite = np.concatenate([np.empty(0), *(each[np.isfinite(each)] for each in found)])
    if not finite.size:
        return None
    low, high = float(finite.min()), float(finite.max())
    log = low > 0 and high / low > DECADES
    top = min(high, low * MOST_RATIO) if log else high
    levels = _powers(low, top) if log else _steps(low, top)
    return Scale(low=low, high=top, log=log, levels=levels, shades=shades, clipped=top < high)


def _powers(low: float, high: float) -> tuple[float, ...]:
    """Levels of 1, 2 and 5, of 1 and 3, or of 1 times powers of ten: the densest that are few enough.

    Below `VALLEY` times the least value they are denser: a map that stays there while another climbs has a shape too.
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = tuple(float(f"{digit}e{power}") for power in exponents for digit in digits)
        found = tuple(each for each in found if low < each < high)
        if len(found) <= MOST:
            break
    edge = min(VALLEY * low, high)
    fine = (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 8)
    dense = tuple(float(f"{digit}e{power}") for power in exponents for digit in fine)
    return tuple(sorted({each for each in found if each >= edge} | {each for each in dense if low < each < edge}))


def _steps(low: float, high: float) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return ()
    power = math.floor(math.log10((high - low) / FEWEST))
    for digit, at in ((10, power), (5, power), (2, power), (1, power)):
        step = digit * 10.0**at
        first, last = math.floor(low / step) + 1, math.ceil(high / step)
        found = tuple(float(f"{each * step:.12g}") for each in range(first, last))
        if len(found) >= FEWEST:
            break
    return found


def picture(values: NDArray[np.float64], scale: Scale) -> str:
    """A map as a PNG in a data URL, a pixel a point; transparent where a value is not finite.

    Args:
        values: [rows, columns], the first row at the foot.
        scale: of its colours.
    """
    at = np.rint((SHADES - 1) * scale.share(np.nan_to_num(values, nan=scale.low, posinf=scale.high, neginf=scale.low)))
    return _png(np.where(np.isfinite(values), at, SHADES)[::-1], scale)


def bar(scale: Scale) -> str:
    """The scale itself as a PNG in a data URL: from `low` at the left to `high` at the right."""
    return _png(np.arange(SHADES, dtype=np.float64)[None], scale)


def _png(at: NDArray[np.float64], scale: Scale) -> str:
    """Pixels as indices of the shades: a byte a pixel, before it is packed."""
    from PIL import Image

    shares = np.linspace(0, 1, SHADES)
    stops = (
        scale.low * (scale.high / scale.low) ** shares if scale.log else scale.low + (scale.high - scale.low) * shares
    )
    image = Image.fromarray(at.astype(np.uint8), "L")
    image.putpalette([*scale.colors(stops).ravel().tolist(), 0, 0, 0])
    sink = io.BytesIO()
    image.save(sink, "PNG", optimize=True, transparency=SHADES)
    return "data:image/png;base64," + base64.b64encode(sink.getvalue()).decode()


def rounded(values: Sequence[float] | NDArray[Any], digits: int = 4) -> list[float | None]:
    """Values with so many significant digits, which keeps a page small; None where one is not finite."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in map(float, values)]
