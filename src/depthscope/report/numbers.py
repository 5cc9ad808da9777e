"""Numbers as the page writes them."""

from __future__ import annotations

import math

from depthscope.report.words import Words


def number(value: float | None, unit: str = "") -> str:
    """A value with as many digits as it is worth: percent for shares, three figures for the rest.

    >>> number(0.4213, "accuracy"), number(1.60312, "nats"), number(3.2e-16), number(None)
    ('42.1%', '1.603', '3.2e-16', '–')
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
    return text.replace("-", "−") if "e-" not in text else text


def interval(low: float | None, high: float | None, unit: str = "") -> str:
    """Both ends, or nothing where there is no interval."""
    return f"{number(low, unit)} – {number(high, unit)}" if low is not None and high is not None else ""


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
