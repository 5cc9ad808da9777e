"""What theory expects of a model's blocks and residual additions, where it is recognised: at initialisation.

Every block starts from what was MEASURED at its entry (mean square, and what examples share of it), and the
calculus of `flow` goes through its operations, with the spread that the weights were found to have. So an expected
value says: this is what random weights of this spread do here. It agrees with a wrong gain as with a right one.
Weights that were trained are no longer independent of the signal, and theory does not speak of them.

**A block without an addition**: multiplier sqrt(chi). **With one**, x + F(x): W is drawn apart from x, so that
squares add: chi = chi_skip + chi_F and |F|/|x| = sqrt(q_F/q_x); what stands before and after the addition
multiplies. A branch that multiplies by exactly 0 gives exactly 1 and 0. After an addition a ReLU sees no
Gaussian, so that He 2015's blocks have an expected ratio (their branch ends in a norm) and no expected multiplier.

**Band.** In the wide limit a measured value would equal the expected one. At finite width ln chi of a chain of
Gaussian layers has its centre at -s/2 and a standard deviation of sqrt(s), s the sum over its layers: 5/n with ReLU
(see `flow`). The band is 3 of those around it; of x + F(x) that of chi_F, plus chi_skip. At least 5% either way is
left for what the calculus leaves out, and with zero padding the fraction of taps inside the image: at the border
signals are smaller, which an average over positions hides from a norm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from depthscope.analysis.model.flow import Flow, Signal, through
from depthscope.core.readings import ModelProfile
from depthscope.core.structure import Block, Op, ResidualAddition, Structure

LEAST_TOLERANCE = 0.05
SIGMAS = 3.0


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A value that theory expects, with the band in which a measured one agrees with it.

    Attributes:
        value: in the wide limit.
        low: lower end of the band.
        high: upper end.
    """

    value: float
    low: float
    high: float

    def agrees(self, measured: float) -> bool:
        """Whether a measured value lies in the band."""
        return self.low <= measured <= self.high


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What is expected of a model; what was not recognised is missing.

    Attributes:
        multipliers: block -> expected multiplier of the gradient's norm toward the input.
        ratios: addition -> expected |F|/|x|.
    """

    multipliers: Mapping[str, Expected] = field(default_factory=dict)
    ratios: Mapping[str, Expected] = field(default_factory=dict)


def expected(structure: Structure, profile: ModelProfile, step: int | None = None) -> Expectation:
    """The closed forms of the recognised blocks and additions, from the readings of one step (the last by default).

    Stem and head are left out: at a first layer chi depends on the data.
    """
    at = profile.steps()[-1] if step is None else step
    batch = profile.conditions[at].batch
    signals = _signals(structure, profile, at)
    inside = _inside(structure)
    multipliers: dict[str, Expected] = {}
    ratios: dict[str, Expected] = {}
    for block in structure.body:
        entry = structure.boundaries[block.index]
        start = signals.get(entry.name)
        if start is None or not all(math.isfinite(fact) for op in block.ops for fact in op.facts.values()):
            continue  # weights that are not finite have no spread
        positions = math.prod(entry.shape[1:]) if len(entry.shape) > 1 else 1
        room = Room(inside=inside, num_entries=float(batch * positions))
        additions = [structure.additions[index] for index in block.additions]
        if not additions:
            flow = through(block.ops, Flow(signal=start), inside=inside, num_entries=room.num_entries)
            if block.ops and flow.chi is not None:
                multipliers[block.name] = _banded(flow.chi, flow)
        elif len(additions) == 1:
            multiplier, ratio = _residual(block, additions[0], start, room)
            if multiplier is not None and multiplier.high == 1.0 and not _masked(structure, block):
                multiplier = None
            if multiplier is not None:
                multipliers[block.name] = multiplier
            if ratio is not None:
                ratios[additions[0].name] = ratio
    return Expectation(multipliers=multipliers, ratios=ratios)


@dataclass(frozen=True, kw_only=True)
class Room:
    """What the operations of a block need to know of their surroundings; see `flow.through`."""

    inside: Mapping[str, float]
    num_entries: float

    def through(self, ops: Sequence[Op], flow: Flow) -> Flow:
        """`flow.through` here."""
        return through(ops, flow, inside=self.inside, num_entries=self.num_entries)


def parts(block: Block, addition: ResidualAddition) -> tuple[tuple[Op, ...], tuple[Op, ...]] | None:
    """The operations of a block before the branch leaves and after the addition; None where that is not clear."""
    ops = list(block.ops)
    places = [index for index, op in enumerate(ops) if op.kind == "residual"]
    if len(places) != 1:
        return None
    until, after = ops[: places[0]], ops[places[0] + 1 :]
    for operand in (*addition.branch, *addition.skip):
        if operand not in until:
            return None
        until.reverse()  # take the last of equal ones, which is nearest to the addition
        until.remove(operand)
        until.reverse()
    return tuple(until), tuple(after)


def _residual(
    block: Block, addition: ResidualAddition, start: Signal, room: Room
) -> tuple[Expected | None, Expected | None]:
    found = parts(block, addition)
    if found is None:
        return None, None
    before, after = found
    trunk = room.through(before, Flow(signal=start))
    fresh = Flow(signal=trunk.signal)
    branch, skip = room.through(addition.branch, fresh), room.through(addition.skip, fresh)
    if branch.zero:
        exact = Expected(value=0.0, low=0.0, high=0.0)
        same = not addition.skip and not before and (not after or _relu_of_relu(start, after))
        return (Expected(value=1.0, low=1.0, high=1.0) if same else None), exact
    ratio = None
    if branch.signal is not None and skip.signal is not None and skip.signal.second > 0:
        square = branch.signal.second / skip.signal.second
        ratio = _banded(square, replace(branch, excess=0.0))
    if None in (trunk.chi, branch.chi, skip.chi) or branch.signal is None or skip.signal is None:
        return None, ratio
    total = _added(branch.signal, skip.signal)
    tail = room.through(after, Flow(signal=total))
    if tail.chi is None or trunk.chi is None or skip.chi is None or branch.chi is None:
        return None, ratio
    around = trunk.chi * tail.chi
    spread = trunk.spread + tail.spread
    of_branch = _banded(branch.chi, branch)
    value, low, high = (math.sqrt(around * (skip.chi + x**2)) for x in (of_branch.value, of_branch.low, of_branch.high))
    wide = math.exp(SIGMAS * math.sqrt(spread) / 2)
    room_left = 1.0 + LEAST_TOLERANCE
    return Expected(
        value=value, low=min(low, value / room_left) / wide, high=max(high, value * room_left) * wide
    ), ratio


def _masked(structure: Structure, block: Block) -> bool:
    """Whether the gradient that comes to a ReLU after an addition is 0 where its output is: the next block has one too.

    What the head sends back is not: through relu(x + 0) it loses what lies where x is 0.
    """
    if block.ops[-1].kind != "activation":
        return True
    follower = structure.blocks[block.index + 1] if block.index + 1 < len(structure.blocks) else None
    return follower is not None and follower.role == "body" and bool(follower.additions)


def _relu_of_relu(start: Signal, after: Sequence[Op]) -> bool:
    """A ReLU on what a ReLU gave changes nothing."""
    return len(after) == 1 and after[0].name == "relu" and not start.gaussian and start.mean > 0


def _added(branch: Signal, skip: Signal) -> Signal:
    shared = None if branch.common is None or skip.common is None else branch.common + skip.common
    return Signal(
        second=branch.second + skip.second,
        common=shared,
        mean=branch.mean + skip.mean,
        gaussian=branch.gaussian and skip.gaussian,
    )


def _banded(square: float, flow: Flow) -> Expected:
    """Square root of a factor with the band of its chain."""
    centre, width = -flow.spread / 4, SIGMAS * math.sqrt(flow.spread) / 2  # of half of ln chi
    value, least = math.sqrt(square), 1.0 + LEAST_TOLERANCE
    border = math.sqrt(flow.border)
    low = value * border * min(math.exp(centre - width), 1.0 / least)
    high = value / border * max(math.exp(centre + width), least) * math.sqrt(1.0 + 2.0 * flow.excess)
    return Expected(value=value, low=low, high=high)


def _signals(structure: Structure, profile: ModelProfile, step: int) -> dict[str, Signal]:
    """What enters each block, as measured; an entry is Gaussian where a weight or an addition gave it."""
    norms = profile.values("boundary", "norm", step)
    means = profile.values("boundary", "mean", step)
    shared = profile.values("boundary", "common", step)
    batch = profile.conditions[step].batch
    found: dict[str, Signal] = {}
    for block in structure.blocks[:-1]:
        boundary = structure.boundaries[block.index + 1]
        size = batch * math.prod(boundary.shape)
        norm = norms.get(boundary.name, math.nan)
        if not size or not math.isfinite(norm) or not norm > 0:
            continue
        second = norm**2 / size
        part = shared.get(boundary.name)
        found[boundary.name] = Signal(
            second=second,
            common=None if part is None else part * second,
            mean=means.get(boundary.name, 0.0),
            gaussian=_gives_gaussian(block),
        )
    return found


def _gives_gaussian(block: Block) -> bool:
    for op in reversed(block.ops):
        if op.kind in ("linear", "conv", "residual", "embedding"):
            return True
        if op.kind not in ("norm", "scale", "dropout"):
            return False
    return False


def _inside(structure: Structure) -> dict[str, float]:
    """Weight of a convolution -> fraction of its taps inside the image, where zero padding keeps the size."""
    shapes = {parameter.name: parameter.shape for parameter in structure.parameters}
    found: dict[str, float] = {}
    for block in structure.blocks:
        image = structure.boundaries[block.index].shape
        for op in block.ops:
            for name in op.weights if op.kind == "conv" else ():
                kernel = shapes.get(name, ())[2:]
                if not kernel or len(kernel) != len(image) - 1:
                    continue
                found[name] = math.prod(
                    1.0 - (k * k - 1) / (4 * k * size) if k % 2 and k <= size else 1.0
                    for k, size in zip(kernel, image[1:], strict=True)
                )
    return found
