"""Mean-field calculus: what a chain of operations does to a signal forward and to a gradient backward.

A signal is described per entry by its second moment q over examples and units, by the part c of it that is common
to all examples (the mean over units of the squared mean over examples), and by its mean over units m. Weights are
taken as drawn apart from the signal (at initialisation). With `sw2` = fan_in Var W and `sb2` = E b^2:

- linear: q -> sw2 q + sb2, c -> sw2 c + sb2, m -> 0; the entries become Gaussian. The squared norm of a gradient
  is multiplied by sw2 toward the input, whatever the shape and the stride. A convolution with zero padding loses the
  taps that lie outside: both are multiplied by a fraction f of taps inside, for an odd kernel k on length H
  f = 1 - (k^2 - 1)/(4 k H) along each axis.
- activation on N(0, q): q -> E[phi^2], m -> E[phi], gradient E[phi'^2]. Two examples share z = sqrt(c) u +
  sqrt(q - c) v with a u in common, so that c -> E_u[(E_v phi)^2].
- norm: divides by v = q - c (batch, over examples), q - m^2 (layer, group: over units) or q (RMS); gradient
  gamma^2 / v. Batch norm removes c. Terms of order 1/examples and 1/units are left to the tolerance.
- scale by a: q, c, gradient times a^2. Dropout in train mode: q and gradient divided by 1 - p.

Nothing is said (None) of an operation that is not listed, of an activation whose input is not Gaussian, and of
batch norm in eval mode, whose running statistics are not known here.

Fluctuation. Through n Gaussian units ln of a squared norm scatters with variance 2/n (chi-squared of n degrees),
through n orthogonal ones not at all. An activation picks from the n squared entries of g: Var ln = 3/n (E phi'^4 /
(E phi'^2)^2 - 1), which is 3/n for ReLU (half of them) and is taken for all. Together 5/n a Gaussian ReLU layer. Batch
norm over N entries brings chi above its limit by about 1.4/N (1.467 to 1.486, 1.594, 1.775 at 64, 16, 8).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from depthscope.analysis.averages import ACTIVATIONS, Averages, averages, shared_second
from depthscope.core.structure import Op

ORTHOGONAL = 1e-3
"""`orthogonality` under which a weight counts as orthogonal."""
GAUSSIAN, PICKED = 2.0, 3.0
"""Variance of ln chi times the units: of a Gaussian layer, of a ReLU."""


@dataclass(frozen=True, kw_only=True)
class Signal:
    """Per entry, over examples and units.

    Attributes:
        second: q, mean square.
        common: c, the part of q that all examples share.
        mean: m, mean over units.
        gaussian: whether the entries are near N(0, q).
    """

    second: float
    common: float | None = None
    mean: float = 0.0
    gaussian: bool = True


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A signal on its way, and what became of gradients toward where it started.

    Attributes:
        signal: None where it is not known.
        chi: factor of the squared norm of the gradient, toward the input; None where it is not known.
        spread: variance of ln chi that finite width explains.
        width: units of the last weighted layer; None before the first.
        picked: variance, times the units, of activations that no weighted layer has preceded yet.
        excess: by how much a finite batch may bring chi above the limit, relative.
        border: product of the fractions of taps inside the image: how far zero padding may take chi off.
        zero: an operation multiplied by exactly 0.
    """

    signal: Signal | None
    chi: float | None = 1.0
    spread: float = 0.0
    width: float | None = None
    picked: float = 0.0
    excess: float = 0.0
    border: float = 1.0
    zero: bool = False

    def times(self, factor: float) -> float | None:
        """Chi times a factor."""
        return None if self.chi is None else self.chi * factor


def through(ops: Sequence[Op], start: Flow, *, inside: Mapping[str, float], num_entries: float) -> Flow:
    """The flow after a chain of operations.

    Args:
        ops: in the order of execution, without additions.
        start: before them.
        inside: weight -> fraction of a convolution's taps that lie inside the image; 1 where it is not named.
        num_entries: entries that a batch norm averages over.
    """
    flow = start
    for op in ops:
        flow = _step(op, flow, inside, num_entries)
    return flow


def _step(op: Op, flow: Flow, inside: Mapping[str, float], num_entries: float) -> Flow:
    match op.kind:
        case "linear" | "conv":
            return _linear(op, flow, inside)
        case "activation":
            return _activation(op, flow)
        case "norm":
            return _norm(op, flow, num_entries)
        case "scale":
            if "value" not in op.facts:
                return _unknown(flow)
            return _scaled(flow, op.facts["value"])
        case "dropout":
            kept = 1.0 - op.facts.get("p", 0.0)
            if kept <= 0.0:
                return _unknown(flow)
            signal = flow.signal
            if signal is not None:  # the mask belongs to one example: nothing of what it adds is common
                signal = replace(signal, second=signal.second / kept, gaussian=signal.gaussian and kept == 1.0)
            return replace(flow, signal=signal, chi=flow.times(1.0 / kept))
    return _unknown(flow)


def _unknown(flow: Flow) -> Flow:
    return replace(flow, signal=None, chi=None)


def _scaled(flow: Flow, factor: float) -> Flow:
    square, signal = factor**2, flow.signal
    if signal is not None:
        common = None if signal.common is None else signal.common * square
        signal = replace(signal, second=signal.second * square, common=common, mean=signal.mean * factor)
    return replace(flow, signal=signal, chi=flow.times(square), zero=flow.zero or factor == 0.0)


def _linear(op: Op, flow: Flow, inside: Mapping[str, float]) -> Flow:
    if "sw2" not in op.facts or "fan_in" not in op.facts:
        return _unknown(flow)
    sw2, sb2 = op.facts["sw2"], op.facts.get("sb2", 0.0)
    orthogonal = op.facts.get("orthogonality", 1.0) < ORTHOGONAL
    taps = 1.0 if orthogonal else next((inside[name] for name in op.weights if name in inside), 1.0)
    sw2 *= taps
    signal = flow.signal
    if signal is not None:
        common = None if signal.common is None else sw2 * signal.common + sb2
        signal = Signal(second=sw2 * signal.second + sb2, common=common)
    width = min(op.facts["fan_in"], op.facts.get("fan_out", math.inf))
    return replace(
        flow,
        signal=signal,
        chi=flow.times(sw2),
        spread=flow.spread + (flow.picked + (0.0 if orthogonal else GAUSSIAN)) / width,
        width=width,
        picked=0.0,
        border=flow.border * taps,
        zero=flow.zero or (sw2 == 0.0 and sb2 == 0.0),
    )


def _activation(op: Op, flow: Flow) -> Flow:
    signal = flow.signal
    if signal is None or not signal.gaussian or not known(op):
        return _unknown(flow)
    found = moments(op, signal.second)
    shared = None if signal.common is None else common(op, signal.second, min(signal.common, signal.second))
    after = Signal(second=found.second, common=shared, mean=found.mean, gaussian=op.name == "linear")
    flow = replace(flow, signal=after, chi=flow.times(found.slope))
    if op.name == "linear":
        return flow
    if flow.width is None:
        return replace(flow, picked=flow.picked + PICKED)
    return replace(flow, spread=flow.spread + PICKED / flow.width)


def _norm(op: Op, flow: Flow, num_entries: float) -> Flow:
    if op.name not in ("batch", "layer", "group", "rms") or op.facts.get("training", 1.0) == 0.0:
        return _unknown(flow)
    gamma, signal = op.facts.get("value", 1.0), flow.signal
    after = Signal(second=gamma**2, common=0.0 if op.name == "batch" else None)
    divisor, excess = None, flow.excess
    if signal is not None:
        if op.name == "batch":
            divisor = None if signal.common is None else signal.second - signal.common
            excess += 1.4 / max(num_entries, 1.0)
        else:
            divisor = signal.second - (0.0 if op.name == "rms" else signal.mean**2)
            if signal.common is not None and divisor > 0:
                after = replace(after, common=gamma**2 * min(1.0, signal.common / divisor))
        after = replace(after, gaussian=signal.gaussian)
    chi = flow.times(gamma**2 / divisor) if divisor is not None and divisor > 0 else None
    return replace(flow, signal=after, chi=chi, excess=excess, zero=flow.zero or gamma == 0.0)


def known(op: Op) -> bool:
    """Whether the averages of an activation are known."""
    return op.name in ACTIVATIONS and (op.name != "leaky_relu" or "slope" in op.facts)


def moments(op: Op, q: float) -> Averages:
    """Averages of an activation over N(0, q); of a leaky ReLU at its own slope a, where E phi^2 = (1 + a^2) q / 2."""
    if op.name != "leaky_relu":
        return averages(op.name, q)
    slope = op.facts["slope"]
    half = (1.0 + slope**2) / 2.0
    return Averages(mean=(1.0 - slope) * math.sqrt(q / (2.0 * math.pi)), second=half * q, slope=half)


def common(op: Op, q: float, c: float) -> float:
    """E_u[(E_v phi(sqrt(c) u + sqrt(q - c) v))^2]: what examples share after an activation.

    >>> relu = Op(kind="activation", name="relu")
    >>> round(common(relu, 1.0, 0.0) * math.pi, 6), round(common(relu, 1.0, 1.0), 6)
    (0.5, 0.5)
    """
    if op.name == "leaky_relu":  # phi = a x + (1 - a) relu(x), and E x relu(y) = c / 2
        slope = op.facts["slope"]
        return slope**2 * c + slope * (1 - slope) * c + (1 - slope) ** 2 * _relu_common(q, c)
    if op.name == "relu":
        return _relu_common(q, c)
    return shared_second(op.name, q, c)


def _relu_common(q: float, c: float) -> float:
    """E relu(x) relu(y) at variance q and covariance c (Cho and Saul 2009)."""
    if q <= 0.0:
        return 0.0
    rho = min(1.0, c / q)
    return q / (2 * math.pi) * (math.sqrt(1 - rho**2) + rho * (math.pi - math.acos(rho)))
