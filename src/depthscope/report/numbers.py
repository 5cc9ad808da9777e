"""Numbers as the page writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from depthscope.report.words import Words


def number(value: float | None, unit: str = "") -> str:
    """A value with as many digits as it is worth: percent for shares, three figures for the rest.

    >>> number(0.4213, "accuracy"), number(1.60312, "nats"), number(3.2e-16), number(None)
    ('42.1%', '1.603', '3.2e−16', '–')
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    if unit in ("accuracy", "fraction"):
        text = f"{100 * value:.1f}%"
    elif value == 0 or 1e-3 <= abs(value) < 1e5:
        text = f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
    else:
        text = f"{value:.1e}"
    return text.replace("-", "−")


def interval(low: float | None, high: float | None, unit: str = "") -> str:
    """Both ends, or nothing where there is no interval."""
    return f"{number(low, unit)} – {number(high, unit)}" if low is not None and high is not None else ""


def places(values: Iterable[float | None], unit: str = "") -> int:
    """Decimals that all numbers of a column have: three, and more where even the largest is small.

    >>> places([1.1, 4.4e-4]), places([2e-5, None]), places([0.42], "accuracy")
    (3, 7, 1)
    """
    if unit in ("accuracy", "fraction"):
        return 1
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    return min(3 + max(0, -math.floor(math.log10(largest)) - 1), 12) if largest else 3


def fixed(value: float | None, decimals: int, unit: str = "", *, signed: bool = False) -> str:
    """A value with these decimals, which a column shares; what rounds to nothing and is not 0 says so.

    >>> fixed(0.42, 3), fixed(0.00044, 3), fixed(0.0, 3), fixed(-0.04, 3, signed=True)
    ('0.420', '<0.001', '0.000', '−0.040')
    >>> fixed(0.421, 1, "accuracy"), fixed(-1e-6, 3, signed=True)
    ('42.1%', '0.000')
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    share = unit in ("accuracy", "fraction")
    scaled = 100 * value if share else value
    text = f"{scaled:.{decimals}f}" if abs(scaled) < 1e6 else f"{scaled:.1e}"
    if not float(text):
        text = text.lstrip("-")
        text = f"<{10.0**-decimals:.{decimals}f}" if scaled > 0 and not signed else text
    elif signed and scaled > 0:
        text = f"+{text}"
    return (text if signed or not share else f"{text}%").replace("-", "−")


def percent(level: float) -> str:
    """The coverage of an interval, such as 95% or, adjusted for several claims, 98.3%.

    >>> percent(0.95), percent(1 - 0.05 / 3)
    ('95%', '98.3%')
    """
    return f"{100 * level:.3g}%"


def duration(seconds: float, words: Words) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds < 100:
        return words("seconds", value=f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}")
    if seconds < 6000:
        return words("minutes", value=f"{seconds / 60:.1f}")
    return words("hours", value=f"{seconds / 3600:.1f}")
